"""Sources of kind ``sql``: the database rows of a query."""
