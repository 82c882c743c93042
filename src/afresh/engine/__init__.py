"""The engine: keeps the copies of a store as fresh as a budget allows, and reports its status."""
