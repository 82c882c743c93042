"""Runs policies on a recorded or simulated history of changes, and scores what they achieved."""
