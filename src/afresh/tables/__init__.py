"""Tables in files: CSV, Parquet and JSONL, compressed or not, checked when read and written atomically."""
