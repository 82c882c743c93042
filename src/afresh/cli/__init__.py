"""The commands. Only this package reads the environment and writes to the terminal."""
