"""What freshness earns: the interval with the best net income, and when no interval pays. Pure."""
