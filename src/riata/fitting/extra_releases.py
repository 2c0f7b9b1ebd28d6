"""What is released besides a solver's own releases: class counts, calibration, tuning scores.

The noise of class counts and calibration is planned together with the fits
(`riata.fitting.extra_planning`); the score of a search has a plan of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from riata.bounds import Bounds
from riata.curator import Curator
from riata.engines.choice import RowSource, open_engine
from riata.errors import Incompatible
from riata.fitting.class_releases import balanced_weights, calibrated_line
from riata.fitting.extra_planning import (
    CLASS_COUNTS,
    DATA_QUALITY,
    MARGIN_COUNTS,
    MARGIN_SLOPES,
)
from riata.losses import Weighted
from riata.mechanisms import Mechanism
from riata.mechanisms.noise import Noise
from riata.preparation import Preparation
from riata.privacy.budget import Budget
from riata.privacy.events import Event
from riata.privacy.unit import PrivacyUnit
from riata.problem import Problem
from riata.queries import Query
from riata.solvers import ClassSums, Plan, Projected, Solution, Solver

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger


@dataclass(frozen=True)
class ExtraReleases:
    """Which releases are made besides the fits.

    Attributes
    ----------
    balanced : bool
        Whether the classes count alike, by weights from their private counts.
    calibration : bool or "auto"
        Whether a line through the margins is calibrated, so that they are log-odds. "auto" is
        where that is possible and the solver does not do so itself.
    data_quality : bool
        Whether it is counted what is wrong with the rows of a source.
    """

    balanced: bool = False
    calibration: bool | str = False
    data_quality: bool = False

    def times(self, solver: Solver, budget: Budget, fits: int) -> dict[str, int]:
        """How often each kind of release is made."""
        counted = {CLASS_COUNTS: 1} if self.balanced else {}
        counted |= {DATA_QUALITY: 1} if self.data_quality else {}
        projects, automatic = isinstance(solver, Projected), self.calibration == "auto"
        if self.calibration and not automatic and projects:
            raise Incompatible(
                "calibration=True", f'solver="{solver.name}"',
                because="only projected rows are kept, and they do not give the model's margins",
                instead="Use calibration=False",
            )  # fmt: skip
        calibrates = isinstance(solver, ClassSums) or solver.joint  # as its last step
        possible = not projects and not calibrates and budget.epsilon < math.inf
        wanted = possible if automatic else bool(self.calibration) and not solver.joint
        return counted | ({MARGIN_COUNTS: fits, MARGIN_SLOPES: fits} if wanted else {})


def with_class_weights(
    plan: Plan, problems: tuple[Problem, ...], curator: Curator
) -> tuple[tuple[Problem, ...], tuple[float, ...] | None]:
    """The problems with the weights that their classes have, released if the plan says so."""
    if CLASS_COUNTS not in plan.extra_releases:
        loss = problems[0].loss
        return problems, loss.weights if isinstance(loss, Weighted) else None
    n_classes = max(len(problems), problems[0].loss.n_margins, 2)
    weights = balanced_weights(plan, problems[0], curator, n_classes)
    return tuple(replace(each, loss=Weighted(each.loss, weights)) for each in problems), weights


def calibrated(
    plan: Plan, problem: Problem, curator: Curator, solution: Solution
) -> tuple[float, float]:
    """The line that makes log-odds of a fit's margins: released if the plan says so."""
    if MARGIN_COUNTS not in plan.extra_releases:
        return solution.line
    return calibrated_line(plan, problem, curator, solution.theta)


def release_score(
    query: Query,
    mechanism: Mechanism,
    rows: RowSource,
    *,
    bounds: Bounds,
    adjacency: str,
    noise: Noise,
    engine: str = "auto",
    cost: Event | None = None,
    ledger: Ledger | None = None,
    unit: PrivacyUnit | None = None,
    summary: dict[str, Any] | None = None,
) -> float:
    """One number about a model and rows inside the bounds, for what the mechanism costs.

    It is charged to the ledger first. Without one, whoever calls has charged it, as a part of a
    search, or nobody counts it.
    """
    curator = Curator.open(
        mechanism.event,
        cost=cost,
        read=lambda: open_engine(engine, Preparation(bounds), rows),
        noise=noise,
        adjacency=adjacency,
        ledger=ledger,
        unit=unit,
        summary=summary,
    )
    return float(curator.release(query, mechanism)[0])
