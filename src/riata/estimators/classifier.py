"""What every classifier does: public classes, one fit against the rest for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_expit, logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from riata.arguments import is_auto
from riata.bounds import Bounds
from riata.data.arrays import labels_as_codes
from riata.data.source import Source
from riata.errors import InvalidArgument
from riata.estimators.base import BoundedModel, PrivateLinearModel
from riata.fitting import AutomaticRadius, ExtraReleases, Fitted
from riata.fitting.dask_rows import is_collection
from riata.fitting.prediction_rows import classes_with_schema, targets_of
from riata.fitting.rows import Table, read_table
from riata.losses import Logistic, Loss, OneAgainstRest, Softmax, Weighted
from riata.privacy.budget import check_scale
from riata.sets import ConstraintSet, L1Ball, L2Ball
from riata.wording import shown

OBSERVED, BALANCED = "observed", "balanced"
OBSERVED_NOTE = "The classes were read from y: the user declared the set of labels in y public."

#: The radius that "auto" stands for, by the solver's radius policy: of an l1 ball, and of an l2
#: ball in units of 1 over the bound on a row. Coefficients that tell classes apart are large for
#: short rows, and noisy gradients hardly mind. An open one binds no model, though bounds on rows be
#: 100 times too wide.
L1_RADIUS = {"open": 1e5, "wide": 1e3, "narrow": 10.0}
L2_RADIUS = {"open": 8e4, "wide": 800.0, "narrow": 800.0}


class LabelPredictor(ClassifierMixin):
    """What a model that predicts labels does, whatever its loss is."""

    classes_: np.ndarray
    predict: Callable[[Any], np.ndarray]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The accuracy of the predictions. A source, or a frame of its schema, has its labels."""
        if y is not None:
            return float(super().score(X, y, sample_weight))
        codes = targets_of(self, X)
        right = np.searchsorted(self.classes_, self.predict(X)) == codes
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on a hundred rows, noise is all there is
        return tags


class PrivateClassifier(LabelPredictor, PrivateLinearModel):
    """A linear classifier. Subclasses name the loss for labels of -1 and 1."""

    #: What the classes count, for subclasses without a parameter for it.
    class_weight: Any = None

    def _label_loss(self) -> Loss:
        raise AssertionError("a subclass names its loss")

    def _losses(self, classes: np.ndarray | None) -> tuple[Loss, ...]:
        assert classes is not None
        positives = [1] if len(classes) == 2 else range(len(classes))
        losses: tuple[Loss, ...] = tuple(OneAgainstRest(self._label_loss(), k) for k in positives)
        weights = self._public_weights(classes)
        return losses if weights is None else tuple(Weighted(loss, weights) for loss in losses)

    def _public_weights(self, classes: np.ndarray) -> tuple[float, ...] | None:
        """The weights that the user named, 1 for each other class, over their mean."""
        if self.class_weight is None or self._balanced:
            return None
        if not isinstance(self.class_weight, Mapping):
            raise InvalidArgument(
                f"class_weight={self.class_weight!r} is not known. "
                'Use None, "balanced", or a dict of a weight for each class.'
            )
        labels = classes.tolist()
        for label, weight in self.class_weight.items():
            if label not in labels:
                raise InvalidArgument(
                    f"class_weight names {label!r}, which is not one of the classes {labels}."
                )
            check_scale(f"class_weight of {label!r}", weight, "it multiplies the loss of a row.")
        given = [float(self.class_weight.get(label, 1.0)) for label in labels]
        return tuple(weight * len(given) / math.fsum(given) for weight in given)

    def _notes(self, classes: np.ndarray | None) -> tuple[str, ...]:
        assert classes is not None
        notes: tuple[str, ...] = ()
        if is_observed(self.classes):
            notes += (OBSERVED_NOTE,)
        weights = self._public_weights(classes)
        if weights is not None:
            listed = ", ".join(f"{weight:.4g}" for weight in weights)
            notes += (f"Public class weights: {listed}.",)
        elif self._balanced:
            notes += ("Classes have weights that follow from their released counts.",)
        return notes

    @property
    def _balanced(self) -> bool:
        return isinstance(self.class_weight, str) and self.class_weight == BALANCED

    def _extra_releases(self) -> ExtraReleases:
        return ExtraReleases(balanced=self._balanced)

    def _bounds_for(self, n_rows: int, n_features: int, n_classes: int) -> Bounds:
        """The bounds with y standing for class codes, -1 for none."""
        return super()._bounds_for(n_rows, n_features, n_classes).with_y(float(n_classes))

    def _named_classes(self) -> np.ndarray:
        return self.declared_classes()

    def _read(self, X: Any, y: Any) -> tuple[Table, np.ndarray, Any]:
        labels = None if y is None or isinstance(X, Source) or is_collection(X) else y
        observed = np.asarray(y) if labels is not None and is_observed(self.classes) else None
        declared = None if labels is None else _classes_of_type(labels)
        table = read_table(self, X, y, classifies=True, numeric=False)
        if table.encoded:
            return table, classes_with_schema(self.classes, self.schema_), None
        if observed is not None:
            check_classification_targets(observed)
            declared = np.unique(observed)
        classes = self.declared_classes(declared)
        check_label_type(labels, classes)
        return table, classes, partial(labels_as_codes, classes=classes)

    def declared_classes(self, of_targets: np.ndarray | None = None) -> np.ndarray:
        """The public labels: those of the constructor, or else those that `y` declares."""
        if isinstance(self.classes, str):
            if self.classes != OBSERVED:
                raise InvalidArgument(
                    f'classes={self.classes!r} must be a list of labels, or "observed".'
                )
            if of_targets is None:
                raise InvalidArgument(
                    'classes="observed" is known only at fit. Pass classes=[...] to plan before.'
                )
            classes = of_targets
        elif self.classes is not None:
            classes = np.unique(np.asarray(self.classes))
        elif of_targets is not None:
            classes = of_targets
        else:
            raise InvalidArgument(
                f"{type(self).__name__} needs classes: reading the labels from the data would "
                "reveal a person whose label is unique. Pass classes=[...], or "
                'classes="observed" if the set of labels in y is public.'
            )
        if len(classes) < 2:
            raise InvalidArgument(
                f"Only {len(classes)} class is given, and a classifier needs at least 2 classes. "
                "Pass every label that could occur."
            )
        return classes

    def _set_attributes(self, fitted: Fitted) -> None:
        super()._set_attributes(fitted)
        classes = fitted.planned.request.classes
        assert classes is not None
        self.classes_ = classes
        weights = fitted.solutions[0].weights
        self.class_weight_ = np.array(weights or np.ones(len(self.classes_)))

    def decision_function(self, X: Any) -> np.ndarray:
        """The margin of the second class, or of each class if there are more than two."""
        margins = self._margins(X)
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row."""
        margins = self.decision_function(X)
        winners = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        return self.classes_[winners]


@dataclass(eq=False, repr=False, kw_only=True)
class BallClassifier(PrivateClassifier, BoundedModel):
    """A classifier whose coefficients lie in an l1 or an l2 ball."""

    classes: Any = None
    class_weight: Any = None
    penalty: str = "auto"
    radius: Any = "auto"

    def _set(self, bounds: Bounds) -> ConstraintSet | AutomaticRadius:
        if self.penalty not in ("auto", "l1", "l2"):
            raise InvalidArgument(
                f'penalty={self.penalty!r} is not known. Use one of ["auto", "l1", "l2"].'
            )
        wanted = bounds.favours_gradients and self.delta != 0  # as gradients need
        in_l2 = self.penalty == "l2" or (self.penalty == "auto" and wanted)
        if is_auto(self.radius):
            if in_l2:
                longest = bounds.max_length or float(np.max(bounds.x))
                return AutomaticRadius(L2Ball, {k: r / longest for k, r in L2_RADIUS.items()})
            return AutomaticRadius(L1Ball, L1_RADIUS)
        return L2Ball(self.radius) if in_l2 else L1Ball(self.radius)


class LogisticClassifier(PrivateClassifier):
    """A classifier whose margins are log-odds, after a line through them was calibrated."""

    #: Whether they are calibrated, for subclasses without a parameter for it.
    calibration: Any = False

    def _label_loss(self) -> Loss:
        return Logistic()

    def _joint_loss(self, classes: np.ndarray | None) -> Loss | None:
        assert classes is not None
        if len(classes) == 2:
            return None
        weights = self._public_weights(classes)
        loss = Softmax(len(classes))
        return loss if weights is None else Weighted(loss, weights)

    @property
    def multinomial(self) -> bool:
        """Whether the classes were fitted together: probabilities are the softmax of margins."""
        check_is_fitted(self)
        return str(self.privacy_.public.get("loss")).endswith(Softmax.name)

    def check_parameters(self) -> None:
        super().check_parameters()
        if not is_auto(self.calibration) and not isinstance(self.calibration, bool | np.bool_):
            raise InvalidArgument(
                f'calibration={self.calibration!r} must be True, False or "auto".'
            )

    def _extra_releases(self) -> ExtraReleases:
        named = isinstance(self.calibration, str)
        return ExtraReleases(self._balanced, "auto" if named else bool(self.calibration))

    def _set_attributes(self, fitted: Fitted) -> None:
        super()._set_attributes(fitted)
        self.calibration_ = np.array([solution.line for solution in fitted.solutions])

    def decision_function(self, X: Any) -> np.ndarray:
        """The log-odds of the second class, or of each class: calibrated.

        Of three classes or more they are against the rest, or, where the classes were fitted
        together, up to a number that is the same for all classes.

        Not the bare ``X @ coef_.T + intercept_``, but ``calibration_[:, 0]`` times it plus
        ``calibration_[:, 1]``.
        """
        odds = self._margins(X) * self.calibration_[:, 0] + self.calibration_[:, 1]
        return odds[:, 0] if len(self.classes_) == 2 else odds

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class: of three or more, the softmax of their log-odds.

        Where each class was fitted against the rest, their probabilities are normalised to sum
        to 1.

        With class weights they are those of a population in which classes have these weights. The
        class that is most likely here is the one that `predict` gives.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        odds = self.decision_function(X)
        if len(self.classes_) == 2:
            return np.column_stack([log_expit(-odds), log_expit(odds)])
        scores = odds if self.multinomial else log_expit(odds)
        return scores - logsumexp(scores, axis=1, keepdims=True)


def _classes_of_type(y: Any) -> np.ndarray | None:
    """The labels that the type of y allows, if that says so: booleans.

    A categorical type says so too, but usually took its categories from the rows.
    """
    kind = getattr(y, "dtype", None)
    return np.array([False, True]) if isinstance(kind, np.dtype) and kind.kind == "b" else None


def check_label_type(y: Any, classes: np.ndarray) -> None:
    """Raise if the type of y, which is public, has none of the labels: texts, or numbers."""
    kind = getattr(y, "dtype", None)
    numbers = isinstance(kind, np.dtype) and kind.kind in "biuf"
    texts = (isinstance(kind, np.dtype) and kind.kind in "UST") or str(kind) in ("str", "string")
    if (numbers and classes.dtype.kind in "US") or (texts and classes.dtype.kind in "biuf"):
        what, others = ("numbers", "texts") if numbers else ("texts", "numbers")
        raise InvalidArgument(
            f"y has the type {kind}, and the classes {shown(classes.tolist())} are {others}: no "
            f"label could be one of them. Name the classes as {what}, or convert y."
        )


def is_observed(classes: Any) -> bool:
    """Whether the labels of `y` are taken."""
    return isinstance(classes, str) and classes == OBSERVED
