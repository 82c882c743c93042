"""Sources of kind ``search``: the items are records that can be found only by a search form."""
