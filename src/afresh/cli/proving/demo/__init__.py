"""The demo: a changing site on loopback, and two copies of it that are kept by different policies."""
