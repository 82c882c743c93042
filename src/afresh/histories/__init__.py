"""Readers of histories of changes, from files or from a git repository."""
