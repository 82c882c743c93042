"""The adaptive policy, the default: what it learns, what a poll is worth by it, and how both are saved."""
