"""Mechanisms 1 and 2 of Kasiviswanathan and Jin (2016): solve in few dimensions, then lift."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from riata.arguments import is_auto, is_whole
from riata.bounds import Bounds
from riata.curator import Curator
from riata.embedding import expected_margin_distortion
from riata.errors import Incompatible, InvalidArgument
from riata.privacy.budget import CHANGED_CONTRIBUTIONS, Budget, check_scale
from riata.privacy.calibrate import calibrate
from riata.privacy.events import Gaussian, compose
from riata.problem import Problem
from riata.projections import PROJECTIONS, Projection, StoredProjection
from riata.sets import L2Ball
from riata.sets.lift import Liftable, lift_or_nearest
from riata.solvers.gaussian_frank_wolfe import GaussianFrankWolfe
from riata.solvers.noisy_gradient import NoisyGradient
from riata.solvers.objective_perturbation import PerturbedObjective
from riata.solvers.plan import Plan, Solver
from riata.solvers.posterior_sampling import MOST_COLUMNS, PosteriorSampling
from riata.solvers.solution import Callback, Solution
from riata.solvers.tails import ProjectedTail
from riata.vectors import Vector

#: The solvers that may work in the projected space.
INNER: dict[str, type[Solver]] = {
    kind.name: kind
    for kind in (NoisyGradient, PerturbedObjective, PosteriorSampling, GaussianFrankWolfe)
}

#: "auto" takes fewer dimensions than the theorem if the matrix, where it is stored, or the rows
#: that it projects would have more numbers than this (2 GiB). The plan says so.
MOST_NUMBERS = 2**28


@dataclass(frozen=True)
class Projected(Solver):
    """A private solver in the image of a public random projection, and a lift back.

    The noise grows with the number of projected dimensions and not with the number of columns,
    and the set's Gaussian width says how many dimensions are needed.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        Of the solver in the projected space. "auto" is that solver's choice; beside
        dimension="auto" noisy gradients take as many as the theorem's bound needs.
    dimension : int or "auto", default="auto"
        The number of dimensions. "auto" is `theorem_dimension`: the rule of Theorem 3.11 with
        explicit constants. The plan says if there is no memory for so many.
    projection : {"gaussian", "sparse-sign", "structured"} or Projection, default="gaussian"
        How the public matrix is made, or the matrix itself.
    inner : str or Solver, default="auto"
        The solver in the projected space. "auto" is "noisy-gradient" where delta is positive, and
        under pure differential privacy "objective-perturbation", the hinge included; for the
        squared loss also "posterior-sampling" is planned, and the smaller bound decides.
    clip : float or "auto", default="auto"
        The largest length of a projected row; longer ones are shortened. "auto" is the largest
        length of a row before.
    seed : int, default=0
        The public seed of the matrix.
    compressed : bool, default=False
        Whether the rows are already projected, by the `projection` that is given.

    Notes
    -----
    *Privacy.* That of the inner solver. Rows are clipped after they are projected, so that the
    guarantee holds for every matrix and every row; the lift is post-processing.

    *Differences from the paper.* A fixed matrix stretches some row far beyond the length that
    Lemma 3.3 promises for n rows with high probability: clipping replaces the lemma. The Markov
    chain for pure privacy is replaced by an exact draw.

    References
    ----------
    Kasiviswanathan, Jin (2016). Efficient private empirical risk minimization for
    high-dimensional learning.
    """

    dimension: int | str = "auto"
    projection: str | Projection = "gaussian"
    inner: str | Solver = "auto"
    clip: float | str = "auto"
    seed: int = 0
    compressed: bool = False

    name = "projected"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip != "auto":
            check_scale("clip", self.clip, "it is the largest length of a projected row.")
        named = isinstance(self.projection, str) and self.projection in PROJECTIONS
        if not named and not isinstance(self.projection, Projection):
            what = self.projection if isinstance(self.projection, str) else type(self.projection)
            raise InvalidArgument(
                f"projection={what!r} is not known. Use one of {list(PROJECTIONS)} or a "
                "Projection, such as GivenProjection(matrix)."
            )
        if self.compressed and not isinstance(self.projection, Projection):
            raise InvalidArgument(
                f"compressed=True needs the matrix that the rows were projected with, got "
                f"projection={self.projection!r}. Pass projection=GivenProjection(matrix)."
            )
        if not isinstance(self.inner, Solver) and self.inner not in ("auto", *INNER):
            raise InvalidArgument(
                f"inner={self.inner!r} is not known. Use one of {['auto', *INNER]} or a solver."
            )
        if isinstance(self.inner, Solver) and self.steps != "auto":
            raise InvalidArgument(
                f"steps={self.steps!r} is given twice: a solver object has its own. "
                f"Write {type(self.inner).__name__}(steps=...) and leave steps out."
            )
        if isinstance(self.inner, Projected):
            raise Incompatible(
                f'solver="{self.name}"', "another projection inside it",
                because="two projections are one, to the smaller number of dimensions",
                instead="Use one of them",
            )  # fmt: skip
        if not is_auto(self.dimension) and not (is_whole(self.dimension) and self.dimension >= 1):
            raise InvalidArgument(
                f'dimension={self.dimension!r} must be a whole number of at least 1, or "auto".'
            )

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        _liftable(problem)
        plans, refusals = [], []
        for inner in self._inners(problem, budget):
            try:
                plans.append(self._plan(problem, budget, fits, inner))
            except Incompatible as refusal:
                refusals.append(refusal)
        if not plans:
            raise refusals[0]
        return min(plans, key=lambda plan: plan.excess_risk)

    def _plan(self, problem: Problem, budget: Budget, fits: int, inner: Solver) -> Plan:
        """The plan with one of the inner solvers, from public facts alone."""
        phi = self._phi(problem, budget, inner)
        compressed = self._compressed(problem, phi)
        free = self.dimension == self.steps == "auto" and isinstance(self.projection, str)
        if free and isinstance(inner, NoisyGradient) and not isinstance(self.inner, Solver):
            inner = inner.with_proven_steps(compressed, budget, fits)
        plan = inner.plan(compressed, budget, fits)
        slope = max(problem.slope_bound, compressed.slope_bound) * _row_length(problem)
        risk = plan.excess_risk + slope * _spread(problem) / math.sqrt(phi.dimension)
        return replace(
            plan,
            solver=f"{self.name} to {self._dimensions(problem, budget, phi)}, {plan.solver}",
            problem=problem,
            excess_risk=min(risk, problem.worst_excess_risk),
            assumes="the matrix was drawn after the rows and the result is in the set's image",
            compressed=compressed,
            projection=None if self.compressed else phi,
            tail=ProjectedTail(
                plan.tail, plan.excess_risk, slope, problem.set.gaussian_width().value,
                problem.set.radius_in("l2"), problem.n_rows, phi.dimension,
            ),
        )  # fmt: skip

    def _dimensions(self, problem: Problem, budget: Budget, phi: Projection) -> str:
        """The number of dimensions, and the theorem's where "auto" could not take it."""
        taken = f"{phi.dimension:,} dimensions"
        if self.dimension != "auto" or isinstance(self.projection, Projection):
            return taken
        asked = theorem_dimension(problem, budget)
        if asked >= problem.n_features == phi.dimension:
            return f"{taken}, as many as there are columns"
        short = phi.dimension < asked
        return f"{taken} of the {asked:,} that Theorem 3.11 asks for" if short else taken

    def _phi(self, problem: Problem, budget: Budget, inner: Solver) -> Projection:
        """Line 1 of StdERM, or the matrix that was given."""
        if isinstance(self.projection, Projection):
            if self.projection.n_features != problem.n_features:
                raise Incompatible(
                    f"a projection of {self.projection.n_features} columns",
                    f"{problem.n_features} columns of data",
                    because="it multiplies each row",
                    instead="Use a matrix with one column for each column of the data",
                )
            if self.dimension not in ("auto", self.projection.dimension):
                raise Incompatible(
                    f"dimension={self.dimension}",
                    f"a projection to {self.projection.dimension} dimensions",
                    because="the matrix has as many rows as there are dimensions",
                    instead='Use dimension="auto"',
                )
            return self.projection
        dimension = self.dimension
        kind = PROJECTIONS[self.projection]
        if isinstance(dimension, str):
            dimension = min(
                theorem_dimension(problem, budget),
                problem.n_features,
                max(1, MOST_NUMBERS // problem.n_rows),
                max(1, MOST_NUMBERS // problem.n_features)
                if issubclass(kind, StoredProjection)
                else problem.n_features,
                MOST_COLUMNS if isinstance(inner, PosteriorSampling) else problem.n_features,
            )
        if dimension > problem.n_features:
            raise Incompatible(
                f"dimension={dimension}", f"{problem.n_features} columns",
                because="a projection has fewer rows than columns",
                instead=f"Use a dimension of at most {problem.n_features}",
            )  # fmt: skip
        return kind(int(dimension), problem.n_features, self.seed)

    def _compressed(self, problem: Problem, phi: Projection) -> Problem:
        """The problem that the inner solver sees: projected rows, a ball around the image of C."""
        clip = _row_length(problem) if isinstance(self.clip, str) else float(self.clip)
        return Problem(
            problem.loss,
            L2Ball(_liftable(problem).image_radius(phi)),
            Bounds(clip, problem.y_bound, norm="l2"),
            problem.n_rows,
            phi.dimension,
            problem.adjacency,
            problem.fit_intercept,
        )

    def _inners(self, problem: Problem, budget: Budget) -> list[Solver]:
        """The solvers that may work in the projected space: the plan has the one that does."""
        if isinstance(self.inner, Solver):
            return [self.inner]
        names = [self.inner]
        if self.inner == "auto":
            exact = [PosteriorSampling.name] if problem.loss.least_squares else []
            names = [*exact, PerturbedObjective.name] if budget.delta == 0 else [NoisyGradient.name]
        return [INNER[name](self.steps) for name in names]

    def _planned_inner(self, plan: Plan, problem: Problem) -> Solver:
        """The inner solver that a plan is for."""
        inners = self._inners(problem, plan.budget)
        named = [inner for inner in inners if plan.solver.endswith(f", {inner.name}")]
        return (named or inners)[0]

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """ProjERM, line by line."""
        assert plan.compressed is not None
        small = replace(plan.compressed, loss=problem.loss)
        inner = self._planned_inner(plan, problem)
        found = inner.run(replace(plan, problem=small), small, curator, callback)  # line 1
        phi = plan.projection or self._phi(problem, plan.budget, inner)
        theta = lift_or_nearest(_liftable(problem), phi, found.theta.dense())  # line 2
        offset = found.theta.offset
        if problem.loss.classifies:
            offset *= _kept(found.theta.dense(), phi.forward(theta))
        return Solution(Vector.of(theta).with_offset(offset), found.steps)


def theorem_dimension(problem: Problem, budget: Budget) -> int:
    """The dimension that balances noise and distortion in Theorem 3.11, constants included.

    In units of slope * row length, m dimensions distort margins by (w + sqrt(8) ||C||) / sqrt(m) in
    the mean. Noise costs ||C|| sqrt(m) z c / n with Gaussian noise of multiplier z for c changed
    rows, and ||C|| m c / (n epsilon) under pure differential privacy. It may be more than the
    number of columns: then a solver without a projection has the smaller bound.
    """
    changed = CHANGED_CONTRIBUTIONS[problem.adjacency]
    distorted = _spread(problem) / problem.set.radius_in("l2")
    if budget.delta > 0:
        z = 1 / calibrate(lambda s: compose((Gaussian(1 / s), 1)), budget)
        best = distorted * problem.n_rows / (changed * z)
    else:
        best = (distorted * problem.n_rows * budget.row_epsilon / (2 * changed)) ** (2 / 3)
    return max(1, int(best))


def _kept(wanted: np.ndarray, image: np.ndarray) -> float:
    """The part of the margins that a model keeps which is nearest to one outside of the image of C.

    A label is the side of the intercept that a margin is on, so the two must shrink alike.
    """
    return float(np.clip(wanted @ image / max(wanted @ wanted, 1e-300), 0.0, 1.0))


def _liftable(problem: Problem) -> Liftable:
    """The set, if it knows a way back from a projection."""
    if not isinstance(problem.set, Liftable):
        raise Incompatible(
            f'solver="{Projected.name}"', str(problem.set),
            because="no way back from a projection into this set is known",
            instead="Use L1Ball, GroupL1Ball, Simplex, L2Ball, LpBall or Polytope",
        )  # fmt: skip
    return problem.set


def _spread(problem: Problem) -> float:
    """How far margins of rows of length 1 move in the mean, times the root of the dimension.

    For all theta in the set at once, where the result lies, and for the optimum, one fixed theta.
    """
    width, radius = problem.set.gaussian_width().value, problem.set.radius_in("l2")
    return expected_margin_distortion(1, width, radius) + expected_margin_distortion(1, 0.0, radius)


def _row_length(problem: Problem) -> float:
    return problem.bounds.row_norm("l2", problem.n_features)
