"""Stores for copies and state: one contract, implemented in memory, in SQLite and in PostgreSQL."""
