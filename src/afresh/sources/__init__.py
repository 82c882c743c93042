"""Sources: each kind reads a remote system and returns values. Sources do not use the store."""
