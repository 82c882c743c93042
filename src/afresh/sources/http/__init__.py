"""Sources of kind ``http``: the items are web pages. Requests observe the limits of each host."""
