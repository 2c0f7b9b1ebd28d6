"""Which columns of the rows are unpenalized: named, numbered, or marked in the schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from riata.data.schema import Schema
from riata.errors import InvalidArgument
from riata.wording import did_you_mean, shown


def unpenalized_columns(
    given: Any, n_features: int, names: Any = None, schema: Schema | None = None
) -> tuple[int, ...]:
    """The places of encoded columns that are always in the model, in increasing order.

    Parameters
    ----------
    given : array-like of str, int or bool, or None
        Names of columns or of features of the schema, which mean all their columns; indices; or
        whether each column is one. Beside them there are those that the schema marks.
    n_features : int
        The number of encoded columns.
    names : array-like of str, optional
        Of the encoded columns, without a schema.
    schema : Schema, optional
    """
    marked = () if schema is None else schema.unpenalized
    each = [*marked, *_listed(given, n_features)]
    known = _known(names, schema) if any(isinstance(one, str) for one in each) else {}
    places: set[int] = set()
    for one in each:
        places.update(_places(one, n_features, known))
    return tuple(sorted(places))


def _listed(given: Any, n_features: int) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidArgument(
            f"unpenalized={shown(given)} must be a list of columns: names, indices, or one truth "
            'value for each column, such as ["age", "sex"].'
        )
    listed = [one.item() if isinstance(one, np.generic) else one for one in given]
    if not (listed and all(isinstance(one, bool) for one in listed)):
        return listed
    if len(listed) != n_features:
        raise InvalidArgument(
            f"unpenalized has {len(listed)} truth values, and there are {n_features} columns. Pass "
            "one for each, or indices."
        )
    return np.flatnonzero(listed).tolist()


def _known(names: Any, schema: Schema | None) -> Mapping[str, list[int]]:
    """The columns of each name."""
    if schema is None:
        return {} if names is None else {str(name): [j] for j, name in enumerate(names)}
    columns = {name: [j] for j, name in enumerate(schema.feature_names)}
    return columns | schema.columns_of_features


def _places(one: Any, n_features: int, known: Mapping[str, list[int]]) -> list[int]:
    if isinstance(one, str) and one in known:
        return known[one]
    if isinstance(one, str):
        why = f"is no column.{did_you_mean(one, known)}" if known else (
            "is a name, and the columns have none. Pass a data frame or a source, or use indices."
        )  # fmt: skip
        raise InvalidArgument(f"unpenalized names {shown(one)}, which {why}")
    if type(one) is not int or not 0 <= one < n_features:
        raise InvalidArgument(
            f"unpenalized has {shown(one)}, which is neither a name nor an index of the "
            f"{n_features} columns, from 0."
        )
    return [one]
