"""CSV and JSONL by Python and NumPy alone, where pyarrow is not installed."""
