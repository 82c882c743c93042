"""The settings of ``afresh.toml``: every key has a default and is checked, and unknown keys are errors.

The text of the file, the overrides of the environment and the options of a command are arguments: nothing
here reads a file or the environment.
"""
