"""Sources of kind ``sql``: the items are the database rows that a query returns."""
