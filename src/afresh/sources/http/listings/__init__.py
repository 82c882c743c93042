"""Documents that list the pages of a site: sitemaps, feeds and start pages."""
