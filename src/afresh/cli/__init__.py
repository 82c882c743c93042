"""Commands. The only place that reads the environment and writes to the terminal."""
