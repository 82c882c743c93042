"""Estimates how often items change: from polls to rates, with priors, confidence intervals and seasons."""
