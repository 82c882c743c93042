"""Where copies and state live: one contract, in memory and in SQLite."""
