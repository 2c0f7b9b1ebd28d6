"""Rows that are added block by block are those of all blocks in order, whatever their sizes."""

import numpy as np
import pytest
from scipy import sparse

from riata.data.source import GrowingRows


@pytest.mark.parametrize("sizes", [(), (0,), (3,), (2, 0, 5), (40_000, 1, 30_000)])
def test_rows_are_those_of_the_blocks_in_order(sizes):
    rng = np.random.default_rng(0)
    blocks = [sparse.random_array((n, 7), density=0.4, rng=rng, format="csr") for n in sizes]
    rows = GrowingRows(7)
    for block in blocks:
        rows.append(block)
    found = rows.rows()
    meant = sparse.vstack([sparse.csr_array((0, 7)), *blocks], format="csr")
    assert found.shape == (sum(sizes), 7)
    assert found.has_canonical_format
    for name in ("indptr", "indices", "data"):
        one, other = getattr(found, name), getattr(meant, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == (np.float64 if name == "data" else np.int32)
