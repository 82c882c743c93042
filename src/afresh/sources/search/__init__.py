"""Sources of kind ``search``: records that can be found only by a search form."""
