"""Neighbours that differ by one hostile row, in every container that `fit` takes."""

import datetime
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

N_ROWS, N_COLUMNS = 24, 6

SIGNALLING = np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)[0]

#: Cells of one row, for containers whose type holds them. A row has several of them.
FLOATS = [
    [math.nan] * 6,
    [math.inf] * 6,
    [-math.inf, math.inf, math.nan, 0.0, 1.0, -1.0],
    [1e308, -1e308, 1e308, 1e308, 1e308, -1e308],
    [5e-324, -5e-324, 1e-320, 0.0, -0.0, 1e-308],
    [-0.0] * 6,
    [0.0] * 6,
    [1.0] * 6,
    [SIGNALLING] * 6,
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.3],
]
SMALL_FLOATS = [
    [math.nan, math.inf, -math.inf, 65504.0, 6e-8, -0.0],
    [65504.0] * 6,
    [0.0] * 6,
    [-math.inf] * 6,
    [1.0] * 6,
]
LONG = [
    [np.longdouble("1e4000")] * 6,
    [np.longdouble("-1e4000"), np.longdouble("1e-4900"), 0, 1, math.nan, math.inf],
    *FLOATS[:8],
]
WHOLE = [
    [2**63 - 1] * 6,
    [-(2**63), 2**63 - 1, 0, 1, -1, 2**53 + 1],
    [0] * 6,
    [1] * 6,
    [0, 0, 0, 0, 0, 9],
]
BYTES = [[255] * 6, [0] * 6, [0, 0, 0, 0, 0, 1], [127, 128, 255, 0, 1, 2]]
TRUTHS = [[1] * 6, [0] * 6, [0, 0, 0, 0, 0, 1]]
OBJECTS = [
    [value] * 6
    for value in (
        None, pd.NA, pd.NaT, math.nan, SIGNALLING, Decimal("1e400"), Decimal("sNaN"),
        Decimal("0.5"),
        Fraction(10**400, 3), 10**400, -(10**400), "canary", "", "0.5", "1_0", "\0", "\ud800", b"x",
        1j, np.complex64(1), True, np.float16(3), np.longdouble("1e4000"), np.timedelta64(3, "D"),
        np.datetime64("2001-01-01"), datetime.date(2001, 1, 1), pd.Timestamp("2001-01-01"),
        datetime.timedelta(1), [1.0, 2.0], (), {}, np.zeros(2), np.zeros((1, 1)), object(), len,
    )
]  # fmt: skip
MISSING = [[None] * 6, [None, 0.5, None, 1.0, None, 0.0], [0.0] * 6, [1.0] * 6]


@dataclass(frozen=True)
class Container:
    """Something that holds rows and targets.

    Attributes
    ----------
    rows : callable
        From a table of cells, an array of objects, to what `fit` takes as X.
    hostile : list
        Rows that its type can hold.
    targets : callable, optional
        The same for numbers as y; NumPy's float64 if left out.
    """

    rows: Any
    hostile: list
    targets: Any = None
    labels: Any = None


def _typed(kind, order="C"):
    return lambda cells: np.array(cells.astype(kind), order=order)


def _signalling(cells):
    """Of float32, with the kind of NaN that warns wherever there is one."""
    found = cells.astype(np.float32)
    found.view(np.uint32)[np.isnan(found)] = 0x7F800001
    return found


def _sparse(format, kind=np.float64, array=True, wide=False, made=None):
    def rows(cells):
        dense = cells.astype(kind)
        at = np.nonzero((dense != 0) | np.signbit(dense.astype(np.float64)))  # -0.0 is stored
        make = sparse.coo_array if array else sparse.coo_matrix
        found = make((dense[at], at), shape=dense.shape).asformat(format)
        if wide:
            found.indices, found.indptr = found.indices.astype(np.int64), found.indptr.astype("i8")
        return found if made is None else made(found)

    return rows


def _explicit_zeros(found):
    """Every place is stored."""
    dense = found.toarray()
    rows, columns = np.indices(dense.shape).reshape(2, -1)
    return sparse.coo_array((dense.ravel(), (rows, columns)), shape=dense.shape).tocsr()


def _repeated_and_unsorted(found):
    """Each entry as two halves, the last column first."""
    with np.errstate(all="ignore"):
        halves, indices, ends = [], [], [0]
        for i in range(found.shape[0]):
            few = slice(found.indptr[i], found.indptr[i + 1])
            halves += [found.data[few][::-1] / 2] * 2
            indices += [found.indices[few][::-1]] * 2
            ends.append(ends[-1] + 2 * (few.stop - few.start))
    parts = (np.concatenate(halves), np.concatenate(indices), np.array(ends))
    return sparse.csr_array(parts, shape=found.shape)


def _frame(kind, package=pd):
    def rows(cells):
        return pd.DataFrame(
            {f"c{j}": pd.array(list(cells[:, j]), dtype=kind) for j in range(cells.shape[1])}
        )

    return rows


def _numpy_frame(cells):
    return pd.DataFrame(cells.astype(np.float64), columns=[f"c{j}" for j in range(cells.shape[1])])


def _mixed_frame(cells):
    """A column of each kind, and one of objects."""
    kinds = [
        "float64",
        "Float64",
        object,
        "float32",
        pd.SparseDtype(float, 0.0),
        "float64[pyarrow]",
    ]
    made = {}
    for j in range(cells.shape[1]):
        values = [math.nan if value is None else value for value in cells[:, j]]
        made[f"c{j}"] = pd.Series(values).astype(kinds[j % len(kinds)])
    return pd.DataFrame(made)


def _sparse_frame(fill):
    def rows(cells):
        return _numpy_frame(cells).astype(pd.SparseDtype(float, fill))

    return rows


def _decimals(cells):
    values = [[None if v is None else Decimal(str(v)) for v in column] for column in cells.T]
    kind = pd.ArrowDtype(pa.decimal128(38, 9))
    return pd.DataFrame({f"c{j}": pd.array(v, dtype=kind) for j, v in enumerate(values)})


def _polars(kind):
    return lambda cells: pl.DataFrame(
        {f"c{j}": pl.Series(list(cells[:, j]), dtype=kind) for j in range(cells.shape[1])}
    )


def _polars_labels(y):
    return pl.Series(
        [label if isinstance(label, str) and label.isprintable() else None for label in y]
    )


def _arrow(cells):
    return pa.table(
        {f"c{j}": pa.array(list(column), pa.float64()) for j, column in enumerate(cells.T)}
    )


def _masked(cells):
    missing = np.array([[value is None for value in row] for row in cells])
    return np.ma.MaskedArray(np.where(missing, 7.0, cells).astype(np.float64), missing)


def _object_array(cells):
    found = np.empty(cells.shape, dtype=object)
    for place in np.ndindex(cells.shape):
        found[place] = cells[place]
    return found


def _object_vector(values):
    found = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        found[i] = value
    return found


def _object_series(values):
    return pd.Series(_object_vector(values), dtype=object)


CONTAINERS = {
    "float64, C": Container(_typed(np.float64), FLOATS),
    "float64, Fortran": Container(_typed(np.float64, "F"), FLOATS),
    "float64, other byte order": Container(_typed(">f8"), FLOATS),
    "float64, every other row": Container(
        lambda cells: np.repeat(cells.astype(np.float64), 2, axis=0)[::2], FLOATS
    ),
    "float32": Container(_signalling, FLOATS, lambda y: np.array(y, dtype=np.float32)),
    "float16": Container(_typed(np.float16), SMALL_FLOATS, lambda y: np.array(y, np.float16)),
    "longdouble": Container(_typed(np.longdouble), LONG, lambda y: np.array(y, np.longdouble)),
    "longdouble, Fortran": Container(_typed(np.longdouble, "F"), LONG),
    "int64": Container(_typed(np.int64), WHOLE, lambda y: np.array(y, dtype=np.int64)),
    "uint8": Container(lambda cells: np.abs(cells.astype(np.int64)).astype(np.uint8), BYTES),
    "bool": Container(_typed(bool), TRUTHS, lambda y: np.array(y, dtype=bool)),
    "objects": Container(_object_array, OBJECTS, _object_vector, _object_vector),
    "lists": Container(lambda cells: [list(row) for row in cells], OBJECTS, list, list),
    "masked": Container(_masked, MISSING),
    "CSR": Container(_sparse("csr"), FLOATS),
    "CSR matrix": Container(_sparse("csr", array=False), FLOATS),
    "CSR, 64-bit indices": Container(_sparse("csr", wide=True), FLOATS),
    "CSR, zeros stored": Container(_sparse("csr", made=_explicit_zeros), FLOATS),
    "CSR, repeated and unsorted": Container(_sparse("csr", made=_repeated_and_unsorted), FLOATS),
    "CSR, longdouble": Container(_sparse("csr", np.longdouble), LONG),
    "CSR, float32": Container(_sparse("csr", np.float32), FLOATS),
    "CSR, int64": Container(_sparse("csr", np.int64), WHOLE),
    "CSR, bool": Container(_sparse("csr", bool), TRUTHS),
    "CSC": Container(_sparse("csc"), FLOATS),
    "CSC, float32": Container(_sparse("csc", np.float32), FLOATS),
    "CSC, longdouble": Container(_sparse("csc", np.longdouble), LONG),
    "CSC, 64-bit indices": Container(_sparse("csc", wide=True), FLOATS),
    "COO": Container(_sparse("coo"), FLOATS),
    "BSR": Container(_sparse("bsr"), FLOATS),
    "LIL": Container(_sparse("lil"), FLOATS),
    "DOK": Container(_sparse("dok"), FLOATS),
    "DIA": Container(_sparse("dia"), FLOATS),
    "pandas": Container(_numpy_frame, FLOATS, pd.Series),
    "pandas, mixed": Container(_mixed_frame, FLOATS, lambda y: pd.Series(y, dtype="Float64")),
    "pandas, objects": Container(
        lambda cells: pd.DataFrame(_object_array(cells), dtype=object), OBJECTS,
        _object_series, _object_series,
    ),
    "pandas Float64": Container(
        _frame("Float64"), MISSING, lambda y: pd.Series(y, dtype="Float64")
    ),
    "pandas, Arrow": Container(_frame("double[pyarrow]"), MISSING),
    "pandas, decimals": Container(_decimals, MISSING),
    "pandas, sparse": Container(_sparse_frame(0.0), FLOATS),
    "pandas, sparse with NaN": Container(_sparse_frame(math.nan), FLOATS),
    "polars": Container(_polars(pl.Float64), MISSING, pl.Series, _polars_labels),
    "polars, float32": Container(_polars(pl.Float32), MISSING),
    "polars, decimals": Container(
        lambda cells: _polars(pl.Float64)(cells).cast(pl.Decimal(38, 9)), MISSING
    ),
    "polars, objects": Container(_polars(pl.Object), OBJECTS),
    "Arrow": Container(_arrow, MISSING),
}  # fmt: skip

#: Targets of the row that differs.
NUMBERS = [SIGNALLING, math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.0, 1.0]
ODD_LABELS = [None, "canary", "", "\0", "\ud800", math.nan, 3, b"no", pd.NA, [1], {}, np.zeros(2)]


@dataclass(frozen=True)
class Rows:
    """Rows and targets, as `fit` takes them."""

    x: Any
    y: Any
    about: str

    def __repr__(self):
        return self.about


def _scene(scene, labels):
    """A table of cells with targets, in which a row will be replaced, and which row that is."""
    rng = np.random.default_rng(7)
    zeros = np.zeros((N_ROWS, N_COLUMNS))
    ordinary = rng.integers(-1, 2, zeros.shape).astype(np.float64)
    mixed = rng.integers(0, 2, N_ROWS)
    several = [float(k) if labels is None else labels[k] for k in mixed]
    same = [several[0]] * N_ROWS
    return {
        "zeros": (zeros, same, 0),
        "ordinary": (ordinary, several, N_ROWS - 1),
        "constant": (np.ones_like(zeros), several, 5),
        "alone": (np.vstack([zeros[1:], ordinary[:1]]), same, N_ROWS - 1),
    }[scene]


SCENES = ("zeros", "ordinary", "constant", "alone")


def neighbours(container, labels, scene):
    """Rows, and those that differ from them by one row."""
    table, y, place = _scene(scene, labels)
    others = []
    for i, cells in enumerate(container.hostile):
        replaced = _object_array(table.astype(object))
        for j, value in enumerate(cells):
            replaced[place, j] = value
        target = _target(container, i, labels)
        about = f"{scene}, row {place} is {cells!r}, {target!r}"
        targets = [*y[:place], target, *y[place + 1 :]]
        others.append(_made(container, replaced, targets, about, labels))
    return _made(container, table, y, scene, labels), others


def _target(container, i, labels):
    """The target of the row that differs, which the container must be able to hold."""
    if labels is not None:
        return [*labels, *ODD_LABELS][i % (len(labels) + len(ODD_LABELS))]
    if container.targets and container.hostile is OBJECTS:
        return OBJECTS[i][0]
    if container.targets and (container.hostile is WHOLE or container.hostile is TRUTHS):
        return i % 2
    return NUMBERS[i % len(NUMBERS)]


def _made(container, table, y, about, labels):
    with np.errstate(all="ignore"):
        table = _object_array(np.asarray(table, dtype=object))
        x = container.rows(table)
        if labels is not None:
            return Rows(x, (container.labels or _object_vector)(y), about)
        targets = container.targets or (lambda y: np.array(y, dtype=np.float64))
        return Rows(x, targets(y), about)
