"""pandas, polars and every other frame that narwhals knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from riata.data.columns import Column, Dates, Numbers, Texts, from_objects
from riata.data.readers.base import TableReader, missing_package, repeated
from riata.errors import DataError


class FrameReader(TableReader):
    """A frame in memory."""

    def __init__(self, frame: Any) -> None:
        nw = narwhals()
        self.title = f"The {type(frame).__module__.split('.')[0]} frame"
        names = [str(name) for name in frame.columns]
        if repeated(names):
            raise DataError(
                f"{self.title} has several columns of one name, and no schema can tell them apart. "
                "Rename them."
            )
        try:
            self._frame = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise DataError(
                f"{self.title} has no rows in memory. Collect it first, or write it to Parquet."
            ) from None
        self._names = dict(zip(names, self._frame.columns, strict=True))
        self._kinds = {
            name: _kind(self._frame.get_column(own)) for name, own in self._names.items()
        }

    def kinds(self) -> dict[str, str]:
        return self._kinds

    def count(self) -> int:
        return len(self._frame)

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[tuple[int, dict[str, Column]]]:
        for start in range(0, len(self._frame), rows):
            part = self._frame[start : start + rows]
            found = {
                name: _column(part.get_column(self._names[name]), self._kinds[name])
                for name in names
            }
            yield len(part), found


def narwhals() -> Any:
    """The package narwhals, or an error that says how to get it."""
    try:
        import narwhals
    except ImportError:
        raise missing_package("Frames", "narwhals") from None
    return narwhals


def is_frame(value: Any) -> bool:
    """Whether a value is a frame in memory, by what it offers."""
    return hasattr(value, "columns") and (
        hasattr(value, "__arrow_c_stream__")
        or hasattr(value, "__dataframe__")
        or hasattr(value, "__narwhals_dataframe__")
    )


def refuse_lazy(value: Any) -> None:
    """A lazy frame would be computed again for each pass, and perhaps in another order."""
    if type(value).__name__ in ("LazyFrame", "DuckDBPyRelation"):
        raise DataError(
            f"A {type(value).__name__} has no rows yet. Collect it first, or write it to Parquet."
        )


def _kind(values: Any) -> str:
    nw, kind = narwhals(), values.dtype
    if kind == nw.Unknown and str(values.to_native().dtype).lower() in ("null", "null[pyarrow]"):
        return "text"  # all missing
    if kind == nw.Boolean:
        return "yes-no"
    if kind.is_numeric():
        return "number"
    if kind in (nw.Date, nw.Datetime):
        return "date"
    texts = (nw.String, nw.Categorical, nw.Enum, nw.Object)
    return "text" if any(kind == one for one in texts) else str(kind)


def _column(values: Any, kind: str) -> Column:
    """A series of a kind that can be read."""
    nw = narwhals()
    if kind == "text":
        if values.dtype == nw.String:
            return Texts.of(values.to_list())
        return from_objects(values.to_list())
    if values.dtype == nw.Decimal:
        return from_objects(values.to_list())
    if kind == "date":
        if values.dtype == nw.Date:  # which pandas makes objects of, if one is missing
            values = values.cast(nw.Datetime("ms"))
        return Dates(values.to_numpy())
    missing = values.is_null().to_numpy() if values.null_count() else None
    if missing is not None:
        values = values.fill_null(False if kind == "yes-no" else 0)
    return Numbers(values.to_numpy(), missing)
