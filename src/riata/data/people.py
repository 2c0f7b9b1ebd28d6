"""Rows of people: everybody counts as the same number of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from riata.data.columns import Texts
from riata.data.reader import ColumnReader, Reader
from riata.data.schema import Schema
from riata.data.source import BLOCK_ROWS, Block, Source
from riata.mechanisms.noise import Noise

_DIGEST = 16


class PeopleSource(Source):
    """A source in which every person counts as exactly `rows_of_a_person` rows.

    A person with more rows has so many of them drawn at random; one with fewer has theirs repeated
    in turn. Rows without an id are left out. The draw is secret, made once, and of the rows of each
    person alone.

    `load` puts people in a secret random order, k rows after each other. `blocks` keeps the order
    of the file: there, the number of a row must not decide what it is used for.

    Parameters
    ----------
    schema : Schema
    reader : Reader
    target : bool
    random_state : int, optional
        For tests only: a public draw, which protects nobody.
    """

    def __init__(
        self, schema: Schema, reader: Reader, target: bool = True, random_state: int | None = None
    ) -> None:
        super().__init__(schema, reader, target)
        assert isinstance(reader, ColumnReader)
        self.rows_of_a_person = schema.rows_of_a_person
        self.seeded = random_state is not None
        self._random_state = random_state
        self._key: bytes | None = None

    def keyed(self, key: bytes) -> PeopleSource:
        """The same people with a draw that follows from a secret, for a fit that may go on."""
        found = PeopleSource(self.schema, self._reader, self.has_target, self._random_state)
        found._key = key
        return found

    @cached_property
    def n_rows(self) -> int:
        """The number of people times the rows of each: public."""
        people = self.schema.people
        return (self._n_people if people is None else people) * self.rows_of_a_person

    @property
    def _n_people(self) -> int:
        return int(self._whose.max(initial=-1)) + 1

    @cached_property
    def _whose(self) -> np.ndarray:
        """The person of each row of the file, numbered as they first appear; -1 for no id."""
        key = Noise().words(4).tobytes()
        digests, known = [np.empty((0, 2), dtype=np.uint64)], [np.empty(0, dtype=bool)]
        for _, columns in self._reader.chunks([self.schema.person], BLOCK_ROWS):
            ids = columns[self.schema.person].texts()
            known.append(np.array([word is not None for word in ids.words])[ids.codes])
            digests.append(_digests(ids, key)[known[-1]])
        has_id = np.concatenate(known)
        whose = np.full(len(has_id), -1, dtype=np.int64)
        whose[has_id] = numbered(np.concatenate(digests))
        return whose

    @cached_property
    def _drawn(self) -> np.ndarray:
        """The row of the file in each place of the arrangement; -1 for a blank row."""
        noise = Noise(self._random_state, key=self._key)
        people = self.schema.people or self._n_people
        return drawn(self._whose, people, self.rows_of_a_person, noise)

    def _blocks(self, rows: int) -> Iterator[Block]:
        wanted = np.sort(self._drawn)
        wanted = wanted[np.searchsorted(wanted, 0) :]
        blank, start = self.n_rows - len(wanted), 0
        for x, y in self._encoded(rows):
            first, last = np.searchsorted(wanted, [start, start + x.shape[0]])
            for some in range(first, last, rows):
                places = wanted[some : min(some + rows, last)] - start
                yield x[places], None if y is None else y[places]
            start += x.shape[0]
        blank += len(wanted) - int(np.searchsorted(wanted, start))
        for some in range(0, blank, rows):
            x, y = self.schema.blank(min(rows, blank - some))
            yield x, y if self.has_target else None

    def load(self, *, progress: bool = False) -> Block:
        """All rows at once, people in a secret random order."""
        x, y = super().load(progress=progress)
        blank_last = np.where(self._drawn < 0, np.iinfo(np.int64).max, self._drawn)
        places = np.empty(self.n_rows, dtype=np.int64)
        places[np.argsort(blank_last, kind="stable")] = np.arange(self.n_rows)
        return sparse.csr_array(x[places]), None if y is None else y[places]

    def plain(self) -> Source:
        return Source(self.schema, self._reader, self.has_target)

    def pieces(self) -> list[Source]:
        return [self]

    def __getstate__(self) -> dict[str, Any]:
        """Without the draw, which is a secret: a copy in another process makes its own."""
        secret = ("_drawn", "_whose", "_key")
        kept = {name: value for name, value in vars(self).items() if name not in secret}
        return {**kept, "_key": None}


def drawn(whose: np.ndarray, people: int, k: int, noise: Noise) -> np.ndarray:
    """Which row stands in each of `people * k` places; -1 for a blank row.

    Parameters
    ----------
    whose : ndarray of int
        The person of each row: 0, 1, ... Rows of no person, -1, are left out.
    people : int
        How many people there are places for. If there are more, some are left out at random; if
        there are fewer, blank people take their places.
    k : int
        Rows of each person.
    noise : Noise
    """
    rows = np.flatnonzero(whose >= 0)
    rows = rows[random_order(len(rows), noise)]
    rows = rows[np.argsort(whose[rows], kind="stable")]
    counts = np.bincount(whose[rows], minlength=people)
    starts = np.cumsum(counts) - counts
    chosen = random_order(len(counts), noise)[:people]
    several = counts[chosen][:, None]
    turns = np.arange(k) % np.maximum(several, 1)
    places = starts[chosen][:, None] + turns
    return np.append(rows, -1)[np.where(several > 0, places, -1)].ravel()


def random_order(n: int, noise: Noise) -> np.ndarray:
    """The numbers below `n` in an exactly uniform order: words are drawn until all differ."""
    while True:
        words = noise.words(n)
        order = np.argsort(words, kind="stable")
        if np.all(np.diff(words[order]) > 0):
            return order


def numbered(digests: np.ndarray) -> np.ndarray:
    """Equal digests get equal numbers: 0, 1, ... in the order in which they first appear."""
    if not len(digests):
        return np.empty(0, dtype=np.int64)
    order = np.lexsort((digests[:, 1], digests[:, 0]))  # stable: the first of equals comes first
    ordered = digests[order]
    begins = np.concatenate([[True], np.any(ordered[1:] != ordered[:-1], axis=1)])
    group = np.empty(len(digests), dtype=np.int64)
    group[order] = np.cumsum(begins) - 1
    first_row = order[begins]
    ranks = np.empty(len(first_row), dtype=np.int64)
    ranks[np.argsort(first_row)] = np.arange(len(first_row))
    return ranks[group]


def _digests(ids: Texts, key: bytes) -> np.ndarray:
    """16 bytes for each id, under a secret key."""
    each = [
        hashlib.blake2b((word or "").encode(), digest_size=_DIGEST, key=key).digest()
        for word in ids.words
    ]
    return np.frombuffer(b"".join(each), dtype="<u8").reshape(-1, 2)[ids.codes]
