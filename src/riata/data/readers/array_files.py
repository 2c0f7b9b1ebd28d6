"""Arrays on disk: NumPy and SciPy files, and sparse rows that are mapped into memory."""

from __future__ import annotations

import zipfile
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from riata.data.columns import Column, Numbers, Texts
from riata.data.readers.base import MatrixReader, Reader
from riata.data.schema.numeric_block import NumericBlock
from riata.errors import DataError

#: Rows of one piece.
PIECE_ROWS = 1 << 18
_SPARSE = ("data", "indices", "indptr")


class Header(NamedTuple):
    """What the beginning of a stored array says."""

    shape: tuple[int, ...]
    dtype: np.dtype


class ArrayFileReader(MatrixReader):
    """Rows `first` to `last` of stored arrays. Subclasses say where each array is."""

    def __init__(self, path: Path, first: int = 0, last: int | None = None) -> None:
        self.path = path
        self.title = str(path)
        self._shape: tuple[int, int] | None = None
        with self._careful():
            self._headers = self._read_headers()
        self._sparse = set(_SPARSE) <= self._headers.keys()
        self._check_arrays()
        self.first = first
        self.last = self._n_rows if last is None else last

    @abstractmethod
    def _read_headers(self) -> dict[str, Header]:
        """The header of each array."""

    @abstractmethod
    def _opened(self) -> dict[str, Any]:
        """The arrays themselves."""

    @property
    def _n_rows(self) -> int:
        if self._sparse:
            return self._headers["indptr"].shape[0] - 1
        return self._headers["x"].shape[0]

    def _check_arrays(self) -> None:
        sizes = dict.fromkeys(_SPARSE, 1) if self._sparse else {"x": 2}
        for name, dimensions in sizes.items():
            if name not in self._headers:
                raise DataError(
                    f"{self.title} holds neither the sparse arrays data, indices and indptr nor a "
                    "dense array x or X. Save it again with one of these names."
                )
            shape, dtype = self._headers[name]
            kinds = "iu" if name in ("indices", "indptr") else "biuf"
            if len(shape) != dimensions or dtype.kind not in kinds:
                raise DataError(
                    f"The array {name} of {self.title} has {len(shape)} dimensions and the type "
                    f"{dtype}, where {dimensions} of numbers are needed. Save it again."
                )
        if self._sparse and self._headers["indptr"].shape[0] < 1:
            raise self.damaged()
        if self._shape is not None and self._shape[0] != self._n_rows:
            raise self.damaged()

    def check_sizes(self, block: NumericBlock, target: bool) -> None:
        columns = self._columns()
        y_in_x = "y" not in self._headers and not self._sparse
        if columns is not None and columns != block.count + (target and y_in_x):
            raise DataError(
                f"{self.title} has {columns} columns, and the schema {block.count} features"
                f"{' and a target' if target and y_in_x else ''}. Correct count in the schema."
            )
        if not target or y_in_x:
            return
        if "y" not in self._headers:
            raise DataError(f"{self.title} holds no target y. Save one with it.")
        shape, dtype = self._headers["y"]
        if shape not in ((self._n_rows,), (self._n_rows, 1)) or dtype.kind not in "biufUS":
            raise DataError(
                f"The target y of {self.title} has the shape {shape} and the type {dtype}, where "
                f"one number or text for each of {self._n_rows} rows is needed. Save it again."
            )

    def _columns(self) -> int | None:
        """The number of columns, if a header says it."""
        return None if self._sparse else self._headers["x"].shape[1]

    @property
    def has_y(self) -> bool:
        """Whether targets have an array of their own."""
        return "y" in self._headers

    def n_columns(self) -> int:
        """The number of columns, from the entries if no header says it: for public rows only."""
        known = self._columns()
        with self._careful():
            return known or int(np.max(self._opened()["indices"], initial=0)) + 1

    def count(self) -> int:
        return self.last - self.first

    def pieces(self) -> list[Reader]:
        starts = range(self.first, self.last, PIECE_ROWS)
        return [type(self)(self.path, i, min(i + PIECE_ROWS, self.last)) for i in starts]

    def chunks(
        self, block: NumericBlock, rows: int, target: bool
    ) -> Iterator[tuple[sparse.csr_array, Column | None]]:
        with self._careful():
            arrays = self._opened()
        for start in range(self.first, self.last, rows):
            part = slice(start, min(start + rows, self.last))
            with self._careful():
                if self._sparse:
                    x = self._sparse_rows(arrays, part, block)
                else:
                    x = sparse.csr_array(np.asarray(arrays["x"][part, : block.count], np.float64))
                y = self._targets(arrays, part) if target else None
            yield x, y

    def _sparse_rows(
        self, arrays: dict[str, Any], part: slice, block: NumericBlock
    ) -> sparse.csr_array:
        ends = np.asarray(arrays["indptr"][part.start : part.stop + 1], dtype=np.int64)
        held = min(len(arrays["indices"]), len(arrays["data"]))
        if ends[0] < 0 or ends[-1] > held or np.any(np.diff(ends) < 0):
            raise self.damaged()
        stored = slice(int(ends[0]), int(ends[-1]))
        indices = np.asarray(arrays["indices"][stored], dtype=np.int64)
        values = np.asarray(arrays["data"][stored], dtype=np.float64)
        good = (indices >= 0) & (indices < block.count)
        indptr = np.concatenate([[0], np.cumsum(good)])[ends - ends[0]]
        shape = (len(ends) - 1, block.count)
        return sparse.csr_array((values[good], indices[good], indptr), shape=shape)

    def _targets(self, arrays: dict[str, Any], part: slice) -> Column:
        y = arrays["y"][part].reshape(-1) if "y" in arrays else arrays["x"][part, -1]
        y = np.asarray(y)
        return Texts.of(y.tolist()) if y.dtype.kind in "US" else Numbers(y)

    @contextmanager
    def _careful(self) -> Iterator[None]:
        with self.guarded(), np.errstate(all="ignore"):  # an overflow would tell of a value
            yield


class NumpyReader(ArrayFileReader):
    """A .npy file with a matrix, or an .npz file with x and y or with sparse rows and y."""

    def _read_headers(self) -> dict[str, Header]:
        if self.path.suffix == ".npy":
            with open(self.path, "rb") as file:
                return {"x": _header(file)}
        headers = {}
        with zipfile.ZipFile(self.path) as archive:
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as file:
                        headers[_as_x(name.removesuffix(".npy"))] = _header(file)
            if "shape" in headers:
                with np.load(self.path, allow_pickle=False) as arrays:
                    rows, columns = map(int, arrays["shape"])
                    self._shape = (rows, columns)
                    if "format" in headers and arrays["format"].item() not in (b"csr", "csr"):
                        raise DataError(
                            f"{self.title} holds sparse columns and not sparse rows. Save it "
                            "again with x.tocsr()."
                        )
        return headers

    def _columns(self) -> int | None:
        if not self._sparse:
            return super()._columns()
        return None if self._shape is None else self._shape[1]

    def _opened(self) -> dict[str, Any]:
        if self.path.suffix == ".npy":
            return {"x": np.load(self.path, mmap_mode="r", allow_pickle=False)}
        wanted = ("x", "y", *_SPARSE)
        with np.load(self.path, allow_pickle=False) as arrays:
            return {_as_x(name): arrays[name] for name in arrays.files if _as_x(name) in wanted}


class MappedArraysReader(ArrayFileReader):
    """A directory with data.npy, indices.npy, indptr.npy and perhaps y.npy."""

    def _read_headers(self) -> dict[str, Header]:
        headers = {}
        for name in (*_SPARSE, "y"):
            path = self.path / f"{name}.npy"
            if name != "y" or path.exists():
                with open(path, "rb") as file:
                    headers[name] = _header(file)
        return headers

    def _opened(self) -> dict[str, Any]:
        return {
            name: np.load(self.path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in self._headers
        }


def _as_x(name: str) -> str:
    return "x" if name == "X" else name


def _header(file: Any) -> Header:
    """The shape and the type of a stored array, without its values."""
    version = np.lib.format.read_magic(file)
    read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    shape, _, dtype = read[version[0]](file)
    return Header(shape, dtype)
