"""What every classifier does: public classes, one fit against the rest for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import log_expit, logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from riata.bounds import Bounds
from riata.curator import Curator
from riata.data.arrays import labels_as_codes, rows_and_targets
from riata.engines.choice import Arrays
from riata.errors import Incompatible, InvalidArgument
from riata.estimators.base import Checkpointed, Job, PrivateLinearModel
from riata.estimators.rows import SourceRows, collection_of
from riata.estimators.sources import classes_with_schema, people, source_of, targets_of
from riata.losses import Logistic, Loss, OneAgainstRest, Weighted
from riata.privacy.budget import Budget, check_scale
from riata.problem import Problem
from riata.sets import ConstraintSet, L1Ball, L2Ball
from riata.solvers import Callback, ClassSums, Plan, Projected, Solution, Solver
from riata.solvers.classes import balanced_weights, calibrated_line
from riata.solvers.extra_releases import CLASS_COUNTS, MARGIN_COUNTS, MARGIN_SLOPES

OBSERVED, BALANCED = "observed", "balanced"

#: The radius that "auto" stands for: of an l1 ball, by the solver's radius policy, and of
#: an l2 ball, in units of 1 over the bound on a row. Coefficients that tell classes apart are large
#: for short rows, and noisy gradients hardly mind.
L1_RADIUS, L2_RADIUS = {"open": 1000.0, "wide": 100.0, "narrow": 10.0}, 800.0


class PrivateClassifier(ClassifierMixin, PrivateLinearModel):
    """A linear classifier. Subclasses name the loss for labels of -1 and 1."""

    #: What the classes count, for subclasses without a parameter for it.
    class_weight: Any = None

    def _label_loss(self) -> Loss:
        raise AssertionError("a subclass names its loss")

    def _set(self, solver: Solver | None = None) -> ConstraintSet:
        if self.penalty not in ("auto", "l1", "l2"):
            raise InvalidArgument(
                f'penalty={self.penalty!r} is not known. Use one of ["auto", "l1", "l2"].'
            )
        bounds = self._checked_bounds()
        wanted = bounds.norm == "l2" and self.delta != 0  # noisy gradients need a positive delta
        in_l2 = self.penalty == "l2" or (self.penalty == "auto" and wanted)
        if isinstance(self.radius, str) and self.radius == "auto":
            if in_l2:
                return L2Ball(L2_RADIUS / float(np.max(bounds.x)))
            return L1Ball(L1_RADIUS["narrow" if solver is None else solver.radius_policy])
        return L2Ball(self.radius) if in_l2 else L1Ball(self.radius)

    def _losses(self, classes: np.ndarray) -> list[Loss]:
        positives = [1] if len(classes) == 2 else range(len(classes))
        losses: list[Loss] = [OneAgainstRest(self._label_loss(), k) for k in positives]
        weights = self._public_weights(classes)
        return losses if weights is None else [Weighted(loss, weights) for loss in losses]

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

    def _weight_notes(self, classes: np.ndarray) -> tuple[str, ...]:
        weights = self._public_weights(classes)
        if weights is None:
            balanced = "Classes have weights that follow from their released counts."
            return (balanced,) if self._balanced else ()
        return ("Public class weights: " + ", ".join(f"{weight:.4g}" for weight in weights) + ".",)

    @property
    def _balanced(self) -> bool:
        return isinstance(self.class_weight, str) and self.class_weight == BALANCED

    def _extra_releases(self, solver: Solver, budget: Budget, fits: int) -> dict[str, int]:
        return {CLASS_COUNTS: 1} if self._balanced else {}

    def _solved(
        self,
        solver: Solver,
        plan: Plan,
        problems: list[Problem],
        curator: Curator,
        callback: Callback | None = None,
    ) -> list[Solution]:
        weights = getattr(problems[0].loss, "weights", None)
        if CLASS_COUNTS in plan.extra_releases:
            n_classes = max(len(problems), 2)
            weights = balanced_weights(plan, problems[0], curator, n_classes)
            problems = [replace(each, loss=Weighted(each.loss, weights)) for each in problems]
        found = super()._solved(solver, plan, problems, curator, callback)
        lines = self._lines(plan, problems, curator, found)
        return [
            replace(solution, line=line, weights=weights)
            for solution, line in zip(found, lines, strict=True)
        ]

    def _lines(
        self, plan: Plan, problems: list[Problem], curator: Curator, found: list[Solution]
    ) -> list[tuple[float, float]]:
        """What makes calibrated log-odds of each fit's margins."""
        return [solution.line for solution in found]

    def _code_bounds(self, n_classes: int) -> Bounds:
        """The bounds with y standing for class codes, -1 for none."""
        return self._checked_bounds().with_y(float(n_classes))

    def plan(self, n_rows: int, n_features: int) -> Plan:
        """What a fit on data of this shape would do and cost. Reads nothing, charges nothing."""
        classes = self._public_classes(None)
        bounds = self._code_bounds(len(classes))
        return self._planned(self._losses(classes), bounds, n_rows, n_features)[1]

    def fit(self, X: Any, y: Any = None, *, checkpoint: Checkpointed = None) -> Self:
        """Fit the model and spend the budget.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_features), or Source
        y : array-like of shape (n_rows,)
            Labels. Left out for a source, which has its own.
        checkpoint : path, optional
            A file that keeps what was released so far. The same call with the same file goes on
            where a fit was stopped, for what was charged when it began.
        """
        job = self._job(X, y)
        found = self._fit(job, checkpoint)
        self._keep(found, (len(job.losses),))
        self.classes_ = job.classes
        self.class_weight_ = np.array(found[0].weights or np.ones(len(job.classes)))
        return self

    def _job(self, X: Any, y: Any) -> Job:
        source = source_of(self, X, y, classifies=True)
        self._checked_bounds()
        self._check_parameters()
        if source is not None:
            classes = classes_with_schema(self.classes, source.schema)
            return Job(
                self._losses(classes),
                self._code_bounds(len(classes)),
                source.shape,
                SourceRows(source, self.verbose),
                classes=classes,
                notes=self._weight_notes(classes),
                rows_of_a_person=people(source),
            )
        collection = collection_of(self, X, y, numeric=False)
        if collection is not None:
            classes = self._public_classes(None)
            return Job(
                self._losses(classes),
                self._code_bounds(len(classes)),
                collection.shape,
                collection.converted(partial(labels_as_codes, classes=classes)),
                classes=classes,
                notes=self._weight_notes(classes),
            )
        declared = None if y is None else _classes_of_type(y)
        observed = np.asarray(y) if _is_observed(self.classes) else None
        X, y = rows_and_targets(self, X, y, numeric=False)
        if observed is not None:
            check_classification_targets(observed)
            declared = np.unique(observed)
        classes = self._public_classes(declared)
        return Job(
            self._losses(classes),
            self._code_bounds(len(classes)),
            X.shape,
            Arrays(X, y, partial(labels_as_codes, classes=classes)),
            classes=classes,
            notes=(*_class_notes(self.classes), *self._weight_notes(classes)),
        )

    def _public_classes(self, declared: np.ndarray | None) -> np.ndarray:
        """The classes that the user named, or else those that y declares."""
        if isinstance(self.classes, str):
            if self.classes != OBSERVED:
                raise InvalidArgument(
                    f'classes={self.classes!r} must be a list of labels, or "observed".'
                )
            if declared is None:
                raise InvalidArgument(
                    'classes="observed" is known only at fit. Pass classes=[...] to plan before.'
                )
            classes = declared
        elif self.classes is not None:
            classes = np.unique(np.asarray(self.classes))
        elif declared is not None:
            classes = declared
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

    def decision_function(self, X: Any) -> np.ndarray:
        """The margin of the second class, or of each class if there are more than two."""
        margins = self._margins(X)
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row."""
        margins = self.decision_function(X)
        winners = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        return self.classes_[winners]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The accuracy of the predictions. A source, or a frame of its schema, has its labels."""
        if y is not None:
            return super().score(X, y, sample_weight)
        codes = targets_of(self, X)
        right = np.searchsorted(self.classes_, self.predict(X)) == codes
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on a hundred rows, noise is all there is
        return tags


class LogisticClassifier(PrivateClassifier):
    """A classifier whose margins are log-odds, after a line through them was calibrated."""

    #: Whether they are calibrated, for subclasses without a parameter for it.
    calibration: Any = False

    def _label_loss(self) -> Loss:
        return Logistic()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        named = isinstance(self.calibration, str) and self.calibration == "auto"
        if not named and not isinstance(self.calibration, bool | np.bool_):
            raise InvalidArgument(
                f'calibration={self.calibration!r} must be True, False or "auto".'
            )

    def _extra_releases(self, solver: Solver, budget: Budget, fits: int) -> dict[str, int]:
        counted = super()._extra_releases(solver, budget, fits)
        projects, named = isinstance(solver, Projected), isinstance(self.calibration, str)
        if not named and self.calibration and projects:
            raise Incompatible(
                "calibration=True", f'solver="{solver.name}"',
                because="only projected rows are kept, and they do not give the model's margins",
                instead="Use calibration=False",
            )  # fmt: skip
        calibrates = isinstance(solver, ClassSums)  # as its last step
        possible = not projects and not calibrates and budget.epsilon < math.inf
        wanted = possible if named else bool(self.calibration)
        return counted | ({MARGIN_COUNTS: fits, MARGIN_SLOPES: fits} if wanted else {})

    def _lines(
        self, plan: Plan, problems: list[Problem], curator: Curator, found: list[Solution]
    ) -> list[tuple[float, float]]:
        if MARGIN_COUNTS not in plan.extra_releases:
            return super()._lines(plan, problems, curator, found)
        return [
            calibrated_line(plan, problem, curator, solution.theta)
            for problem, solution in zip(problems, found, strict=True)
        ]

    def _keep(self, found: list[Solution], shape: tuple[int, ...]) -> None:
        super()._keep(found, shape)
        self.calibration_ = np.array([solution.line for solution in found])

    def decision_function(self, X: Any) -> np.ndarray:
        """The log-odds of the second class, or of each class against the rest: calibrated.

        Not the bare ``X @ coef_.T + intercept_``, but ``calibration_[:, 0]`` times it plus
        ``calibration_[:, 1]``.
        """
        odds = self._margins(X) * self.calibration_[:, 0] + self.calibration_[:, 1]
        return odds[:, 0] if len(self.classes_) == 2 else odds

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class; one-against-rest scores are normalised to sum to 1.

        With class weights they are those of a population in which classes have these weights. The
        class that is most likely here is the one that `predict` gives.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        odds = self.decision_function(X)
        if len(self.classes_) == 2:
            return np.column_stack([log_expit(-odds), log_expit(odds)])
        scores = log_expit(odds)
        return scores - logsumexp(scores, axis=1, keepdims=True)


def _classes_of_type(y: Any) -> np.ndarray | None:
    """The labels that the type of y allows, if that says so: booleans.

    A categorical type says so too, but usually took its categories from the rows.
    """
    kind = getattr(y, "dtype", None)
    return np.array([False, True]) if isinstance(kind, np.dtype) and kind.kind == "b" else None


def _is_observed(classes: Any) -> bool:
    return isinstance(classes, str) and classes == OBSERVED


def _class_notes(classes: Any) -> tuple[str, ...]:
    if _is_observed(classes):
        return ("The classes were read from y: the user declared the set of labels in y public.",)
    return ()
