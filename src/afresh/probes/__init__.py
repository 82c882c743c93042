"""Keyword probes: queries that each refresh many of the records that are held (the relation)."""
