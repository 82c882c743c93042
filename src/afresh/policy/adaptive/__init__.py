"""The adaptive policy, the default: what it learns, how it values polls, and how its state is saved."""
