"""Tables in files: CSV, Parquet and JSONL, compressed or not, with checked input and atomic output."""
