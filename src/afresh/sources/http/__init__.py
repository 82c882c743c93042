"""Sources of kind ``http``: web pages, requested within the limits of each host."""
