"""The code that the stores in SQLite and PostgreSQL share. Each store has its own SQL statements."""
