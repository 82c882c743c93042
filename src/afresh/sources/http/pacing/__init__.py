"""How many requests a host allows: its learned pace, its quota headers, and the quota of the settings."""
