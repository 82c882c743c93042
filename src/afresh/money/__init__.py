"""What freshness earns: the interval of the highest net income, and when no interval pays. Pure functions."""
