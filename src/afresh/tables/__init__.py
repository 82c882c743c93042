"""Files in and out: CSV, Parquet and JSONL, compressed or not, checked, written whole or not at all."""
