"""A schema as a step of scikit-learn's pipelines, which learns nothing from rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from riata.bounds import Bounds
from riata.data.columns import Column, Numbers, from_objects
from riata.data.formats import as_schema, read
from riata.data.readers.frames import is_frame
from riata.data.schema import Schema
from riata.data.schema.named_features import NamedFeatures
from riata.data.source import Source
from riata.errors import InvalidArgument
from riata.numeric import NUMERIC, as_cells, as_numbers


class SchemaEncoder(TransformerMixin, BaseEstimator):
    """Encode rows as a public schema says: a transformer without a state.

    A scaler or a vectoriser that is fitted to private rows releases what it learned, and no budget
    pays for that. This one learns nothing, so a pipeline of it and an estimator of riata is as
    private as the estimator.

    Parameters
    ----------
    schema : Schema, path or dict
        What the columns are. Its target is not looked at. Numbers without `knots` or `bins` are
        straight lines; ``schema.for_fit(n_rows, epsilon)`` has the knots of a fit from a source.

    Examples
    --------
    >>> import pandas as pd
    >>> from riata import SchemaEncoder
    >>> encoder = SchemaEncoder({"features": [
    ...     {"name": "age", "kind": "number", "bounds": [0, 100], "center": 0},
    ...     {"name": "ward", "kind": "choice", "choices": ["north", "south"]},
    ... ]})
    >>> encoder.transform(pd.DataFrame({"age": [50, 200], "ward": ["south", "moon"]})).toarray()
    array([[0.5, 0. , 1. , 0. ],
           [1. , 0. , 0. , 1. ]])
    >>> encoder.bounds
    Bounds(x=1.0, y=None, norm='inf', nonnegative=True)
    """

    def __init__(self, schema: Schema | str | Path | Mapping[str, Any]) -> None:
        self.schema = schema

    @property
    def _checked(self) -> Schema:
        schema = as_schema(self.schema)
        if schema.person:
            raise InvalidArgument(
                f"The schema names the person column {schema.person!r}, and a pipeline sees rows "
                "one by one. Fit a source, or take person out of the schema."
            )
        return schema

    @property
    def bounds(self) -> Bounds:
        """What encoded rows keep, and targets as they are given: for the estimator after it."""
        schema = self._checked
        target = schema.target
        if target is None or target.bounds is None:
            return schema.bounds
        return replace(schema.bounds, y=max(map(abs, target.bounds)))

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the schema. Nothing is learned from the rows, and none is read."""
        _ = self._checked
        return self

    def transform(self, X: Any) -> sparse.csr_array:
        """Encoded rows of a frame, a source, or an array with the schema's columns in order.

        A list of rows is read cell by cell. How many rows it has and how long they are is public,
        and they must be of one length; what a cell holds decides that row's encoding alone.
        """
        schema = self._checked
        if isinstance(X, Source):
            return X.plain().with_schema(X.schema.with_features(schema.features)).load()[0]
        if is_frame(X):
            return read(X, schema, target=False).load()[0]
        cells = as_cells(X)
        if cells.ndim != 2:
            raise InvalidArgument(
                f"X has {cells.ndim} dimensions: pass a frame, or an array of rows and columns."
            )
        n_columns = len(schema.columns) if schema.columns else schema.n_features
        if cells.shape[1] != n_columns:
            raise InvalidArgument(
                f"X has another number of columns than the {n_columns} of the schema. Pass a frame "
                "with their names, or an array of them in order."
            )
        if isinstance(schema.features, NamedFeatures):
            return _named(schema.features, cells)
        return schema.features.encode(sparse.csr_array(as_numbers(cells, "X")))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """A name for each encoded column."""
        return np.array(self._checked.feature_names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False  # frames, with the columns of the schema
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _named(features: NamedFeatures, cells: Any) -> sparse.csr_array:
    """An array with the columns of the features, in order."""
    rows = cells.toarray() if sparse.issparse(cells) else np.asarray(cells)
    missing = np.ma.getmaskarray(cells) if isinstance(cells, np.ma.MaskedArray) else None
    if missing is not None and rows.dtype.kind not in NUMERIC:
        rows = rows.astype(object)
        rows[missing] = None
    columns: dict[str, Column] = {}
    for k, name in enumerate(features.columns):
        if rows.dtype.kind in NUMERIC:
            columns[name] = Numbers(rows[:, k], None if missing is None else missing[:, k])
        else:
            columns[name] = from_objects(rows[:, k].tolist())
    return features.encode(columns, len(rows))
