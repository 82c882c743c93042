"""Tests that need other tools (``make interop``): one folder for each tool, with its own environment."""
