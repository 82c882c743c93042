"""``python -m afresh`` is the same program as ``afresh``."""

from afresh.cli.app import main

main()
