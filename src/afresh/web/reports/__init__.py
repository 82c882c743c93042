"""What the pages and the API say about items, plans, sources and the whole dashboard."""
