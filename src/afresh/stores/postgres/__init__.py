"""The store in PostgreSQL: many machines work on one copy."""
