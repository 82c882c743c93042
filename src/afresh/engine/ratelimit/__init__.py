"""When a request may start: the budget is kept by one process, or by many on one store together."""
