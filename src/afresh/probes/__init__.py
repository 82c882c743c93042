"""Keyword probes: refreshing many records of a relation with one search."""
