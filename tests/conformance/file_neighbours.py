"""Files and frames with a schema that differ by one hostile row, or by one hostile person."""

import datetime
import gzip
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from neighbours import FLOATS, LONG, OBJECTS, SIGNALLING

N_ROWS = 24
NAMES = ["age", "ward", "smoker", "note", "cost"]

#: One line of a text file, whatever is in it.
LINES = [
    b"", b",,,,", b'"', b'"41,north,yes,a fall,0.5', b'41,north,yes,"a ""fall",0.5',
    b'41,north,yes,"a\rfall",0.5', b"1e999,-1e999,1e999,1e999,1e999", b"\0,\0,\0,\0,\0",
    b"\xff\xfe,\xff,\xff,\xff,\xff", b"\xed\xa0\x80,\xed\xa0\x80,,,", b"1,2,3,4,5,6,7,8",
    b"1", b"nan,nan,nan,nan,nan", b"inf,inf,inf,inf,-inf", b"1_0,1_0,1_0,1_0,1_0",
    "١٢,١٢,١٢,١٢,١٢".encode(), b"41,north,yes," + b"x" * 140_000 + b",0.5",
    b'41,north,yes,"' + b"x" * 140_000 + b'",0.5', b"   ,  ,  ,  ,  ", b"41,north,yes,a fall,1",
    b"99,moon,maybe,word word word,0", b"#", b"5e-324,5e-324,5e-324,5e-324,5e-324", b"\r", b"\x1a",
]  # fmt: skip
PLAIN = b"50,south,no,,0"
SVMLIGHT = [
    b"", b"#", b"1", b"1 1:1", b"1 1:nan 2:inf 3:-inf", b"1 0:1 9:1 -1:1", b"x 1:1",
    b"1 1:1 1:1 1:1",
    b"1 3:1 1:1 2:1", b"nan 1:1e999", b"1 99999999999999999999:1", b"\0 \0:\0", b"\xff 1:\xff",
    b"0 1:0 2:0 3:0 4:0 5:0 6:0", b"1 1:5e-324", b": : :", b"1:1 2:2", b"1 1:1_0",
]  # fmt: skip
CELLS = [
    (None, None, None, None, None),
    (math.nan, "", "", "", math.nan),
    (math.inf, "\0", "\0", "\0", -math.inf),
    (1e308, "moon", "maybe", "word " * 50, 1e308),
    (5e-324, "north", "yes", "a fall", -0.0),
    (SIGNALLING, "south", "no", "", SIGNALLING),
    (0.0, " north ", "1", "\n\r\t", 1.0),
]

FEATURES = [
    {"name": "age", "kind": "number", "bounds": [0, 100]},
    {"name": "ward", "kind": "choice", "choices": ["north", "south"]},
    {"name": "smoker", "kind": "yes-no"},
    {"name": "note", "kind": "text", "buckets": 3},
]
#: The same columns as other kinds of features.
OTHERS = [
    {"name": "age", "kind": "count", "most": 100, "knots": 4},
    {"name": "ward", "kind": "hash", "buckets": 3},
    {"name": "smoker", "kind": "date", "bounds": ["2013-01-01", "2013-12-31"]},
    {"name": "note", "kind": "text", "buckets": 3, "ngrams": 2},
    {"kind": "interaction", "of": ["age", "smoker"]},
]
MORE = [
    {"name": "age", "kind": "number", "bounds": [0, 100], "bins": 3},
    {"name": "ward", "kind": "choice", "choices": ["north", "south", "east"], "ordered": True},
    *OTHERS[2:],
]
DATES = [b"2013-05-17", b"2013-13-41", b"9999-12-31T23:59:59.999999+23:59", b"0001-01-01", b"2013"]


@dataclass(frozen=True)
class Kind:
    """A kind of file or frame.

    Attributes
    ----------
    plain : object
        A row in which nothing is remarkable.
    hostile : list
        Rows that one of them is replaced by.
    write : callable
        From rows and a folder to what `riata.read` takes.
    wide : bool
        Whether it has no named columns.
    features : list
        What its columns are.
    """

    plain: Any
    hostile: list
    write: Any
    wide: bool = False
    features: Any = None


def _text(name, header=b"age,ward,smoker,note,cost\n", opened=open):
    def write(rows, folder):
        path = folder / name
        with opened(path, "wb") as file:
            file.write(header + b"".join(row + b"\n" for row in rows))
        return path

    return write


def _columns(rows):
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


def _arrow(rows, folder=None):
    kinds = [pa.float64(), pa.string(), pa.string(), pa.string(), pa.float64()]
    columns = _columns(rows)
    return pa.table({n: pa.array(columns[n], k) for n, k in zip(NAMES, kinds, strict=True)})


def _parquet(rows, folder):
    pq.write_table(_arrow(rows), folder / "rows.parquet", row_group_size=9)
    return folder / "rows.parquet"


def _polars(rows, folder):
    return pl.DataFrame(_columns(rows), schema=_POLARS, strict=False)


_POLARS = dict(zip(NAMES, [pl.Float64, pl.String, pl.String, pl.String, pl.Float64], strict=True))


def _pandas(rows, folder):
    kinds = ["float64", "str", "category", object, "Float64"]
    columns = _columns(rows)
    return pd.DataFrame(
        {
            n: pd.Series(columns[n], dtype=object).astype(k)
            for n, k in zip(NAMES, kinds, strict=True)
        }
    )


def _times(rows, folder):
    """With a column of a type for times, far beyond those of Python."""
    columns = _columns(rows)
    columns["smoker"] = pl.Series(columns["smoker"], dtype=pl.Int64).cast(pl.Datetime("us"))
    return pl.DataFrame(columns, schema=_POLARS | {"smoker": pl.Datetime("us")}, strict=False)


def _arrow_dates(rows, folder):
    """With a column of dates, of which pandas makes objects where one is missing."""
    columns = _columns(rows)
    columns["smoker"] = pd.array(columns["smoker"], dtype=pd.ArrowDtype(pa.date32()))
    return pd.DataFrame(columns)


def _objects(rows, folder):
    return pd.DataFrame(
        {name: pd.Series(column, dtype=object) for name, column in _columns(rows).items()}
    )


def _decimal(value):
    return (
        None
        if value is None or not math.isfinite(value) or abs(value) > 1e9
        else Decimal(f"{value:.9f}")
    )


def _decimals(rows, folder):
    columns, kind = _columns(rows), pa.decimal128(38, 9)
    for name in ("age", "cost"):
        columns[name] = pa.array([_decimal(v) for v in columns[name]]).cast(kind, safe=False)
    return pa.table(columns)


def _numpy(kind, name="rows.npz"):
    def write(rows, folder):
        with np.errstate(all="ignore"):
            x = np.array(rows, dtype=object).astype(kind)
        if name.endswith(".npy"):
            np.save(folder / name, np.hstack([x, x[:, :1]]))
        else:
            np.savez(folder / name, x=x, y=x[:, 0])
        return folder / name

    return write


KINDS = {
    "CSV": Kind(PLAIN, LINES, _text("rows.csv")),
    "CSV, compressed": Kind(PLAIN, LINES, _text("rows.csv.gz", opened=gzip.open)),
    "TSV": Kind(
        PLAIN.replace(b",", b"\t"),
        [line.replace(b",", b"\t") for line in LINES],
        _text("rows.tsv", b"age\tward\tsmoker\tnote\tcost\n"),
    ),
    "Parquet": Kind((50.0, "south", "no", "", 0.0), CELLS, _parquet),
    "Arrow": Kind((50.0, "south", "no", "", 0.0), CELLS, _arrow),
    "Arrow, decimals": Kind((50.0, "south", "no", "", 0.0), CELLS, _decimals),
    "polars": Kind((50.0, "south", "no", "", 0.0), CELLS, _polars),
    "pandas": Kind((50.0, "south", "no", "", 0.0), CELLS, _pandas),
    "pandas, objects": Kind(
        (50.0, "south", "no", "", 0.0),
        [*CELLS, *([value[0]] * 5 for value in OBJECTS), [datetime.time(1)] * 5],
        _objects,
    ),
    "CSV, other kinds": Kind(
        PLAIN,
        [*LINES, *(b"41,north," + date + b",a fall,0.5" for date in DATES)],
        _text("others.csv"),
        features=OTHERS,
    ),
    "polars, times": Kind(
        (50.0, "south", 0, "", 0.0),
        [
            (*row[:2], time, *row[3:])
            for row, time in zip(CELLS, [None, 2**62, -(2**62), 1, -1, 2**40, 2**50], strict=True)
        ],
        _times,
        features=MORE,
    ),
    "pandas, Arrow dates": Kind(
        (50.0, "south", datetime.date(2013, 5, 17), "", 0.0),
        [
            (*row[:2], day, *row[3:])
            for row, day in zip(CELLS, [None, *[datetime.date(1, 1, 1)] * 6], strict=True)
        ],
        _arrow_dates,
        features=MORE,
    ),
    "pandas, more kinds": Kind(
        (50.0, "south", "no", "", 0.0),
        [*CELLS, (7, "east", "2013-05-17", "a", 1.0)],
        _pandas,
        features=MORE,
    ),
    "svmlight": Kind(b"1", SVMLIGHT, _text("rows.svmlight", b""), wide=True),
    "NumPy": Kind([0.0] * 6, FLOATS, _numpy(np.float64), wide=True),
    "NumPy, longdouble": Kind([0.0] * 6, LONG, _numpy(np.longdouble), wide=True),
    "NumPy, one matrix": Kind([0.0] * 6, FLOATS, _numpy(np.float64, "rows.npy"), wide=True),
}


def schema(kind, classes):
    """The public facts about a kind's rows."""
    target = {"classes": [0, 1]} if classes else {"bounds": [-1, 1]}
    if KINDS[kind].wide:
        return {"features": {"count": 6, "bound": 1.0}, "target": target}
    features = KINDS[kind].features or FEATURES
    return {"features": features, "target": {"name": "cost"} | target}


def neighbours(kind):
    """Rows, and all that differ from them by one: the first, or the last."""
    found = KINDS[kind]
    rows = [found.plain] * N_ROWS
    others = [
        [row, *rows[1:]] if i % 2 else [*rows[:-1], row] for i, row in enumerate(found.hostile)
    ]
    return rows, others


#: Rows of one person, of whom a file has any number.
OF_PEOPLE = [
    [],
    [b"p7,1,north,yes,word,1"] * 40,
    [b"p7"],
    [b'"p7'],
    [b'"p7",,,,,'],
    [b"p7,1,north,yes,word,1"],
    [b"p7,nan,,,,inf", b"p7,1,south,no,,1"],
    [b",1,north,yes,word,1"] * 3,
    [b"p7,1e999,\0,\0,\0,1e999"] * 9,
]


def people(k):
    """A schema of people, lines of them, and lines that differ by those of one person."""
    table = schema("CSV", False) | {"person": "id", "rows_of_a_person": k, "people": N_ROWS}
    lines = [f"p{i},50,south,no,,0".encode() for i in range(N_ROWS)]
    others = [[*lines[:7], *of_one, *lines[8:]] for of_one in OF_PEOPLE]
    moved = [[*lines[:7], *lines[8:], *of_one] for of_one in OF_PEOPLE]
    return table, lines, others + moved


write_people = _text("people.csv", b"id,age,ward,smoker,note,cost\n")
