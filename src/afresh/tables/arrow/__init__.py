"""Tables by pyarrow: Parquet, and CSV and JSONL faster than ``plain`` reads and writes them."""
