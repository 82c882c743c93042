"""Decides when a request may start, so that one process, or all processes on one store, keep the budget."""
