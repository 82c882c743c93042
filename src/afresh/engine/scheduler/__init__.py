"""Memory decides: every item as a row, what a poll of it is worth, which is next, and what a poll taught."""
