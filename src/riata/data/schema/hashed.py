"""Columns with more different values than anybody lists: words of texts, and ids."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.data.columns import Column
from riata.data.schema.features import Feature, Nonzeros, ones

#: So many different words a text is taken to have.
_WORDS_OF_TEXT = 64

#: Where the schema does not say.
BUCKETS_OF_TEXT, BUCKETS_OF_IDS = 2**14, 2**10
MOST_NGRAMS = 5


@dataclass(frozen=True)
class Buckets(Feature):
    """What is hashed into a number of columns."""

    buckets: int

    hashed = True

    @property
    def names(self) -> list[str]:
        return [f"{self.name}[{bucket}]" for bucket in range(self.buckets)]

    @property
    def n_columns(self) -> int:
        return self.buckets


@dataclass(frozen=True)
class Hash(Buckets):
    """Ids with too many values to list: each value is hashed into one of some columns."""

    kind = "hash"

    @property
    def meanings(self) -> tuple[str, ...]:
        return ("of a hashed value, the change against 0 for all others",)

    def encode(self, column: Column) -> Nonzeros:
        return ones(column.texts().encode(self._bucket, -1))

    def _bucket(self, word: str) -> int:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") % self.buckets

    def lines(self) -> list[tuple[str, Any, str]]:
        return [("buckets", self.buckets, "values are hashed into this many columns")]


@dataclass(frozen=True)
class Text(Buckets):
    """Words, and runs of them, hashed: 1 + log of the count of each, brought to length 1."""

    ngrams: int = 1

    kind = "text"

    @property
    def likely_entries(self) -> int:
        return min(self.buckets, self.ngrams * _WORDS_OF_TEXT)

    @property
    def meanings(self) -> tuple[str, ...]:
        return ("of a hashed word, that for a text of this word alone",)

    def encode(self, column: Column) -> Nonzeros:
        from sklearn.feature_extraction.text import HashingVectorizer  # slow to import

        texts = column.texts()
        hashing = HashingVectorizer(
            n_features=self.buckets, alternate_sign=False, norm=None, ngram_range=(1, self.ngrams)
        )
        words = [*(word or "" for word in texts.words), ""]  # it takes no empty list
        found = hashing.transform(words).tocsr()
        found.data = _unit_rows(found.data, found.indptr)
        found = found[texts.codes].tocoo()
        return Nonzeros(found.row, found.col, found.data)

    def lines(self) -> list[tuple[str, Any, str]]:
        runs = [("ngrams", self.ngrams, "so many words in a row are looked at together")]
        return [
            ("buckets", self.buckets, "words are hashed into this many columns"),
            *(runs if self.ngrams > 1 else []),
        ]


def _unit_rows(counts: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """1 + log of each count, with each row brought to length 1.

    A row's numbers must not depend on other rows, not even in their last bit: logarithms come from
    `math`, one for each count, and `bincount` adds the entries of a row one by one.
    """
    seen, places = np.unique(counts, return_inverse=True)
    entries = np.array([1 + math.log(count) for count in seen])[places]
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return entries / np.sqrt(np.bincount(row, np.square(entries), len(indptr) - 1))[row]
