"""Files in and out: CSV, Parquet and JSONL, compressed or not, checked row by row, written whole or not at all."""
