"""Pure functions for the copy of one item: freshness, age, decay functions and the gain of a refresh."""
