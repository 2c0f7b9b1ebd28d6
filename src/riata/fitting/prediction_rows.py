"""Rows to predict, and what a schema says about bounds and classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.data.arrays import rows
from riata.data.formats import read
from riata.data.readers.frames import is_frame
from riata.data.schema import Schema
from riata.data.source import Source
from riata.errors import InvalidArgument


def bounds_with_schema(given: Bounds | None, schema: Schema) -> Bounds:
    """The bounds of the schema, unless the user gave some that agree with them."""
    own = schema.bounds
    if given is None:
        return own
    y = own.y if given.y is None else given.y
    meant = own.x if given.length is None else min(own.x, given.length)
    wider = given.norm == "inf" and bool(np.any(np.not_equal(given.x, meant)))
    if wider or (own.y is not None and y != own.y) or (given.nonnegative > own.nonnegative):
        raise InvalidArgument(
            f"bounds={given!r} and the schema says {own!r}: encoded rows keep the schema's "
            'promise. Leave bounds out, or bound the length of a row with norm="l2".'
        )
    if given.norm == "inf":  # what the schema says of a row's length holds as well
        lengths = [one for one in (given.length, own.length) if one is not None]
        nonzeros = own.nonzeros if given.nonzeros is None else given.nonzeros
        given = replace(given, length=min(lengths, default=None), nonzeros=nonzeros)
    return given if y is None else given.with_y(y)


def classes_with_schema(given: Any, schema: Schema) -> np.ndarray:
    """The classes of the schema, unless the user gave others."""
    own = schema.classes
    assert own is not None
    if given is None:
        return own
    if isinstance(given, str) or not np.array_equal(np.unique(np.asarray(given)), own):
        raise InvalidArgument(
            f"classes={given!r} and the schema says {own.tolist()}. Leave classes out: they come "
            "from the schema."
        )
    return own


def signs(codes: np.ndarray) -> np.ndarray:
    """Labels of -1 and 1 from codes of two classes; 0 for no class."""
    return np.where(codes < 0, 0.0, 2 * codes - 1)


def encoded(model: Any, x: Any) -> Any:
    """Rows to predict: sources and frames are encoded by the model's schema."""
    if isinstance(x, Source):
        return same_schema(model, x).plain().load()[0]
    if getattr(model, "schema_", None) is not None and is_frame(x):
        return read(x, model.schema_, target=False).load()[0]
    return rows(model, x, reset=False)


def targets_of(model: Any, x: Any) -> np.ndarray:
    """The targets that a source, or a frame of the model's schema, has: as `Source.load` does."""
    schema = getattr(model, "schema_", None)
    if not isinstance(x, Source) and schema is not None and is_frame(x):
        x = read(x, schema)
    if not isinstance(x, Source):
        raise ValueError(f"{type(model).__name__} requires y to be passed, but y is None.")
    y = same_schema(model, x).plain().load()[1]
    if y is None:
        raise InvalidArgument("The source has no target. Read it without target=False, or pass y.")
    return y


def same_schema(model: Any, source: Any) -> Source:
    """A source that is encoded as the rows of the model's fit were, or an error."""
    if not isinstance(source, Source):
        raise InvalidArgument(
            "The model was fitted on a source. Pass one, a frame of its schema, or rows and y."
        )
    fitted = getattr(model, "schema_", None)
    if fitted is None:
        raise InvalidArgument(
            "The model was fitted on arrays, and does not know how the columns of a source are "
            "encoded. Pass source.load()[0] if they are the same."
        )
    if not source.schema.declares(fitted):
        raise InvalidArgument(
            "The source has another schema than the model was fitted with. Read it with "
            "model.schema_."
        )
    return source.with_schema(source.schema.with_features(fitted.features))
