"""The store in memory: the reference that the others are held to, and what tests and trials run on."""
