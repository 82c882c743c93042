"""Spending a budget: how often to refresh each item so that the copies are worth the most. Pure functions."""
