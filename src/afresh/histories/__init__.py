"""Histories of changes: recorded in files, or read from a git repository."""
