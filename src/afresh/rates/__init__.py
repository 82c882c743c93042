"""Learning how often things change: from polls to rates, with priors, intervals, drift and seasons."""
