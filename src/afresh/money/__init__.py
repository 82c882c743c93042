"""Pure functions for what freshness earns: the refresh interval with the highest net income, if any pays."""
