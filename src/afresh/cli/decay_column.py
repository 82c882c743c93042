"""Names of decay functions in a column, each checked where it stands."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from afresh.model.decay import decay_from
from afresh.tables.reading import CheckedTable
from afresh.values.errors import AfreshError


def check_decays(table: CheckedTable) -> None:
    """Refuse the first cell of ``decay`` that names no decay function; empty cells are none."""
    encoded = table.text("decay").dictionary_encode()
    for code, spec in enumerate(encoded.dictionary.to_pylist()):
        try:
            if spec:
                decay_from(spec, np.ones(1))
        except AfreshError as error:
            row = pa.compute.index(encoded.indices, pa.scalar(code, encoded.indices.type)).as_py()
            raise table.fault(row, "decay", str(error)) from None
