"""The exponential mechanism for least squares over a ball (Bassily, Smith and Thakurta 2014)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.mechanisms import PosteriorSample
from riata.mechanisms.posterior import MOST_INFORMATION
from riata.privacy.budget import CHANGED_CONTRIBUTIONS, Budget
from riata.privacy.calibrate import calibrate
from riata.privacy.events import compose
from riata.problem import Problem
from riata.queries import SquaredMoments
from riata.solvers.plan import Plan, Solver, check_steps, count_steps
from riata.solvers.requirements import Requirement, columns_at_most, least_squares
from riata.solvers.solution import Callback, Solution
from riata.solvers.tails import PosteriorTail
from riata.vectors import Vector

#: Beyond, exact sampling takes too long: it works on a matrix of this many rows in many digits.
MOST_COLUMNS = 256


_EUCLIDEAN = Requirement(
    lambda p, b: p.set.is_euclidean_ball and p.bounds.norm == "l2",
    lambda p, b: f"{p.set} and {p.bounds}",
    "it draws from a Euclidean ball, for rows with a bound on their length",
    'Use L2Ball and norm="l2", or {another}',
)

_UNCERTAIN = Requirement(
    lambda p, b: p.n_rows * b.row_epsilon <= MOST_INFORMATION,
    lambda p, b: f"{p.n_rows} rows at epsilon={b.epsilon:g}",
    "they fix the model so sharply that an exact draw would take too long",
    "Use a smaller epsilon",
)


@dataclass(frozen=True)
class PosteriorSampling(Solver):
    """One exact draw of a model, with a probability that falls with its squared loss.

    For few columns and pure differential privacy. There is no Markov chain: the draw has exactly
    the distribution that the guarantee speaks of.

    Parameters
    ----------
    steps : 1 or "auto", default="auto"
        There is one step.

    Notes
    -----
    *Privacy.* The rows are read by one release, the exact second moments inside it. A model with an
    intercept is drawn from a larger ball and projected onto the set, which is post-processing.

    *Differences from the paper.* The paper samples by a Markov chain, and a chain that is merely
    close to its limit is not purely private.

    References
    ----------
    Bassily, Smith, Thakurta (2014). Private empirical risk minimization. Algorithm 2.
    """

    name = "posterior-sampling"
    requirements = (
        least_squares,
        _EUCLIDEAN,
        _UNCERTAIN,
        columns_at_most(
            MOST_COLUMNS, f"exact draws take too long beyond {MOST_COLUMNS}",
            'Use solver="projected" with a smaller dimension',
        ),
    )  # fmt: skip

    def __post_init__(self) -> None:
        if check_steps(self.steps) not in (None, 1):
            raise InvalidArgument(f"steps={self.steps!r} must be 1: one model is drawn.")

    def _query(self, problem: Problem) -> SquaredMoments:
        return SquaredMoments(
            problem.bounds,
            problem.set.radius_in("l2"),
            problem.n_rows,
            problem.adjacency,
            problem.n_features,
            problem.fit_intercept,
        )

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        strength = calibrate(lambda s: compose((PosteriorSample(s).event, fits)), budget)
        draw = PosteriorSample(strength)
        query = self._query(problem)
        # The mean excess of the sum of losses is at most d / eta (docs/algorithms).
        spread = CHANGED_CONTRIBUTIONS[problem.adjacency] * query.loss_bound / draw.epsilon
        risk = query.n_coefficients * spread / problem.n_rows
        risk = min(risk, problem.worst_excess_risk)
        tail = PosteriorTail(query.n_coefficients, spread / problem.n_rows)
        return Plan(self.name, problem, budget, 1, {"draw": draw}, fits, risk, tail=tail)

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        for _ in count_steps(plan.steps, callback):
            found = np.asarray(curator.release(self._query(problem), plan["draw"]))
        # With an intercept the draw is from a larger ball, which holds all of the set beside it.
        theta = Vector.of(problem.set.project(found[: problem.n_features]))
        if problem.fit_intercept:  # its column was as long as a row may be
            offset, most = float(found[-1] * problem.bounds.x), problem.offset_bound
            theta = theta.with_offset(min(max(offset, -most), most))
        return Solution(theta, plan.steps)
