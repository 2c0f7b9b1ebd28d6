"""Rows of a file or a frame, typed by a schema and read in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from riata.arguments import is_whole
from riata.data.readers.base import Block, Reader
from riata.data.schema import Schema
from riata.errors import InvalidArgument
from riata.wording import number_of

Advance = Callable[[int], None]

#: Rows that are read and encoded at a time.
BLOCK_ROWS = 65_536

#: So much of the end of a path leaves room for a bar and its numbers in a narrow terminal.
_TITLE = 24


class Source:
    """Where a fit finds its rows. Make one with `riata.read`.

    What a source says about itself is public: names, types, bounds and the number of rows. Only
    `blocks` and `load` read rows.

    Attributes
    ----------
    schema : Schema
    has_target : bool
        Whether the target is read too.
    rows_of_a_person : int
        How many rows can change when one person is replaced by another.
    """

    rows_of_a_person = 1

    def __init__(self, schema: Schema, reader: Reader, target: bool = True) -> None:
        self.schema = schema
        self.has_target = target and schema.target is not None
        self._reader = reader
        reader.check(schema, self.has_target)

    @cached_property
    def n_rows(self) -> int:
        """The number of rows: public. What the schema says, or else what the file has."""
        fixed = self.schema.rows if self.has_target else None
        return self._reader.count() if fixed is None else fixed

    @property
    def n_features(self) -> int:
        return self.schema.n_features

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_features

    def blocks(self, rows: int = BLOCK_ROWS, *, progress: bool = False) -> Iterator[Block]:
        """At most `rows` rows at a time, in the order of the file.

        Yields
        ------
        x : csr_array of float64
            Encoded rows, all entries in [-1, 1].
        y : ndarray of float64, or None
            Centred numbers, or codes of classes with -1 for none; None without a target.
        """
        if not is_whole(rows) or rows < 1:
            raise InvalidArgument(f"rows={rows!r} must be a whole number, and at least 1.")
        with self.bar(progress, rows) as advance:
            for x, y in self._blocks(rows):
                yield x, y
                advance(x.shape[0])

    def bar(self, wanted: bool, step: int | None = None) -> AbstractContextManager[Advance]:
        """A progress bar on standard error, moved on by a number of rows."""
        return progress_bar(self._reader.title, self.n_rows, wanted, step)

    def _blocks(self, rows: int) -> Iterator[Block]:
        """Exactly `n_rows` rows: those too many are cut off, and those too few are blank."""
        left = self.n_rows
        for x, y in self._encoded(rows):
            if x.shape[0] > left:
                x, y = x[:left], None if y is None else y[:left]
            left -= x.shape[0]
            yield x, y
            if not left:
                return
        yield from self._blank(left, rows)

    def _blank(self, n_rows: int, rows: int) -> Iterator[Block]:
        """So many blank rows, at most `rows` at a time."""
        for some in range(0, n_rows, rows):
            x, y = self.schema.blank(min(rows, n_rows - some))
            yield x, y if self.has_target else None

    def _encoded(self, rows: int) -> Iterator[Block]:
        """All rows of the file."""
        return self._reader.blocks(self.schema, rows, self.has_target)

    def load(self, *, progress: bool = False) -> Block:
        """All rows at once."""
        return self.in_order(progress=progress)

    def in_order(self, *, progress: bool = False) -> Block:
        """All rows at once, in the order of `blocks`."""
        none, y = self.schema.blank(0)
        rows, targets = GrowingRows(none.shape[1]), [] if y is None else [y]
        for x, y in self.blocks(progress=progress):
            rows.append(x)
            if y is not None:
                targets.append(y)
        return rows.rows(), np.concatenate(targets) if self.has_target else None

    def plain(self) -> Source:
        """The same rows one by one, in the order of the file: for predictions."""
        return self

    def with_schema(self, schema: Schema) -> Self:
        """The same rows, encoded by another schema of the same columns."""
        if schema is self.schema:
            return self
        found = object.__new__(type(self))
        vars(found).update(vars(self))
        found.schema = schema
        return found

    def pieces(self) -> list[Source]:
        """Sources of disjoint parts, which together have all rows, in order.

        Each can be pickled and read by itself. A source that cannot be divided, or whose number
        of rows the schema corrects, is one piece.
        """
        parts = self._reader.pieces()
        if len(parts) < 2 or self.n_rows != self._reader.count():
            return [self]
        return [Piece(self.schema, part, self.has_target) for part in parts]

    def __repr__(self) -> str:
        return f"<Source {self._reader.title}, {number_of(self.n_features, 'column')}>"


class Piece(Source):
    """A part of a source, with as many rows as it has."""

    @cached_property
    def n_rows(self) -> int:
        return self._reader.count()

    def pieces(self) -> list[Source]:
        return [self]


@contextmanager
def progress_bar(title: str, rows: int, wanted: bool, step: int | None = None) -> Iterator[Advance]:
    """A function that moves a progress bar on standard error.

    What is drawn depends on the public number of all rows, and on time, alone: how many rows a
    block of a file has may be private. The bar stands at multiples of `step`; a caller that never
    moves on by more passes all of them. Without a step it shows that something is done, and then
    all rows.
    """
    if not wanted:
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("[progress.description]{task.description}", BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        short = title if len(title) <= _TITLE else "…" + title[1 - _TITLE :]
        task = progress.add_task(escape(short), total=None if step is None else rows)
        done = 0

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            if step is not None:
                progress.update(task, completed=done // step * step)

        yield advance
        progress.update(task, total=rows, completed=rows)


class GrowingRows:
    """Blocks of sparse rows, each appended to the arrays of all rows.

    The arrays grow where they are, which the operating system does without a copy for large ones;
    stacking the blocks at the end would hold all rows twice.
    """

    def __init__(self, n_features: int) -> None:
        self._n_features = n_features
        self._data = np.empty(0)
        self._indices = np.empty(0, dtype=np.int32)
        self._ends: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]

    def append(self, x: sparse.csr_array) -> None:
        """A block of float64 whose column numbers fit 32 bits."""
        start = len(self._data)
        for whole, part in ((self._data, x.data), (self._indices, x.indices)):
            whole.resize(start + x.nnz, refcheck=False)  # no view of it exists
            whole[start:] = part[: x.nnz]
        self._ends.append(x.indptr[1:].astype(np.int64) + start)

    def rows(self) -> sparse.csr_array:
        """All rows. To be taken once."""
        ends = np.concatenate(self._ends)
        if ends[-1] <= np.iinfo(np.int32).max:
            ends = ends.astype(np.int32)
        indices = self._indices.astype(ends.dtype, copy=False)
        shape = (len(ends) - 1, self._n_features)
        return sparse.csr_array((self._data, indices, ends), shape=shape)
