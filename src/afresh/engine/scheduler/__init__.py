"""Decides which item is polled next, and learns from polls; ``scheduler`` is the interface to the others."""
