"""Public random projections: few mixtures of many columns, the same for everybody.

A projection depends on a public seed and never on a row, so that it protects nothing and costs
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import fft, sparse
from scipy.special import ndtri

from riata.arguments import is_whole
from riata.errors import InvalidArgument
from riata.grid import X_STEPS, coefficient_step
from riata.public import public_normals
from riata.registry import Registry

#: A fast transform works on several rows at a time. It is always given a multiple of so many, so
#: that no row is treated in another way than the others because there are few.
TOGETHER = 64

#: How many numbers a block of rows or columns may hold while a large product is made.
BLOCK = 2**22


class Projection(ABC):
    """A public matrix Phi with `dimension` rows and `n_features` columns, at most as many rows."""

    dimension: int
    n_features: int

    @abstractmethod
    def forward(self, theta: np.ndarray) -> np.ndarray:
        """Phi theta."""

    @abstractmethod
    def back(self, v: np.ndarray) -> np.ndarray:
        """Phi' v."""

    @abstractmethod
    def columns(self, indices: np.ndarray) -> np.ndarray:
        """The columns of Phi with these numbers, as a dense array."""

    @abstractmethod
    def _rows(self, x: Any) -> np.ndarray:
        """x Phi', for rows of the right length: a float64 array or a CSR matrix."""

    def rows(self, x: Any) -> np.ndarray:
        """x Phi': the rows with `dimension` columns in place of `n_features`, always dense."""
        x = x.tocsr() if sparse.issparse(x) else np.asarray(x)
        x = x.astype(np.float64, copy=False)
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise InvalidArgument(
                f"x has shape {x.shape} and the projection takes rows of {self.n_features} "
                "columns. Pass a two-dimensional array with that many columns."
            )
        return self._rows(x)

    def rows_of_steps(self, x: Any, limit: Any) -> np.ndarray:
        """The same for rows of integers, in steps of a column's limit / `X_STEPS`.

        What a row becomes depends on no other row, not even in its last bit: the entries of Phi are
        rounded to integers too, so that all sums are exact.
        """
        scaled = self.matrix() * limit
        steps = coefficient_step(np.abs(scaled).sum(axis=1))
        whole = np.rint(scaled / steps[:, None])
        return np.asarray(x @ whole.T) * (steps / X_STEPS)

    def matrix(self) -> np.ndarray:
        """Phi itself, as a dense array."""
        return self.columns(np.arange(self.n_features))

    def column_norms(self) -> np.ndarray:
        """The Euclidean length of each column of Phi."""
        lengths = [np.sqrt(np.square(block).sum(axis=0)) for _, block in self.blocks()]
        return np.concatenate(lengths)

    def stretch(self) -> float:
        """The largest length of Phi a over all a of length 1."""
        gram = np.zeros((self.dimension, self.dimension))
        for _, columns in self.blocks():
            gram += columns @ columns.T
        return float(np.sqrt(np.linalg.eigvalsh(gram)[-1]))

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All columns, a block at a time: their numbers and the columns themselves."""
        step = max(1, BLOCK // self.dimension)
        for first in range(0, self.n_features, step):
            indices = np.arange(first, min(first + step, self.n_features))
            yield indices, self.columns(indices)


class StoredProjection(Projection):
    """A matrix that is held in memory."""

    @property
    @abstractmethod
    def stored(self) -> Any:
        """The matrix: a float64 array or a CSC matrix."""

    def forward(self, theta: np.ndarray) -> np.ndarray:
        return np.asarray(self.stored @ theta)

    def back(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(self.stored.T @ v)

    def columns(self, indices: np.ndarray) -> np.ndarray:
        return np.asarray(self.stored[:, indices])

    def matrix(self) -> np.ndarray:
        return np.asarray(self.stored)

    def _rows(self, x: Any) -> np.ndarray:
        return np.asarray(x @ self.stored.T)


@dataclass(frozen=True)
class SeededProjection(Projection):
    """A random projection.

    Parameters
    ----------
    dimension : int
        The number of rows, at most `n_features`.
    n_features : int
        The number of columns.
    seed : int, default=0
        Any public whole number.
    """

    dimension: int
    n_features: int
    seed: int = 0

    name: ClassVar[str]

    def __post_init__(self) -> None:
        for name in ("dimension", "n_features", "seed"):
            value = getattr(self, name)
            if not is_whole(value):
                raise InvalidArgument(
                    f"{name}={value!r} must be a whole number: it is part of the public "
                    "description of the projection. Pass a plain integer."
                )
            object.__setattr__(self, name, int(value))
        _check_shape(self.dimension, self.n_features)

    def normals(self, size: int, part: str | int) -> np.ndarray:
        """Public standard normals that belong to one part of this projection."""
        shape = f"{self.dimension} x {self.n_features}"
        return public_normals((size,), f"riata projection {self.name} {shape} {self.seed} {part}")


@dataclass(frozen=True)
class GaussianProjection(SeededProjection, StoredProjection):
    """Independent normal entries with variance 1 / dimension.

    Parameters are those of `SeededProjection`.
    """

    name: ClassVar[str] = "gaussian"

    @cached_property
    def stored(self) -> np.ndarray:
        entries = np.empty((self.dimension, self.n_features))
        for i in range(self.dimension):
            entries[i] = self.normals(self.n_features, i)
        entries /= np.sqrt(self.dimension)
        entries.flags.writeable = False
        return entries


@dataclass(frozen=True)
class SparseSignProjection(SeededProjection, StoredProjection):
    """Two entries in three are 0, the others sqrt(3 / dimension) with a random sign.

    The projection of Achlioptas (2003). Only the non-zeros are stored.

    Parameters are those of `SeededProjection`.
    """

    name: ClassVar[str] = "sparse-sign"

    @cached_property
    def stored(self) -> sparse.csc_array:
        threshold = ndtri(5 / 6)  # a normal is above it one time in six
        rows = []
        for i in range(self.dimension):
            z = self.normals(self.n_features, i)
            rows.append(sparse.csr_array((z > threshold) * 1.0 - (z < -threshold)))
        return (sparse.vstack(rows) * np.sqrt(3 / self.dimension)).tocsc()

    def columns(self, indices: np.ndarray) -> np.ndarray:
        return self.stored[:, indices].toarray()

    def matrix(self) -> np.ndarray:
        return self.stored.toarray()

    def _rows(self, x: Any) -> np.ndarray:
        if sparse.issparse(x):
            return np.asarray((x @ self.stored.T).todense())
        return (self.stored @ x.T).T


@dataclass(frozen=True)
class StructuredProjection(SeededProjection):
    """Random signs, a cosine transform, and a random sample of its coordinates: nothing is stored.

    The rows of Phi are orthogonal and equally long, and a product costs d log d.

    Parameters are those of `SeededProjection`.
    """

    name: ClassVar[str] = "structured"

    @cached_property
    def _signs(self) -> np.ndarray:
        return np.sign(self.normals(self.n_features, "signs"))

    @cached_property
    def _sample(self) -> np.ndarray:
        order = np.argsort(self.normals(self.n_features, "sample"), kind="stable")
        return np.sort(order[: self.dimension])

    @property
    def _scale(self) -> float:
        return float(np.sqrt(self.n_features / self.dimension))

    def forward(self, theta: np.ndarray) -> np.ndarray:
        return self._rows(np.asarray(theta)[None, :])[0]

    def back(self, v: np.ndarray) -> np.ndarray:
        sampled = np.zeros(self.n_features)
        sampled[self._sample] = v
        return self._scale * self._signs * fft.idct(sampled, norm="ortho")

    def columns(self, indices: np.ndarray) -> np.ndarray:
        # cos(pi k (2j + 1) / (2d)), with the period taken out before anything is rounded
        steps = np.outer(self._sample, 2 * np.asarray(indices) + 1) % (4 * self.n_features)
        cosines = np.cos(steps * (np.pi / (2 * self.n_features)))
        lengths = np.sqrt(np.where(self._sample == 0, 1.0, 2.0) / self.dimension)
        return lengths[:, None] * cosines * self._signs[indices]

    def stretch(self) -> float:
        return self._scale

    def column_norms(self) -> np.ndarray:
        # The sum of squared cosines is half the number of them and half the sum of the cosines of
        # twice the angle: cosines of even orders, of which those above d are folded back.
        d, order = self.n_features, 2 * self._sample[self._sample > 0]
        weights = np.zeros(d)
        np.add.at(weights, order[order < d], 1.0)
        np.add.at(weights, 2 * d - order[order > d], -1.0)
        doubled = fft.dct(weights, type=3) / 2  # weights[0] is 0
        return np.sqrt(np.maximum(self.dimension + doubled, 0.0) / self.dimension)

    def rows_of_steps(self, x: Any, limit: Any) -> np.ndarray:
        unit = limit / X_STEPS
        rows = x.multiply(unit).tocsr() if sparse.issparse(x) else x * unit
        return self._rows(rows)

    def _rows(self, x: Any) -> np.ndarray:
        out = np.empty((x.shape[0], self.dimension))
        step = TOGETHER * max(1, BLOCK // (TOGETHER * self.n_features))
        for first in range(0, len(out), step):
            block = x[first : first + step]
            block = block.toarray() if sparse.issparse(block) else block
            rest = -len(block) % TOGETHER
            padded = np.vstack([block, np.zeros((rest, block.shape[1]))]) if rest else block
            mixed = fft.dct(padded * self._signs, norm="ortho", axis=1)[: len(block)]
            out[first : first + step] = self._scale * mixed[:, self._sample]
        return out


@dataclass(frozen=True, eq=False)
class GivenProjection(StoredProjection):
    """A projection that the user brings, because the data were compressed with it.

    Parameters
    ----------
    entries : array-like of shape (dimension, n_features)
        A public matrix. It must not depend on the rows.
    """

    entries: Any
    dimension: int = field(init=False)
    n_features: int = field(init=False)

    def __post_init__(self) -> None:
        try:
            entries = np.array(self.entries, dtype=np.float64, order="C")
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"A projection cannot be made from a {type(self.entries).__name__}: it must be a "
                "matrix of numbers. Pass a dense array with one row for each dimension."
            ) from None
        if entries.ndim != 2:
            raise InvalidArgument(
                f"The projection has shape {entries.shape}: it must be a matrix, one column for "
                "each feature. Pass a two-dimensional array."
            )
        if not np.all(np.isfinite(entries)):
            i, j = np.argwhere(~np.isfinite(entries))[0]
            raise InvalidArgument(
                f"The projection has the entry {entries[i, j]} in row {i} and column {j}: products "
                "with it would not be numbers. Pass finite numbers only."
            )
        _check_shape(*entries.shape)
        entries.flags.writeable = False
        object.__setattr__(self, "entries", entries)
        object.__setattr__(self, "dimension", entries.shape[0])
        object.__setattr__(self, "n_features", entries.shape[1])

    @property
    def stored(self) -> Any:
        return self.entries

    def __repr__(self) -> str:
        return f"GivenProjection(<{self.dimension} x {self.n_features} matrix>)"


def _check_shape(dimension: int, n_features: int) -> None:
    if not 1 <= dimension <= n_features:
        raise InvalidArgument(
            f"dimension={dimension} must lie between 1 and n_features={n_features}: a projection "
            "has fewer rows than columns, or it saves nothing. Choose a smaller dimension."
            if n_features >= 1
            else f"n_features={n_features} must be at least 1: there is nothing to project. "
            "Pass the number of columns."
        )


__all__ = [
    "GaussianProjection",
    "GivenProjection",
    "Projection",
    "SparseSignProjection",
    "StructuredProjection",
]

#: All of them, for whoever needs a list.
REGISTRY: Registry[Projection] = Registry(Projection, __name__)

#: The projections that can be asked for by name: those that a public seed makes.
PROJECTIONS: dict[str, type[SeededProjection]] = {
    each.name: each for each in REGISTRY.values() if issubclass(each, SeededProjection)
}
