"""The kinds of source. A source reads items of a remote system; it returns values, and knows no store."""
