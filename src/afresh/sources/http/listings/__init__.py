"""What a site says exists: sitemaps, feeds and start pages."""
