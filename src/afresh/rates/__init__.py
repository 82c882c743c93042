"""Estimating how often items change: from polls to rates, with priors, intervals, forgetting and seasons."""
