"""The mathematics of one copy: freshness, age, decay functions and the refresh index. Pure functions."""
