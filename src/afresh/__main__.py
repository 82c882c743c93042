"""Runs the same program as the command ``afresh``, when started as ``python -m afresh``."""

from afresh.cli.entry import main

main()
