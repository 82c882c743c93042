"""Sources of kind ``view``: materialised views of PostgreSQL."""
