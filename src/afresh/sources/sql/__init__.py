"""Sources of kind ``sql``: the rows of a query."""
