"""Benchmarks: each module measures one thing beside a yardstick in the same run (``python -m bench``)."""
