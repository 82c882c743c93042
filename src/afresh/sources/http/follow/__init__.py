"""Follows the links of pages: which addresses belong to a site, and which pages a page links to."""
