"""Sources of kind ``api``: the list of a web API defines the items."""
