"""Freshness, age, decay, the index: what a copy is worth over time. Pure: arrays in, arrays out."""
