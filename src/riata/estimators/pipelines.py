"""Pipelines of scikit-learn around an estimator of riata, and what other steps reveal."""

from __future__ import annotations

import copy
import sys
import warnings
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from sklearn.utils import get_tags

from riata.data.encoder import SchemaEncoder
from riata.data.formats import as_schema
from riata.data.schema import Schema
from riata.errors import InvalidArgument, PrivacyWarning

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

#: A pipeline calls the fit of its last step through so few functions.
_NEAR = 12


def is_pipeline(value: Any) -> TypeGuard[Pipeline]:
    """Whether a value is a pipeline: there is none if nobody imported them, which is slow."""
    module = sys.modules.get("sklearn.pipeline")
    return module is not None and isinstance(value, module.Pipeline)


def learning_steps(pipeline: Pipeline) -> list[str]:
    """The names of the classes of steps before the last that learn from rows."""
    steps = [step for _, step in pipeline.steps[:-1]]
    found = [step for step in steps if step is not None and not isinstance(step, str)]
    return [type(step).__name__ for step in found if get_tags(step).requires_fit]


def warn_of(pipeline: Pipeline) -> None:
    """Warn if a step of the pipeline was fitted to the rows that the model is to protect."""
    names = learning_steps(pipeline)
    if names:
        warnings.warn(
            f"The pipeline fits {', '.join(names)} to the private rows: what that learns is part "
            "of the model, and no budget pays for it. The Statement holds for the last step alone. "
            "Use riata.SchemaEncoder, or a step that learns nothing.",
            PrivacyWarning,
            stacklevel=5,
        )


def warn_of_surrounding_pipeline() -> None:
    """The same from the fit of an estimator, if a pipeline called it.

    Only frames of scikit-learn's pipelines are looked into: variables of a frame that was looked
    into live as long as the frame, and the caller's may hold rows.
    """
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_NEAR):
        if frame is None:
            return
        if frame.f_globals.get("__name__") == "sklearn.pipeline":
            found = frame.f_locals.get("self")
            if is_pipeline(found):
                warn_of(found)
                return
        frame = frame.f_back


def schema_of(pipeline: Pipeline) -> Schema:
    """The schema of the encoder in a pipeline that `inner_model` takes."""
    return as_schema(pipeline.steps[0][1].schema)


def inner_model(model: Any) -> Any:
    """The estimator in a pipeline of a `SchemaEncoder` and an estimator, with names of columns.

    Anything else is returned as it is. Other pipelines are refused.
    """
    if not is_pipeline(model):
        return model
    encoder, last = model.steps[0][1], model.steps[-1][1]
    if len(model.steps) != 2 or not isinstance(encoder, SchemaEncoder):
        warn_of(model)
        raise InvalidArgument(
            "Of a pipeline riata takes a SchemaEncoder and an estimator of its own, and nothing "
            "else: what other steps learned from the rows is in no Statement. Pass the estimator, "
            "pipeline[-1], if that is what you mean."
        )
    found = copy.copy(last)
    if not hasattr(found, "feature_names_in_"):
        found.feature_names_in_ = np.array(encoder.get_feature_names_out(), dtype=object)
    return found
