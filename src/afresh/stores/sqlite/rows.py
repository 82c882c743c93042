"""Lists as SQLite takes them."""

from __future__ import annotations

import json
from collections.abc import Iterable


def json_list(values: Iterable[int] | Iterable[str]) -> str:
    """A list as one parameter, for ``json_each``."""
    return json.dumps(list(values))
