"""Reads the lists of other programs for ``afresh add --import``."""
