"""Measured claims: each module times one thing against a yardstick in the same run. ``python -m bench``."""
