"""Sources of kind ``python``: a function of the user returns the content of each item."""
