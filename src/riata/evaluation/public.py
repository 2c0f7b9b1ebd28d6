"""Scores and curves of a model on rows that are public."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from riata.data.arrays import labels_as_codes
from riata.errors import InvalidArgument
from riata.estimators.description import describe
from riata.estimators.survival import PrivateCoxRegression
from riata.fitting.prediction_rows import encoded, targets_of
from riata.wording import number_of

#: Groups of equal size in which probabilities are compared with what happened.
BINS = 10
#: Points of a drawn curve, and rows whose residuals are drawn, evenly spaced.
MOST_POINTS = 500


@dataclass(frozen=True)
class Evaluation:
    """How well a model does on rows that were held out.

    Attributes
    ----------
    model : str
    n_rows : int
        Of the rows whose target is known.
    n_unknown : int
        Labels that are none of the classes. They are left out.
    scores : dict of str to float
        Of classifiers "accuracy" and, where they apply, "AUC", "log loss" and "Brier score"; of
        regressors "R2", "mean absolute error" and "root mean squared error".
    constant : dict of str to float
        The same of the best constant: the most frequent class, or the mean.
    roc : tuple of ndarray, or None
        False and true positive rates, for two classes.
    calibration : tuple of ndarray, or None
        Mean probability and observed frequency in groups of rows: of the second class, or of three
        classes or more of the predicted one.
    residuals : tuple of ndarray, or None
        Predictions, and how far the targets are above them, of some of the rows.
    """

    model: str
    n_rows: int
    n_unknown: int
    scores: dict[str, float]
    constant: dict[str, float]
    roc: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)
    calibration: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)
    residuals: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)

    def rows(self) -> list[tuple[str, str, str]]:
        """Each score, of the model and of a constant."""
        return [
            (name, f"{value:.4f}", f"{self.constant[name]:.4f}" if name in self.constant else "")
            for name, value in self.scores.items()
        ]

    def __str__(self) -> str:
        lines = [("", "model", "constant"), *self.rows()]
        width, numbers = (
            max(len(line[0]) for line in lines),
            [max(len(line[k]) for line in lines) for k in (1, 2)],
        )
        text = [f"{self.model} on {number_of(self.n_rows, 'row')}"]
        text += [
            f"{name:<{width}}  {one:>{numbers[0]}}  {other:>{numbers[1]}}".rstrip()
            for name, one, other in lines
        ]
        if self.n_unknown:
            text.append(self.unknown_note)
        return "\n".join(text)

    @property
    def unknown_note(self) -> str:
        """What to say about labels that are none of the classes."""
        return (
            f"{self.n_unknown:,} of {self.n_unknown + self.n_rows:,} labels are none of the "
            "classes, and were left out. Check their spelling."
        )


def evaluate(model: Any, X: Any, y: Any = None) -> Evaluation:
    """Score a model on rows that are public, or that nobody needs to protect.

    Parameters
    ----------
    model : fitted estimator
        Of the central or the local model.
    X : array-like, sparse, frame or Source
    y : array-like, optional
        Left out for a source, or for a frame of the model's schema.

    Returns
    -------
    Evaluation

    Notes
    -----
    *Privacy.* Nothing is charged and nothing is protected: the scores are exact. On the rows of
    the fit they would undo its guarantee. For private rows use `private_score`.
    """
    about = describe(model)
    if about.output == "mean" or about.collected:
        raise InvalidArgument(
            f"Cannot evaluate a {about.name}: an evaluation is about predictions of a fitted "
            "estimator. Pass one that predicts."
        )
    if isinstance(model, PrivateCoxRegression):
        raise InvalidArgument(
            "Cannot evaluate a PrivateCoxRegression: it predicts hazards, and durations of people "
            "who left early are not known. Use model.score(X, durations, events), the concordance."
        )
    x = encoded(model, X)
    if x.shape[0] == 0:
        raise InvalidArgument("There are no rows to evaluate on. Pass some that were held out.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about names: they have been compared
        if about.output == "label":
            codes = _codes(model, about.labels, X, y)
            return _of_classes(model, about.name, np.asarray(about.labels), x, codes)
        centre = 0.0 if about.schema is None else about.schema.target_centre
        targets = targets_of(model, X) + centre if y is None else np.asarray(y, dtype=np.float64)
        return _of_numbers(model, about.name, x, targets)


def _codes(model: Any, labels: Any, X: Any, y: Any) -> np.ndarray:
    return targets_of(model, X) if y is None else labels_as_codes(y, classes=np.asarray(labels))


def _of_numbers(model: Any, name: str, x: Any, y: np.ndarray) -> Evaluation:
    predicted = np.asarray(model.predict(x), dtype=np.float64)
    known = np.isfinite(y)
    predicted, y = predicted[known], y[known]
    if not len(y):
        raise InvalidArgument("No row has a number as its target. Pass rows with targets.")
    some = np.unique(np.linspace(0, len(y) - 1, MOST_POINTS).astype(int))
    return Evaluation(
        name, len(y), int((~known).sum()),
        _number_scores(y, predicted), _number_scores(y, np.full(len(y), y.mean())),
        residuals=(predicted[some], (y - predicted)[some]),
    )  # fmt: skip


def _number_scores(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    around = float(np.square(y - y.mean()).mean())
    left = float(np.square(y - predicted).mean())
    return {
        "R2": 1 - left / around if around else math.nan,
        "mean absolute error": float(np.abs(y - predicted).mean()),
        "root mean squared error": math.sqrt(left),
    }


def _of_classes(model: Any, name: str, labels: np.ndarray, x: Any, codes: np.ndarray) -> Evaluation:
    known = codes >= 0
    if not known.any():
        raise InvalidArgument(
            f"No label is one of the classes {labels.tolist()}. Check their spelling in the file "
            "and in the schema."
        )
    codes, x = codes[known].astype(int), x[known]
    winners = np.searchsorted(labels, model.predict(x))
    shares = np.bincount(codes, minlength=len(labels)) / len(codes)
    scores = {"accuracy": float((winners == codes).mean())}
    constant = {"accuracy": float(shares.max())}
    chances: np.ndarray | None = None
    if hasattr(model, "predict_proba"):
        chances = np.asarray(model.predict_proba(x), dtype=np.float64)
        scores |= _chance_scores(codes, chances)
        constant |= _chance_scores(codes, np.tile(shares, (len(codes), 1)))
    roc = None
    if len(labels) == 2 and 0 < shares[1] < 1:
        ranks = np.asarray(model.decision_function(x), dtype=np.float64)
        if getattr(model, "ordered_classes_", labels)[0] != labels[0]:  # the higher, the lower
            ranks = -ranks
        scores["AUC"], roc = _roc(codes, ranks)
        constant["AUC"] = 0.5
    return Evaluation(
        name, len(codes), int((~known).sum()), scores, constant, roc=roc,
        calibration=None if chances is None else _calibration(codes, chances),
    )  # fmt: skip


def _chance_scores(codes: np.ndarray, chances: np.ndarray) -> dict[str, float]:
    own = chances[np.arange(len(codes)), codes]
    wrong = chances - np.eye(chances.shape[1])[codes]
    return {
        "log loss": float(-np.log(np.maximum(own, np.finfo(float).tiny)).mean()),
        "Brier score": float(np.square(wrong).sum(axis=1).mean() / 2),
    }


def _roc(codes: np.ndarray, ranks: np.ndarray) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
    """The area below the curve, and some of its points."""
    from sklearn.metrics import roc_auc_score, roc_curve

    false, true, _ = roc_curve(codes, ranks)
    some = np.unique(np.linspace(0, len(false) - 1, MOST_POINTS).astype(int))
    return float(roc_auc_score(codes, ranks)), (false[some], true[some])


def _calibration(codes: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Groups of equal size, by probability."""
    if chances.shape[1] == 2:
        chance, happened = chances[:, 1], codes == 1
    else:
        winners = chances.argmax(axis=1)
        chance, happened = chances.max(axis=1), winners == codes
    order = np.argsort(chance, kind="stable")
    groups = [group for group in np.array_split(order, BINS) if len(group)]
    means = np.array([[chance[group].mean(), happened[group].mean()] for group in groups])
    return means[:, 0], means[:, 1]
