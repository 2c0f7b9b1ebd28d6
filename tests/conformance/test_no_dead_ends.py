"""Whatever loss, set, kind of bounds and budget somebody asks for, there is a way to a model.

Either "auto" fits it, or the error names what does; and what the error of any solver names works.
"""

import itertools
import re

import numpy as np
import pytest

from riata import Bounds, Budget, losses, sets
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import Incompatible
from riata.losses import Hinge, Linear, Squared
from riata.losses.base import Loss
from riata.mechanisms.noise import Noise
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.problem import Problem
from riata.sets import L1Ball, L2Ball, LpBall, Polytope, SparseBall
from riata.solvers import SOLVERS, PerturbedObjective, Projected, choose_solver

pytestmark = pytest.mark.matrix(one_in=17)

N, P = 30, 4
RNG = np.random.default_rng(12)
X = RNG.standard_normal((N, P)) / 2
Y = RNG.choice([-1.0, 1.0], N)

#: Those with nuisance parameters need a ball and a positive delta, and their estimators have both.
LOSSES = [each for each in losses.REGISTRY.examples() if not isinstance(each, losses.NuisanceLoss)]

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_set = pytest.mark.parametrize("C", sets.REGISTRY.examples(P), ids=repr)
every_norm = pytest.mark.parametrize("norm", ["inf", "l2"])
every_delta = pytest.mark.parametrize("delta", [0.0, 1e-6])


def problem_of(loss, C, norm, fit_intercept=True, adjacency=REPLACE_ONE):
    return Problem(loss, C, Bounds(1.0, 1.0, norm=norm), N, P, adjacency, fit_intercept)


def fitted(solver, problem, budget):
    plan = solver.plan(problem, budget)
    assert plan.spent.epsilon <= budget.epsilon * (1 + 1e-9)
    assert plan.spent.delta <= budget.delta
    engine = plan.engine(LocalEngine, X, Y)
    curator = Curator(engine, plan.event, Noise(2), adaptive=plan.adaptive)
    theta = solver.run(plan, problem, curator).theta
    assert problem.set.contains(theta.dense(), 1e-6)
    assert np.isfinite(theta.offset)
    return theta


def named_in(message):
    """The solvers that an error names after it has said what is wrong."""
    return re.findall(r'solver="([\w-]+)"', message.split("This is because")[1])


@pytest.mark.matrix(one_in=17, test_all_one_in=3)
@every_loss
@every_set
@every_norm
@every_delta
def test_auto_fits_or_the_error_names_what_does(loss, C, norm, delta):
    problem, budget = problem_of(loss, C, norm), Budget(1.0, delta)
    message = ""
    try:
        fitted(choose_solver("auto", problem, budget, "auto"), problem, budget)
    except Incompatible as refused:
        message = str(refused)
    if message:
        assert not C.convex
        for name in named_in(message):
            fitted(SOLVERS[name](), problem, budget)
        if not named_in(message):
            assert "such as L1Ball" in message
            problem = problem_of(loss, L1Ball(1.0), norm)
            fitted(choose_solver("auto", problem, budget, "auto"), problem, budget)


@pytest.mark.parametrize("name", SOLVERS)
@every_delta
def test_every_solver_that_an_error_names_accepts_the_problem(name, delta):
    budget = Budget(1.0, delta)
    for loss, C, norm in itertools.product(LOSSES, sets.REGISTRY.examples(P), ("inf", "l2")):
        problem, message = problem_of(loss, C, norm), ""
        try:
            SOLVERS[name]().check(problem, budget)
        except Incompatible as refused:
            message = str(refused)
        if message:
            for other in named_in(message):
                chosen = choose_solver(other, problem, budget, "auto")
                chosen.check(problem, budget)
            assert named_in(message) or "L1Ball" in message


def has_determinant(loss):
    """Whether objective perturbation can pay for the curvature: bounded, or once it is smoothed."""
    return loss.curvature_bound(1.0) < np.inf or loss.smoothed(1.0) is not None


def refused_for_another(solver, problem, budget):
    """The error names a solver that fits the problem, and the loss with a bound of its own does."""
    with pytest.raises(Incompatible) as refused:
        solver.plan(problem, budget)
    assert "of bounded curvature" in str(refused.value)
    for name in named_in(str(refused.value)):
        fitted(SOLVERS[name](), problem, budget)


@pytest.mark.matrix(one_in=17, test_all_one_in=3)
@every_loss
@every_set
@every_norm
@every_delta
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_objective_perturbation_fits_every_loss_over_every_convex_set(
    loss, C, norm, delta, adjacency
):
    if not C.convex:
        return
    problem = problem_of(loss, C, norm, fit_intercept=norm == "l2", adjacency=adjacency)
    budget = Budget(2.0, delta, adjacency)
    if has_determinant(loss):
        fitted(PerturbedObjective(1, 0.5), problem, budget)
    else:
        refused_for_another(PerturbedObjective(1, 0.5), problem, budget)


@every_loss
@every_set
@every_delta
def test_every_loss_over_every_set_with_a_lift_is_fitted_behind_a_projection(loss, C, delta):
    if not C.convex:
        return
    problem, budget = problem_of(loss, C, "l2"), Budget(2.0, delta)
    if delta > 0 or has_determinant(loss):
        fitted(Projected(dimension=2), problem, budget)
    else:
        refused_for_another(Projected(dimension=2), problem, budget)


class Bare(Loss):
    """max(margin - y, 0): a corner that the loss says nothing about."""

    name = "bare"

    def __repr__(self):
        return "Bare()"

    def value(self, margin, y):
        return np.maximum(margin - y, 0.0)

    def slope(self, margin, y):
        return np.where(margin > y, 1.0, 0.0)

    def curvature(self, margin, y):
        return np.zeros_like(margin)

    def slope_bound(self, margin, y):
        return 1.0

    def curvature_bound(self, y):
        return np.inf

    def offset_bound(self, y):
        return y


class Unproven(LpBall):
    """A set that proves nothing about its projection."""

    projection_error = sets.ConstraintSet.projection_error
    certified_project = sets.ConstraintSet.certified_project


@pytest.mark.parametrize("loss", [Bare(), Squared(), Linear()], ids=repr)
@pytest.mark.parametrize("C", [L2Ball(1.0), LpBall(1.5), Unproven(3.0)], ids=repr)
@every_norm
@every_delta
def test_a_loss_and_a_set_that_say_little_are_fitted_too(loss, C, norm, delta):
    problem, budget = problem_of(loss, C, norm), Budget(1.0, delta)
    fitted(choose_solver("auto", problem, budget, "auto"), problem, budget)


# Parameters at their ends


def test_rows_of_a_smaller_rank_and_points_that_are_one_are_fitted():
    """Columns that are all alike, rows that are all 0, and a polytope of one point or a line."""
    budget = Budget(2.0, 0.0)
    alike = np.repeat(RNG.uniform(-0.5, 0.5, (N, 1)), P, axis=1)
    point = Polytope(np.full((1, P), 0.25))
    line = Polytope(np.array([np.zeros(P), np.full(P, 0.5), np.full(P, 0.25)]))
    for rows, C, loss in itertools.product(
        (alike, np.zeros((N, P))), (point, line, L2Ball(1.0), LpBall(1.5)), (Hinge(), Squared())
    ):
        problem = problem_of(loss, C, "l2")
        plan = PerturbedObjective().plan(problem, budget)
        curator = Curator(LocalEngine(rows, Y, problem.bounds), plan.event, Noise(3))
        theta = PerturbedObjective().run(plan, problem, curator).theta.dense()
        assert problem.set.contains(theta, 1e-6)
        if C is point:
            np.testing.assert_allclose(theta, 0.25, atol=1e-12)


@pytest.mark.parametrize(
    "make", [lambda: L2Ball(0.0), lambda: LpBall(1.5, 0.0), lambda: Polytope(np.zeros((3, 2))),
             lambda: LpBall(0.5), lambda: SparseBall(2, 0.0), lambda: PerturbedObjective(1, 0.0),
             lambda: PerturbedObjective(smoothing=0.0), lambda: PerturbedObjective(smoothing="no")],
)  # fmt: skip
def test_a_parameter_that_is_out_of_range_is_named(make):
    with pytest.raises(ValueError, match=r"radius|vertex|p=|regularisation|smoothing"):
        make()
