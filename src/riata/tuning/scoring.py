"""The private score of a candidate: how wrong its predictions are on the rows of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.arguments import is_auto
from riata.bounds import Bounds
from riata.errors import Incompatible, InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.estimators.classifier import PrivateClassifier
from riata.losses import Loss, WeightedRows
from riata.queries import AbsoluteError, PredictionError, SquaredError, WrongLabels
from riata.vectors import Vector

ACCURACY, ABSOLUTE, SQUARED = "accuracy", "absolute-error", "squared-error"

#: Of numbers.
_ERRORS: dict[str, type[PredictionError]] = {ABSOLUTE: AbsoluteError, SQUARED: SquaredError}


def classifies(estimator: PrivateLinearModel) -> bool:
    loss = getattr(estimator, "loss", None)
    return isinstance(estimator, PrivateClassifier) or bool(getattr(loss, "classifies", False))


def check_scoring(scoring: object, estimators: list[PrivateLinearModel]) -> str:
    """The name of the score, the same for all candidates."""
    kinds = {classifies(each) for each in estimators}
    if len(kinds) > 1:
        raise InvalidArgument(
            "The grid has losses for numbers and losses for labels: their scores cannot be "
            "compared. Search them one after the other."
        )
    for loss in (getattr(each, "loss", None) for each in estimators):
        if isinstance(loss, Loss) and _of_codes(loss):
            raise Incompatible(
                "a private score", f"the loss {loss.name!r}",
                because="its targets are codes of a target, a weight and an exposure, and no "
                "prediction is compared with a code", instead="Use the loss without weights",
            )  # fmt: skip
        if isinstance(loss, Loss) and not loss.classifies and loss.link != "identity":
            raise Incompatible(
                "PrivateSearch", f"the {loss.name} loss",
                because="its score compares targets with margins, and the loss predicts something "
                "else", instead="Use a loss with an identity link, such as Squared()",
            )  # fmt: skip
    allowed = (ACCURACY,) if kinds == {True} else tuple(_ERRORS)
    if is_auto(scoring):
        return allowed[0]
    if scoring not in allowed:
        raise InvalidArgument(
            f"scoring={scoring!r} is not known for {type(estimators[0]).__name__}. "
            f"Use one of {['auto', *allowed]}."
        )
    return str(scoring)


def _of_codes(loss: Loss) -> bool:
    """Whether targets are codes that hold more than a target."""
    inner = loss.inner
    return isinstance(loss, WeightedRows) or (inner is not None and _of_codes(inner))


def error_of(
    scoring: str,
    thetas: tuple[Vector, ...],
    bounds: Bounds,
    n_rows: int,
    adjacency: str,
    **labels: Any,
) -> PredictionError:
    """The mean error that a score is made of."""
    if scoring == ACCURACY:
        return WrongLabels(thetas, bounds, n_rows, adjacency, **labels)
    return _ERRORS[scoring](thetas, bounds, n_rows, adjacency)


def score_of(scoring: str, error: float) -> float:
    """Larger is better."""
    return 1 - error if scoring == ACCURACY else -error


def error_query(
    scoring: str, model: PrivateLinearModel, bounds: Bounds, n_rows: int
) -> PredictionError:
    """The mean error of a fitted model, unevaluated."""
    offsets = np.atleast_1d(model.intercept_)
    thetas = tuple(
        Vector.of(row).with_offset(float(offset))
        for row, offset in zip(model.row_functions(), offsets, strict=True)
    )
    labels = {}
    if scoring == ACCURACY:
        lines = np.atleast_2d(getattr(model, "calibration_", [[1.0, 0.0]] * len(thetas)))
        codes = range(max(len(thetas), 2)) if isinstance(model, PrivateClassifier) else (-1, 1)
        labels = {
            "labels": tuple(map(float, codes)),
            "lines": tuple((float(slope), float(at)) for slope, at in lines),
        }
    return error_of(scoring, thetas, bounds, n_rows, model.adjacency, **labels)
