"""Differences between texts."""
