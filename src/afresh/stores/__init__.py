"""Where copies and state live: one contract, in memory, in SQLite and in PostgreSQL."""
