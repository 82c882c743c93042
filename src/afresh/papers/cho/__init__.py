"""Cho & Garcia-Molina, Synchronizing a Database to Improve Freshness, SIGMOD 2000."""
