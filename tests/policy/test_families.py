"""Names tell which items belong together."""

from __future__ import annotations

import numpy as np

from afresh.policy.families import families_of, number_labels


def test_names_tell_families() -> None:
    names = ["en/docs/a", "en/docs/b", "en/docs/c", "en/docs/d", "en/docs/sub/e", "de/docs/a", "zz"]
    words, folder, elsewhere = families_of(names).T
    assert set(words) == {-1}
    assert np.unique(folder[:5]).size == 1  # a small directory counts as part of the one above
    assert folder[6] == -1
    assert elsewhere[0] == elsewhere[5] >= 0
    assert number_labels([None, None]).tolist() == [-1, -1]
