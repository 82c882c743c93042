"""The store in one SQLite file, which needs no server."""
