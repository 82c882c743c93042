"""The store in one SQLite file: nothing but Python is needed."""
