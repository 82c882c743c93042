"""The freshness plan of millions of items, by a histogram of the items and two passes over them."""
