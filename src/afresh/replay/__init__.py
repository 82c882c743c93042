"""The loop on a recorded or simulated history: worlds, runs, scores."""
