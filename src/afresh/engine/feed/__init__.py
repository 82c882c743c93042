"""The change feed for programs: pages of changes with their content, and following the feed."""
