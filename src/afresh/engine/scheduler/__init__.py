"""Which item is polled next: items as rows, the values of polls, and what polls teach."""
