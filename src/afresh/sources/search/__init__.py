"""Sources of kind ``search``: records behind a search box."""
