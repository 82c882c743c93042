"""Pure functions that divide a budget: how often to refresh each item so that the objective is best."""
