"""svmlight and LIBSVM files, read so that no line can stop a fit or move another row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from riata.data.columns import Texts, as_number
from riata.data.readers.base import MatrixReader
from riata.data.readers.lines import LineReader
from riata.data.schema.numeric_block import NumericBlock

#: Digits of the longest index that is looked at.
_MOST_DIGITS = 12


class SvmlightReader(LineReader, MatrixReader):
    """Lines of a target and then index:value. Each line is one row, whatever is in it.

    What is not an index in range, a colon and a number is left out, and so is what follows "#".
    """

    def chunks(
        self, block: NumericBlock, rows: int, target: bool
    ) -> Iterator[tuple[sparse.csr_array, Texts | None]]:
        for lines in self.batches(rows):
            tokens = [line.partition(b"#")[0].split() for line in lines]
            labels = [one[0] if one and b":" not in one[0] else b"" for one in tokens]
            x = _rows(tokens, block)
            yield x, Texts.of(labels) if target else None


def _rows(tokens: list[list[bytes]], block: NumericBlock) -> sparse.csr_array:
    """The entries of each line, from its tokens."""
    each = list(itertools.chain.from_iterable(tokens))
    places = {token: place for place, token in enumerate(dict.fromkeys(each))}
    codes = np.fromiter(map(places.__getitem__, each), np.int64, len(each))
    entries = [_entry(token) for token in places]
    indices = np.array([index for index, _ in entries], dtype=np.int64)[codes] - block.first_index
    values = np.array([value for _, value in entries], dtype=np.float64)[codes]
    good = (indices >= 0) & (indices < block.count) & ~np.isnan(values)
    ends = np.cumsum([0, *map(len, tokens)])
    indptr = np.concatenate([[0], np.cumsum(good)])[ends]
    shape = (len(tokens), block.count)
    return sparse.csr_array((values[good], indices[good], indptr), shape=shape)


def _entry(token: bytes) -> tuple[int, float]:
    """An index and a value, or a negative index for what is neither."""
    index, _, value = token.partition(b":")
    if not index.isdigit() or len(index) > _MOST_DIGITS:
        return -1, math.nan
    return int(index), as_number(value.decode("utf-8", "replace"))
