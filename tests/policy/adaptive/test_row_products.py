"""Tests of products that are computed in blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from afresh.policy.adaptive.row_products import ROWS, row_products


@pytest.mark.parametrize("rows", [0, 1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS + 7])
@pytest.mark.parametrize("shape", [(18,), (18, 22)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_blocks_give_the_product_of_all_rows(rows: int, shape: tuple[int, ...], kind: Any) -> None:
    rng = np.random.default_rng(rows)
    left, table = rng.random((rows, 18)).astype(kind), rng.random(shape).astype(kind)
    product = row_products(left, table)
    assert product.dtype == kind
    assert product.shape == (rows, *shape[1:])
    np.testing.assert_allclose(product, left @ table, rtol=1e-5 if kind is np.float32 else 1e-12)


def test_no_product_has_more_rows_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger product would be divided between threads, which cost more than the product itself."""
    sizes, matmul = [], np.matmul

    def counted(left: Any, right: Any, out: Any) -> Any:
        sizes.append(len(left))
        return matmul(left, right, out=out)

    monkeypatch.setattr(np, "matmul", counted)
    row_products(np.ones((2 * ROWS + 5, 3)), np.ones(3))
    assert sizes == [ROWS, ROWS, 5]
