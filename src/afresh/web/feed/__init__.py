"""The change feed over HTTP: for programs, feed readers and people."""
