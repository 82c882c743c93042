"""The store in memory: the reference for the others, and what tests and trials run on."""
