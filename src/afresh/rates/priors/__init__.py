"""Prior distributions of change rates, learned from the items themselves (empirical Bayes)."""
