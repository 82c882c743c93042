"""Reports about items, plans, sources and the whole dashboard, for the pages and the API."""
