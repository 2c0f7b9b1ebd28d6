"""The rows that `fit` is given: arrays, sources or Dask collections, with their public facts.

No value is read here: only shapes, types, names and schemas are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from riata.data.arrays import rows_and_targets
from riata.data.people import PeopleSource
from riata.data.source import Advance, Source
from riata.engines.choice import Arrays, RowSource, check_engine
from riata.errors import InvalidArgument
from riata.fitting.dask_rows import CollectionRows, Convert, is_collection, partitioned


class SourceRows(RowSource):
    """The rows of a source.

    Parameters
    ----------
    source : Source
    progress : bool
        Whether a bar is drawn while they are read.
    convert : callable, optional
        What targets go through, which can be pickled.
    """

    def __init__(self, source: Source, progress: bool, convert: Convert | None = None) -> None:
        self._source, self._progress, self._convert = source, progress, convert
        self.n_rows = source.n_rows
        self.schema = source.schema
        if isinstance(source, PeopleSource):
            self.rows_of_a_person = source.rows_of_a_person

    @property
    def shape(self) -> tuple[int, int]:
        return self._source.shape

    def keyed(self, key: bytes) -> SourceRows:
        """The same rows, where some are drawn at random by a secret key."""
        if not isinstance(self._source, PeopleSource):
            return self
        return SourceRows(self._source.keyed(key), self._progress, self._convert)

    def with_schema(self, schema: Any) -> SourceRows:
        """The same rows as another schema of their columns reads them."""
        return SourceRows(self._source.with_schema(schema), False, self._convert)

    @property
    def likely_entries(self) -> int:
        """About how many entries all rows have: a guess from public facts."""
        return self.n_rows * self._source.schema.likely_entries

    def load(self) -> tuple[Any, np.ndarray]:
        x, y = self._source.in_order(progress=self._progress)
        return x, self._converted(y)

    def blocks(self) -> Iterator[tuple[Any, np.ndarray]]:
        for x, y in self._source.blocks(progress=self._progress):
            yield x, self._converted(y)

    def pieces(self) -> list[Any]:
        from riata.engines.dask import InFile

        parts = self._source.pieces()
        if parts == [self._source]:  # nobody else can read it, or not in parts
            return Arrays(*self.load()).pieces()
        return [InFile(SourceRows(part, False, self._convert)) for part in parts]

    def watched(self) -> AbstractContextManager[Advance]:
        return self._source.bar(self._progress)

    def _converted(self, y: Any) -> np.ndarray:
        return y if self._convert is None else self._convert(y)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and targets as a user gives them.

    Attributes
    ----------
    shape : tuple of int
    with_targets : callable
        From a function that targets go through, or None, to the `RowSource` that engines read.
    encoded : bool
        Whether labels are codes of the schema's classes already.
    rows_of_a_person : int or None
        None if a row is what is protected.
    """

    shape: tuple[int, int]
    with_targets: Callable[[Convert | None], RowSource]
    encoded: bool = False
    rows_of_a_person: int | None = None


def read_table(estimator: Any, x: Any, y: Any, *, classifies: bool, numeric: bool) -> Table:
    """The rows and targets of `estimator.fit(x, y)`: arrays, a source, or Dask collections.

    As scikit-learn's own `validate_data` it sets `n_features_in_` and, if the columns have names,
    `feature_names_in_`; and the `schema_` of a source. Those of an earlier fit are forgotten.

    Parameters
    ----------
    estimator : estimator
    x, y
        As for `fit`.
    classifies : bool
        Whether the target of a schema must have classes.
    numeric : bool
        Whether targets that are not of a source are numbers, and not labels.
    """
    vars(estimator).pop("schema_", None)
    if isinstance(x, Source):
        return _source(estimator, x, y, classifies)
    if is_collection(x):
        x, y, names = partitioned(x, y, numeric=numeric)
        _set_columns(estimator, x.shape[1], names)
        rows = partial(CollectionRows, x, y, x.chunks[0], estimator.verbose)
        return Table(x.shape, rows)
    x, y = rows_and_targets(estimator, x, y, numeric=numeric)
    return Table(x.shape, partial(Arrays, x, y))


def _set_columns(estimator: Any, n_features: int, names: np.ndarray | None) -> None:
    estimator.n_features_in_ = n_features
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = names


def _source(estimator: Any, source: Source, y: Any, classifies: bool) -> Table:
    name, schema = type(estimator).__name__, source.schema
    if y is not None:
        raise InvalidArgument("A source has its own target. Leave y out: fit(source).")
    if not source.has_target:
        raise InvalidArgument(
            f"{name} needs a target, and the source has none. Add [target] to the schema, with "
            "its name and its bounds or classes, and read the rows with it."
        )
    if classifies != (schema.classes is not None):
        kinds = ("classes", "numbers") if classifies else ("numbers", "classes")
        raise InvalidArgument(
            f"{name} predicts {kinds[0]}, and the target of the schema has {kinds[1]}. Choose "
            "another estimator, or correct the target of the schema."
        )
    _check_events(estimator, schema)
    each = None
    if isinstance(source, PeopleSource):
        _check_people(estimator, source)
        source = _read_by_workers(source) if estimator.engine == "dask" else source
        each = source.rows_of_a_person
    if estimator.fits_curves:
        schema = schema.for_fit(source.n_rows, estimator.epsilon)
        source = source.with_schema(schema)
    estimator.schema_ = schema
    names = None if schema.unnamed else np.array(schema.feature_names, dtype=object)
    _set_columns(estimator, source.n_features, names)
    return Table(
        source.shape,
        partial(SourceRows, source, estimator.verbose),
        schema.classes is not None,
        each,
    )


def _check_events(estimator: Any, schema: Any) -> None:
    if estimator.reads_events == bool(schema.target.event):
        return
    name = type(estimator).__name__
    if estimator.reads_events:
        raise InvalidArgument(
            f"{name} needs a duration and an event, and the target of the schema is a number. Name "
            'the column of the event: event = "..." under [target].'
        )
    raise InvalidArgument(
        f"The target of the schema is a duration with the event {schema.target.event!r}, and "
        f"{name} would take it for a number. Use PrivateCoxRegression, or take event out of the "
        "schema."
    )


def _check_people(estimator: Any, source: PeopleSource) -> None:
    if source.seeded and estimator.random_state is None:
        raise InvalidArgument(
            "The source was read with a random_state: which rows of a person are used is known, "
            "and the fit would protect nobody. Read it without, or pass random_state to "
            f"{type(estimator).__name__} too."
        )


def _read_by_workers(source: PeopleSource) -> PeopleSource:
    """The same people: neither ids nor rows of their files come into this process."""
    check_engine("dask")
    from riata.engines.gather import gather

    return source.gathered(gather)
