"""The freshness plan of millions of items: histograms of prices and two passes over the items."""
