"""The score of a model on private rows: one number with noise, charged like a fit.

The proof is in docs/privacy/evaluation.md.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from riata.bounds import Bounds
from riata.data.formats import read
from riata.data.readers.frames import is_frame
from riata.engines.choice import RowSource
from riata.errors import Incompatible, InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.estimators.classifier import PrivateClassifier
from riata.estimators.weighted import WeightedRegressor
from riata.fitting import release_score
from riata.fitting.arguments import check_ledger, seed_from
from riata.fitting.prediction_rows import same_schema
from riata.mechanisms import Additive
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import ADJACENCY_IN_WORDS, Budget
from riata.privacy.calibrate import calibrate
from riata.privacy.events import Event, of_group
from riata.privacy.unit import PrivacyUnit
from riata.queries import PredictionError
from riata.solvers.adaptive_budget import measurement_at, noise_std
from riata.tuning.scoring import ACCURACY, check_scoring, error_query, score_of
from riata.wording import number_of

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger


@dataclass(frozen=True, eq=False)
class PlannedScore:
    """What a private score releases and costs. Nothing was charged, and no row was read.

    Attributes
    ----------
    scoring : str
    budget : Budget
    unit : PrivacyUnit
    query : PredictionError
        The mean error, unevaluated.
    mechanism : Additive
        Its noise.
    n_rows : int
    """

    model: str
    scoring: str
    budget: Budget
    unit: PrivacyUnit
    query: PredictionError
    mechanism: Additive
    bounds: Bounds
    n_rows: int
    rows: RowSource = field(repr=False)

    @property
    def event(self) -> Event:
        """What the release costs between neighbours."""
        return of_group(self.mechanism.event, self.budget.rows_of_a_person)

    @property
    def spent(self) -> Spent:
        return spent(self.event, self.budget.delta)

    @property
    def noise(self) -> float:
        """The standard deviation of the noise."""
        return noise_std(self.mechanism, self.query)

    def summary(self) -> dict[str, Any]:
        """Public facts for the ledger."""
        return {
            "estimator": self.model, "solver": f"private score: {self.scoring}",
            "n_rows": self.n_rows, "epsilon": self.budget.epsilon, "delta": self.budget.delta,
            "releases": [f"{self.scoring}, {self.mechanism.describe(1)}"],
        }  # fmt: skip

    def __str__(self) -> str:
        return (
            f"The {self.scoring} of a {self.model} on {number_of(self.n_rows, 'row')}, with noise "
            f"of standard deviation {self.noise:.2g}: epsilon {self.spent.epsilon:.9g} at delta "
            f"{self.spent.delta:g}."
        )


@dataclass(frozen=True)
class PrivateScore:
    """A score with noise.

    Attributes
    ----------
    scoring : {"accuracy", "absolute-error", "squared-error"}
    value : float
        The accuracy, or minus the mean error: larger is better.
    error : float
        Its standard error: the noise, and for an accuracy also the sampling of rows.
    noise : float
        The standard deviation of the noise alone.
    n_rows : int
    epsilon, delta, adjacency
        The guarantee of this number.
    seeded : bool
        Whether the noise came from a known seed, and protects nobody.
    """

    scoring: str
    value: float
    error: float
    noise: float
    n_rows: int
    epsilon: float
    delta: float
    adjacency: str
    seeded: bool = False

    @property
    def sentence(self) -> str:
        """The guarantee."""
        if self.seeded:
            return "SEEDED: NOT PRIVATE. The noise can be computed again from random_state."
        claim = f"({self.epsilon:g}, {self.delta:g})" if self.delta else f"{self.epsilon:g}"
        return (
            f"The score is {claim}-differentially private for the rows that it was computed on, "
            f"where {ADJACENCY_IN_WORDS[self.adjacency]}."
        )

    def __str__(self) -> str:
        name = "accuracy" if self.scoring == ACCURACY else f"mean {self.scoring.replace('-', ' ')}"
        value = self.value if self.scoring == ACCURACY else -self.value
        on = number_of(self.n_rows, "row")
        return f"{name} {value:.4g} ± {self.error:.2g} on {on}\n{self.sentence}"


def plan_score(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float | None = None,
    scoring: str = "auto",
) -> PlannedScore:
    """What `private_score` would release and cost. Reads no row, charges nothing."""
    if not isinstance(model, PrivateLinearModel) or not hasattr(model, "privacy_"):
        raise InvalidArgument(
            f"Cannot score a {type(model).__name__} on private rows: only fitted estimators of the "
            "central model. Fit one, or use evaluate on public rows."
        )
    if getattr(model, "compressed", False):
        raise Incompatible(
            "private_score", "a model of projected rows",
            because="it does not know the bounds of the rows that were projected",
            instead="Use evaluate on public rows",
        )  # fmt: skip
    probe = clone(model).set_params(epsilon=epsilon, delta=delta, ledger=None, random_state=None)
    if isinstance(probe, WeightedRegressor):  # targets as they are, and no codes of them
        probe.max_weight = None
    if isinstance(model, PrivateClassifier):
        probe.classes = model.classes_
    schema = getattr(model, "schema_", None)
    if schema is not None and y is None:
        X = same_schema(model, read(X, schema) if is_frame(X) else X)
        if isinstance(model, PrivateClassifier):
            probe.classes = None  # those of the schema
    request, rows = probe.request(X, y)
    _check_columns(model, probe)
    request.bounds.check_size(request.n_features)
    budget, pure = request.budget, request.budget.delta == 0
    if budget.epsilon == math.inf:
        raise InvalidArgument(
            "epsilon=inf protects nobody, and there is no noise to plan. If the rows are public, "
            "use evaluate."
        )
    name = check_scoring(scoring, [model])
    centred = copy.copy(model)
    if schema is not None and schema.classes is None:
        centred.intercept_ = model.intercept_ - schema.target_centre
    query = error_query(name, centred, request.bounds, request.n_rows)
    strength = calibrate(lambda amount: measurement_at(amount, pure).event, budget)
    return PlannedScore(
        model=type(model).__name__,
        scoring=name,
        budget=budget,
        unit=PrivacyUnit.of(budget, "" if request.schema is None else request.schema.person),
        query=query,
        mechanism=measurement_at(strength, pure),
        bounds=request.bounds,
        n_rows=request.n_rows,
        rows=rows,
    )


def private_score(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float | None = None,
    scoring: str = "auto",
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> PrivateScore:
    """The accuracy or the mean error of a model on private rows, with noise.

    Parameters
    ----------
    model : fitted estimator
        Of the central model.
    X : array-like, sparse, frame or Source
    y : array-like, optional
        Left out for a source, or for a frame of the model's schema.
    epsilon, delta : float
        As for a fit. Each row counts once, also where those of the fit had weights.
    scoring : {"auto", "accuracy", "absolute-error", "squared-error"}, default="auto"
        As for `PrivateSearch`.
    ledger : Ledger, optional
        Of the data set that the rows are from: charged before a row is read.
    random_state : int, optional
        For tests: such a score protects nobody, and ledgers refuse it.

    Returns
    -------
    PrivateScore

    Notes
    -----
    *Privacy.* One release of a bounded mean, for what `plan_score` says. The rows may be those of
    the fit: the two costs add up in one ledger.
    """
    check_ledger(ledger, random_state)
    planned = plan_score(model, X, y, epsilon=epsilon, delta=delta, scoring=scoring)
    noise = Noise(seed_from(random_state))
    return run_score(planned, noise, ledger)


def run_score(planned: PlannedScore, noise: Noise, ledger: Ledger | None = None) -> PrivateScore:
    """Charge the planned score, read the rows and release it."""
    error = release_score(
        planned.query, planned.mechanism, planned.rows, bounds=planned.bounds, noise=noise,
        adjacency=planned.budget.adjacency, cost=planned.event, ledger=ledger, unit=planned.unit,
        summary=planned.summary(),
    )  # fmt: skip
    value, total, sampling = score_of(planned.scoring, error), planned.spent, 0.0
    if planned.scoring == ACCURACY:
        inside = min(max(value, 0.0), 1.0)
        sampling = math.sqrt(inside * (1 - inside) / planned.n_rows)
    return PrivateScore(
        planned.scoring, value, math.hypot(planned.noise, sampling), planned.noise, planned.n_rows,
        total.epsilon, total.delta, planned.budget.adjacency, noise.seeded,
    )  # fmt: skip


def _check_columns(model: Any, probe: Any) -> None:
    """Raise unless the rows have the columns that the model was fitted to, in their order."""
    if probe.n_features_in_ != model.n_features_in_:
        raise InvalidArgument(
            f"The rows have {probe.n_features_in_} columns, and the model was fitted to "
            f"{model.n_features_in_}. Pass rows with the same columns."
        )
    wanted, given = (getattr(each, "feature_names_in_", None) for each in (model, probe))
    if wanted is not None and given is not None and list(wanted) != list(given):
        raise InvalidArgument(
            "The columns of the rows have other names, or another order, than those that the model "
            "was fitted to. Pass the same columns in the same order."
        )
