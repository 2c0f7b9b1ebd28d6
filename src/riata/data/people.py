"""Rows of people: everybody counts as the same number of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from riata.data.columns import Texts
from riata.data.readers.base import Block, Reader, TableReader
from riata.data.schema import Schema
from riata.data.source import BLOCK_ROWS, Advance, Piece, Source
from riata.errors import ClusterError
from riata.mechanisms.noise import Noise

_DIGEST = 16


class PersonIds:
    """Whose the rows of a part of a file are: what is called where the part is read.

    The key of the digests is secret, and for one source alone.
    """

    def __init__(self, reader: Reader, person: str, key: bytes) -> None:
        self._reader, self._person, self._key = reader, person, key

    def __call__(self) -> list[np.ndarray]:
        """Digests of different ids, and for each row the place of its own; -1 for no id."""
        assert isinstance(self._reader, TableReader)
        digests, codes = [np.empty((0, 2), dtype=np.uint64)], [np.empty(0, dtype=np.int64)]
        for _, columns in self._reader.chunks([self._person], BLOCK_ROWS):
            ids = columns[self._person].texts()
            known = np.array([word is not None for word in ids.words], dtype=bool)
            places = np.where(known, np.cumsum(known) - 1 + sum(map(len, digests)), -1)
            codes.append(places[ids.codes])
            digests.append(_digests(ids, self._key)[known])
        different, place = np.unique(np.concatenate(digests), axis=0, return_inverse=True)
        return [different, np.append(place.reshape(-1), -1)[np.concatenate(codes)]]

    def __repr__(self) -> str:
        return f"<PersonIds of {self._reader.title}>"


#: Calls pieces of ids, in order, where their files are read.
Gather = Callable[[list[PersonIds]], list[list[np.ndarray]]]


class PeopleSource(Source):
    """A source in which every person counts as exactly `rows_of_a_person` rows.

    A person with more rows has so many of them drawn at random; one with fewer has theirs repeated
    in turn. Rows without an id are left out. The draw is secret, made once, and of the rows of each
    person alone.

    `load` puts people in a secret random order, k rows after each other. `blocks` and `in_order`
    keep the order of the file, and so do fits with every engine: there, the number of a row must
    not decide what it is used for.

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
        assert isinstance(reader, TableReader)
        self.rows_of_a_person = schema.rows_of_a_person
        self.seeded = random_state is not None
        self._random_state = random_state
        self._key: bytes | None = None
        self._gather: Gather | None = None

    def keyed(self, key: bytes) -> PeopleSource:
        """The same people with a draw that follows from a secret, for a fit that may go on."""
        found = PeopleSource(self.schema, self._reader, self.has_target, self._random_state)
        found._key, found._gather = key, self._gather
        if "_people" in vars(self):
            found._people = self._people
        return found

    def gathered(self, gather: Gather) -> PeopleSource:
        """The same people, whose rows other processes read. Rows in memory are read here."""
        if self._reader.parts() is None:
            return self
        found = PeopleSource(self.schema, self._reader, self.has_target, self._random_state)
        found._key, found._gather = self._key, gather
        return found

    @cached_property
    def n_rows(self) -> int:
        """The number of people times the rows of each: public."""
        people = self.schema.people
        return (self._n_people if people is None else people) * self.rows_of_a_person

    @property
    def _n_people(self) -> int:
        return int(self._people[0].max(initial=-1)) + 1

    @cached_property
    def _parts(self) -> list[Reader]:
        """What the file is read as."""
        parts = self._reader.parts() if self._gather else None
        return [self._reader] if parts is None else parts

    @cached_property
    def _people(self) -> tuple[np.ndarray, list[int]]:
        """The person of each row, as `person_of_rows` numbers them, and the length of each part."""
        key = Noise().words(4).tobytes()
        ids = [PersonIds(part, str(self.schema.person), key) for part in self._parts]
        found = [each() for each in ids] if self._gather is None else self._gather(ids)
        return person_of_rows(found), [len(codes) for _, codes in found]

    @cached_property
    def _arrangement(self) -> np.ndarray:
        """The row of the file in each place of the arrangement; -1 for a blank row."""
        noise = Noise(self._random_state, key=self._key)
        people = self.schema.people or self._n_people
        return sample_rows(self._people[0], people, self.rows_of_a_person, noise)

    def _counting(self) -> np.ndarray:
        """The rows of the file that count, each as often as it does, in order."""
        rows = np.sort(self._arrangement)
        return rows[np.searchsorted(rows, 0) :]

    def _blocks(self, rows: int) -> Iterator[Block]:
        counting = self._counting()
        yield from SampledRows(self.schema, self._reader, counting, self.has_target)._blocks(rows)
        yield from self._blank(self.n_rows - len(counting), rows)

    def bar(self, wanted: bool, step: int | None = None) -> AbstractContextManager[Advance]:
        """A bar that shows the end alone: how far it is would tell where whose rows are."""
        return super().bar(wanted)

    def load(self, *, progress: bool = False) -> Block:
        """All rows at once, people in a secret random order."""
        x, y = self.in_order(progress=progress)
        blank_last = np.where(self._arrangement < 0, np.iinfo(np.int64).max, self._arrangement)
        places = np.empty(self.n_rows, dtype=np.int64)
        places[np.argsort(blank_last, kind="stable")] = np.arange(self.n_rows)
        return sparse.csr_array(x[places]), None if y is None else y[places]

    def plain(self) -> Source:
        return Source(self.schema, self._reader, self.has_target)

    def pieces(self) -> list[Source]:
        """What other processes read, in the order of `blocks`; itself if it is read here."""
        if self._gather is None:
            return [self]
        counting, ends = self._counting(), np.cumsum([0, *self._people[1]])
        cuts = np.searchsorted(counting, ends)
        found: list[Source] = [
            SampledRows(self.schema, part, counting[first:last] - start, self.has_target)
            for part, first, last, start in zip(self._parts, cuts, cuts[1:], ends, strict=False)
            if first < last
        ]
        blank = self.n_rows - len(counting)
        if blank:
            found.append(BlankRows(self.schema, self._reader, blank, self.has_target))
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without the draw, which is a secret: a copy in another process makes its own."""
        secret = ("_arrangement", "_people", "_key", "_gather")
        kept = {name: value for name, value in vars(self).items() if name not in secret}
        return {**kept, "_key": None, "_gather": None}


class SampledRows(Piece):
    """Some rows of a file, in its order, and each as often as its number is named.

    Those that the file does not have are blank.
    """

    def __init__(
        self, schema: Schema, reader: Reader, numbers: np.ndarray, target: bool = True
    ) -> None:
        super().__init__(schema, reader, target)
        self._numbers = numbers
        self.n_rows = len(numbers)

    def _blocks(self, rows: int) -> Iterator[Block]:
        numbers, start = self._numbers, 0
        for x, y in self._encoded(rows):
            first, last = np.searchsorted(numbers, [start, start + x.shape[0]])
            for some in range(first, last, rows):
                places = numbers[some : min(some + rows, last)] - start
                yield x[places], None if y is None else y[places]
            start += x.shape[0]
        missing = len(numbers) - int(np.searchsorted(numbers, start))
        yield from self._blank(missing, rows)


class BlankRows(Piece):
    """Rows of people who are not there, in which everything is missing."""

    def __init__(self, schema: Schema, reader: Reader, n_rows: int, target: bool = True) -> None:
        super().__init__(schema, reader, target)
        self.n_rows = n_rows

    def _blocks(self, rows: int) -> Iterator[Block]:
        yield from self._blank(self.n_rows, rows)


def person_of_rows(found: list[list[np.ndarray]]) -> np.ndarray:
    """The person of each row, from ids of all parts; -1 for no id.

    They are numbered as they first appear, so that the numbers do not depend on the secret key of
    the digests, nor on the parts.
    """
    digests, codes = [np.empty((0, 2), dtype=np.uint64)], [np.empty(0, dtype=np.int64)]
    for each in found:
        _check_ids(each)
        codes.append(np.where(each[1] < 0, -1, each[1] + sum(map(len, digests))))
        digests.append(each[0])
    places, whose = np.concatenate(codes), np.full(sum(map(len, codes)), -1, dtype=np.int64)
    whose[places >= 0] = codes_by_first_appearance(np.concatenate(digests)[places[places >= 0]])
    return whose


def _check_ids(found: list[np.ndarray]) -> None:
    """Raise unless these are digests and places among them: they may come from elsewhere."""
    good = len(found) == 2 and found[0].dtype == np.uint64 and found[1].dtype == np.int64
    good = good and found[0].shape[1:] == (2,) and found[1].ndim == 1
    if not good or found[1].max(initial=-1) >= len(found[0]) or found[1].min(initial=0) < -1:
        raise ClusterError(
            "A worker sent what cannot be the ids of its rows: its memory, or its version of "
            "riata, may not be right. Look after the cluster."
        )


def sample_rows(whose: np.ndarray, people: int, k: int, noise: Noise) -> np.ndarray:
    """Which row stands in each of `people * k` places, k for each; -1 for a blank row.

    `whose` is the person of each row: 0, 1, ... Rows of no person, -1, are left out. If there are
    more than so many people, some are left out at random; if there are fewer, blank people take
    their places.
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


def codes_by_first_appearance(digests: np.ndarray) -> np.ndarray:
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
    """16 bytes for each different id, under a secret key."""
    each = [
        hashlib.blake2b((word or "").encode(), digest_size=_DIGEST, key=key).digest()
        for word in ids.words
    ]
    return np.frombuffer(b"".join(each), dtype="<u8").reshape(-1, 2)
