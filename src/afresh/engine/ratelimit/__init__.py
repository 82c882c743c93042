"""When a request may start: the budget's promise, kept by one process or by many on one store."""
