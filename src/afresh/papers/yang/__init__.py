"""Yang et al., Optimizing Content Freshness of Relations Extracted From the Web, SIGMOD 2010."""
