"""Where data comes from. Each source turns something outside into values; none knows where they are kept."""
