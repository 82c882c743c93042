"""Spending a budget: how often each item is refreshed so that the copies are worth the most. Pure."""
