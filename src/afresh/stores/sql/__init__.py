"""What the stores in SQLite and PostgreSQL share: the logic, while each has SQL statements of its own."""
