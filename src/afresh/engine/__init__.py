"""The engine: keeps the copies of a store fresh within a budget, and reports how it does."""
