"""``afresh.toml``: every key has a default, is checked on load, and an unknown one is refused.

The file's text, the environment's overrides and the options of a command come in as arguments; nothing here
reads a file or the environment.
"""
