"""Sources of kind ``http``: web pages, fetched politely."""
