"""Whatever holds values, as arrays of numbers of ordinary types: all that is in memory is read so.

What happens to a column follows from its declared type, which is public, and from no value. A type
that is not one of numbers is refused by its name. In a column of objects, whose type promises
nothing, each value is converted on its own, and what is no number is missing: NaN.

What comes out are dense arrays of float64, float32 or integers, and sparse rows of them as
CSR or CSC. Arrays that are so already are passed on as they are, without a copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from riata.errors import InvalidArgument

NUMERIC = "biuf"
_NUMBERS = (int, Fraction, Decimal, np.number, np.bool_)
_NO_NUMBERS = (np.complexfloating, np.timedelta64)  # which NumPy counts as numbers


def number(value: Any) -> float:
    """The number that a value of any type stands for, or NaN. Never an error or a warning."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return number_in_text(value)
    if isinstance(value, bytes):
        return number_in_text(value.decode("utf-8", "replace"))
    if not isinstance(value, _NUMBERS) or isinstance(value, _NO_NUMBERS):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # whole numbers and fractions have no largest one
        return math.inf if value > 0 else -math.inf
    except ValueError:  # Decimal has a NaN that raises
        return math.nan


def number_in_text(word: str) -> float:
    """The number that a text spells in ASCII, as Python writes it; NaN for all others."""
    if not word.isascii() or "_" in word:
        return math.nan
    try:
        return float(word)
    except ValueError:
        return math.nan


def as_numbers(values: Any, name: str) -> Any:
    """Numbers of an ordinary type in the shape of `values`: ndarray, CSR or CSC.

    Errors call the values by `name`.
    """
    with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
        if sparse.issparse(values):
            return _sparse(values, name)
        if isinstance(values, np.ma.MaskedArray):
            return _masked(values, name)
        if isinstance(values, np.ndarray):
            return _dense(values, name)
        if _is_list(values):
            return _nested(values, name)
        if _is_frame(values):
            return _frame(values, name)
        return _column(values, name)


def as_targets(values: Any, name: str = "y") -> np.ndarray:
    """The same for one number for each row; a list has its numbers bare or in brackets."""
    if _is_list(values):
        return _cells(_bare(values, name), (len(values),))
    found = as_numbers(values, name)
    if sparse.issparse(found):
        raise InvalidArgument(f"{name} is sparse, and targets must be dense. Use {name}.toarray().")
    return np.asarray(found)


def as_labels(values: Any, name: str = "y") -> np.ndarray:
    """Labels in the shape of `values`, in an array whose type does not follow from any of them."""
    if isinstance(values, np.ma.MaskedArray):
        found = np.ma.getdata(values).astype(object)
        found[np.ma.getmaskarray(values)] = None
        return found
    if isinstance(values, np.ndarray):  # NumPy's texts of any length compare with an error
        return values.astype(object) if values.dtype.kind == "T" else values
    if _is_list(values):
        return _objects(_bare(values, name))
    if _is_frame(values) and values.shape[1] == 1:
        _, (column,) = _columns(values)
        return as_labels(column, name)[:, None]
    return _labels_of_column(values)


def as_cells(values: Any) -> Any:
    """Cells of rows as they are, in an array whose type does not follow from any of them.

    Arrays and sparse rows are passed on. A list of rows becomes an array of objects: of each row
    only how long it is is looked at, and all must be of one length. A cell may be anything.
    """
    if sparse.issparse(values) or isinstance(values, np.ma.MaskedArray):
        return values
    if not _is_list(values):
        return _array(values, "X")
    shape = _shape(values, "X")
    return _objects([cell for row in values for cell in row]).reshape(shape)


def row_slices(n: int, width: int, numbers: int) -> Iterator[slice]:
    """0, ..., n - 1 in slices: rows of `width` numbers, together at most so many, or one row."""
    several = max(1, numbers // max(width, 1))
    for start in range(0, n, several):
        yield slice(start, min(start + several, n))


def _cells(values: Iterable[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Each value on its own."""
    with np.errstate(all="ignore"):
        return np.fromiter(map(number, values), np.float64, math.prod(shape)).reshape(shape)


def _objects(values: Sequence[Any]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        found[i] = value
    return found


def _dense(values: np.ndarray, name: str) -> np.ndarray:
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "O":
        return _cells(values.flat, values.shape)
    if kind not in NUMERIC:
        raise _refused(name, values.dtype, kind)
    if kind == "b":
        return np.asarray(values).view(np.uint8)
    wanted = values.dtype.newbyteorder("=")
    if kind == "f" and size < 4:
        wanted = np.dtype(np.float32)
    elif kind == "f" and (size > 8 or values.dtype.char == "g"):
        wanted = np.dtype(np.float64)
    return np.asarray(values).astype(wanted, copy=False)


def _masked(values: np.ma.MaskedArray, name: str) -> np.ndarray:
    found = np.array(_dense(np.ma.getdata(values), name), dtype=np.float64)
    found[np.ma.getmaskarray(values)] = math.nan
    return found


def _sparse(values: Any, name: str) -> Any:
    if values.dtype.kind not in NUMERIC:
        raise _refused(name, values.dtype, values.dtype.kind)
    if values.ndim != 2:
        raise InvalidArgument(f"Expected 2D array, got {values.ndim}D array instead.")
    if values.format not in ("csr", "csc"):  # entries at one place are added as in CSR: as floats
        values = values.astype(np.float64).tocsr()
    elif _stays(values.dtype):
        return values  # before the charge nothing of them is touched
    data = _dense(values.data, name)
    if data is values.data:
        return values
    return type(values)((data, values.indices, values.indptr), shape=values.shape)


def _stays(kind: np.dtype[Any]) -> bool:
    """Whether numbers of a type are read as they are."""
    plain = kind.kind in "iu" or (kind.kind == "f" and kind.char != "g" and kind.itemsize >= 4)
    return plain and kind.isnative


def _nested(values: Sequence[Any], name: str) -> np.ndarray:
    """A list of rows."""
    shape = _shape(values, name)
    return _cells((cell for row in values for cell in row), shape)


def _shape(values: Sequence[Any], name: str) -> tuple[int, int]:
    """Of a list of rows. Only how long they are is looked at: it is the shape, and public."""
    lengths = {len(row) if _is_row(row) else -1 for row in values}
    if -1 in lengths or not lengths:
        raise InvalidArgument(
            "Expected 2D array, got 1D array instead.\n"
            "Reshape your data: pass a list of rows, each a list of numbers."
        )
    if len(lengths) > 1:
        raise InvalidArgument(
            f"The rows of {name} have different lengths. Pass rows of one length, with None where "
            "a value is missing."
        )
    return len(values), lengths.pop()


def _bare(values: Sequence[Any], name: str) -> list[Any]:
    """One value for each row, out of its brackets."""
    wide = [len(value) for value in values if _is_row(value)]
    if len(wide) == len(values) and wide and min(wide) > 1:
        raise InvalidArgument(
            f"{name} should be a 1d array, got a list of rows instead. Pass one value for each row."
        )
    return [value[0] if _is_row(value) and len(value) == 1 else value for value in values]


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray)


def _is_row(values: Any) -> bool:
    return _is_list(values) or (isinstance(values, np.ndarray) and values.ndim == 1)


# Frames, and single columns of them. None of these packages is imported before a value of it comes.


def _package(values: Any) -> str:
    return type(values).__module__.split(".")[0]


def _is_frame(values: Any) -> bool:
    known = _package(values) in ("pandas", "polars", "pyarrow")
    return known and hasattr(values, "columns") and len(getattr(values, "shape", ())) == 2


def _columns(frame: Any) -> tuple[list[Any], list[Any]]:
    """The names of a frame's columns, and the columns."""
    package = _package(frame)
    if package == "pandas":  # by position: names may stand there twice
        return list(frame.columns), [frame.iloc[:, j] for j in range(frame.shape[1])]
    if package == "polars":
        return frame.columns, frame.get_columns()
    return frame.column_names, list(frame.columns)


def _frame(frame: Any, name: str) -> Any:
    whole = _same_type(frame, name)
    if whole is not None:
        return whole
    found = np.empty(frame.shape, order="F")
    for j, (title, column) in enumerate(zip(*_columns(frame), strict=True)):
        found[:, j] = _column(column, f"The column {title!r} of {name}")
    return found


def _same_type(frame: Any, name: str) -> Any:
    """A frame of one kind of numbers as a whole, without a copy where that is possible."""
    if _package(frame) == "polars":
        names = {str(kind) for kind in frame.dtypes}
        return frame.to_numpy() if names in ({"Float64"}, {"Float32"}) else None
    if _package(frame) != "pandas" or not frame.shape[1]:
        return None
    kinds = set(frame.dtypes)
    if all(isinstance(kind, np.dtype) and kind.kind in NUMERIC for kind in kinds):
        return _dense(frame.to_numpy(dtype=np.result_type(*kinds)), name)
    if all(_is_sparse_type(kind) and kind.kind in NUMERIC for kind in kinds) and not any(
        kind.fill_value for kind in kinds
    ):
        return _sparse(frame.sparse.to_coo(), name)
    return None


def _column(column: Any, name: str) -> np.ndarray:
    """One column of numbers, of any package."""
    package = _package(column)
    if package == "pandas" and hasattr(column, "dtype"):
        return _pandas_column(column, name)
    if package == "polars" and hasattr(column, "dtype"):
        return _polars_column(column, name)
    if package == "pyarrow" and hasattr(column, "type"):
        return _arrow_column(column, name)
    return _dense(_array(column, name), name)


def _array(values: Any, name: str) -> np.ndarray:
    """What says itself how it is an array."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        found = np.empty((), dtype=object)
    if found.ndim == 0:
        raise InvalidArgument(
            f"{name} is not numeric: it is a {type(values).__name__}, which has no rows. Expected "
            "array-like: pass an array, a data frame or a list."
        )
    return found


def _pandas_column(column: Any, name: str) -> np.ndarray:
    kind = column.dtype
    if isinstance(kind, np.dtype):
        return _dense(column.to_numpy(), name)
    if _is_sparse_type(kind):
        return _dense(np.asarray(column), name)
    if kind.kind in NUMERIC:  # also where nothing is missing, or the type would tell
        found: np.ndarray = column.to_numpy(dtype=np.float64, na_value=math.nan)
        return found
    if str(kind).startswith("decimal") or str(kind) == "null[pyarrow]":
        return _cells(column.to_numpy(dtype=object), (len(column),))
    raise _refused(name, kind, kind.kind)


def _is_sparse_type(kind: Any) -> bool:
    return hasattr(kind, "fill_value") and hasattr(kind, "subtype")


def _polars_column(column: Any, name: str) -> np.ndarray:
    import polars

    kind = column.dtype
    if kind == polars.Object:
        return _cells(column.to_list(), (len(column),))
    if kind.is_numeric() or kind in (polars.Boolean, polars.Null):
        found: np.ndarray = column.cast(polars.Float64).to_numpy()
        return found
    raise _refused(name, kind.base_type(), "")  # its name alone: categories may be values


def _arrow_column(column: Any, name: str) -> np.ndarray:
    import pyarrow

    types, kind = pyarrow.types, column.type
    if types.is_boolean(kind):
        column = column.cast(pyarrow.int8())
    elif not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    ):
        raise _refused(name, "dictionary" if types.is_dictionary(kind) else kind, "")
    found: np.ndarray = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def _labels_of_column(values: Any) -> np.ndarray:
    package = _package(values)
    if package == "polars":
        return _objects(values.to_list())
    if package == "pyarrow":
        return _objects(values.to_pylist())
    if package == "pandas" and not isinstance(getattr(values, "dtype", None), np.dtype):
        return np.asarray(values, dtype=object)
    return np.asarray(values)


def _refused(name: str, kind: Any, code: str) -> InvalidArgument:
    if code == "c":
        return InvalidArgument(
            f"Complex data not supported: {name} has the type {kind}. Pass real numbers."
        )
    return InvalidArgument(
        f"{name} is not numeric: its type is {kind}. Turn dates into days since a public day, and "
        "one-hot encode text and categorical columns from public lists; a Schema does so for "
        "files and frames."
    )
