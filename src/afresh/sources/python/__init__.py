"""Sources of kind ``python``: the results of a function."""
