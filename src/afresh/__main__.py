"""``python -m afresh`` is the same program as ``afresh``."""

from afresh.cli.entry import main

main()
