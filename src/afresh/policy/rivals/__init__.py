"""Policies to compare the adaptive policy with: textbook rules, rules of crawlers in use, and an oracle."""
