"""The store in PostgreSQL, which workers on several machines can share."""
