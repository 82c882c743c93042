"""Policies: they choose the items to poll next and learn from what the polls find."""
