"""The regularisation and the smoothing that objective perturbation chooses from public facts."""

import numpy as np
import pytest

from riata import PrivateErm
from riata.bounds import Bounds
from riata.errors import Incompatible
from riata.losses import Hinge, Linear, Logistic, Quantile, Squared
from riata.privacy import Budget
from riata.problem import Problem
from riata.queries import Minimum
from riata.sets import L1Ball, L2Ball
from riata.solvers import PerturbedObjective, Projected, objective_perturbation

LENGTH = Bounds(1.0, 1.0, norm="l2")


def planned(loss, n, p, delta=0.0, **options):
    problem = Problem(loss, L2Ball(1.0), LENGTH, n, p)
    return PerturbedObjective(**options).plan(problem, Budget(1.0, delta))


@pytest.mark.parametrize(
    ("loss", "p", "most"),
    [
        (Logistic(), 1_000, 0.0055), (Logistic(), 10_000, 0.053), (Linear(), 10_000, 0.09),
        (Squared(), 1_000, 0.028), (Squared(), 10_000, 0.27),
    ],
)  # fmt: skip
def test_a_million_rows_are_regularised_as_much_as_hiding_needs(loss, p, most):
    """The bound grows like p, as the optimum does: more noise to hide is met by more penalty."""
    assert planned(loss, 10**6, p).excess_risk <= most
    assert planned(loss, 10**6, 2 * p).excess_risk <= 2.1 * planned(loss, 10**6, p).excess_risk


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("n", "p"), [(10**3, 3), (10**4, 300), (10**6, 10), (10**6, 5_000)])
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=repr)
def test_no_regularisation_has_a_much_smaller_bound(loss, n, p, delta):
    plan = planned(loss, n, p, delta)
    chosen = plan["minimise"].regularisation
    for factor in (0.03, 0.3, 0.6, 0.9, 1.1, 1.6, 3.0, 30.0):
        other = planned(loss, n, p, delta, regularisation=factor * chosen)
        assert plan.excess_risk <= 1.02 * other.excess_risk


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("loss", [Hinge(), Quantile(0.8)], ids=repr)
def test_a_corner_is_rounded_more_where_that_is_quicker(monkeypatch, loss, delta):
    problem = Problem(loss, L1Ball(2.0), LENGTH, 30_000, 50, fit_intercept=True)

    def condition(plan):
        query = Minimum(problem, plan["minimise"].smoothing)
        return query.n_rows * query.row_curvature / plan["minimise"].regularisation

    quick = PerturbedObjective().plan(problem, Budget(3.0, delta))
    monkeypatch.setattr(objective_perturbation, "WORSE", 1.0)
    best = PerturbedObjective().plan(problem, Budget(3.0, delta))
    assert best.excess_risk < quick.excess_risk <= 1.1 * best.excess_risk
    assert condition(quick) < 0.7 * condition(best)
    assert quick["minimise"].smoothing > best["minimise"].smoothing
    for given in (0.5, 1e-3):  # what was asked for is taken
        plan = PerturbedObjective(smoothing=given).plan(problem, Budget(3.0, delta))
        assert plan["minimise"].smoothing == given


def test_few_rows_have_the_smallest_bound(monkeypatch):
    problem = Problem(Hinge(), L2Ball(1.0), LENGTH, 500, 3)
    quick = PerturbedObjective().plan(problem, Budget(1.0, 0.0))
    monkeypatch.setattr(objective_perturbation, "WORSE", 1.0)
    best = PerturbedObjective().plan(problem, Budget(1.0, 0.0))
    assert quick == best
    assert np.isfinite(quick.excess_risk)


# Behind a projection


def projected(n, p=4_000, inner="auto", **options):
    problem = Problem(Squared(), L1Ball(1.0), LENGTH, n, p)
    solver = Projected(inner=inner, **options)
    return solver, problem, solver.plan(problem, Budget(1.0, 0.0))


@pytest.mark.parametrize("n", [1_000, 10_000, 50_000])
def test_pure_squares_take_the_inner_solver_with_the_smaller_bound(n):
    plans = [
        projected(n, inner=name)[2] for name in ("posterior-sampling", "objective-perturbation")
    ]
    _, _, plan = projected(n)
    best = min(plans, key=lambda each: each.excess_risk)
    assert (plan.solver, plan.excess_risk) == (best.solver, best.excess_risk)
    assert plan.mechanisms == best.mechanisms
    assert plans[0].projection.dimension <= 256
    if n > 1_000:
        assert plan.solver.endswith("objective-perturbation")
        assert plan.projection.dimension > 256


@pytest.mark.not_quick
def test_the_bound_of_a_pure_projection_falls_as_the_theorem_says():
    """Like n^(-1/3) beyond 256 dimensions, up to the dimension that memory allows."""
    first, last = (projected(n, p=20_000)[2] for n in (2_000, 16_000))
    exponent = np.log(last.excess_risk / first.excess_risk) / np.log(8)
    assert last.projection.dimension > 256
    assert exponent == pytest.approx(-1 / 3, abs=0.07)


def test_facts_that_an_exact_draw_refuses_leave_the_other_solver():
    problem = Problem(Squared(), L1Ball(1.0), LENGTH, 10**8, 40)
    plan = Projected().plan(problem, Budget(1e6, 0.0))
    assert plan.solver.endswith("objective-perturbation")
    with pytest.raises(Incompatible, match="too long"):
        Projected(inner="posterior-sampling").plan(problem, Budget(1e6, 0.0))


@pytest.mark.parametrize(("dimension", "name"), [(3, "posterior-sampling"), (300, "objective-p")])
def test_a_fit_runs_the_inner_solver_of_its_plan(dimension, name):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2_000, 320))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    model = PrivateErm(
        Squared(), L2Ball(1.0), 20.0, 0.0, bounds=LENGTH, fit_intercept=False, random_state=0,
        solver=Projected(dimension=dimension),
    )  # fmt: skip
    plan = model.plan(*x.shape)
    assert name in plan.solver
    model.fit(x, np.clip(x @ rng.standard_normal(320), -1, 1))
    assert list(plan.mechanisms) == [{"p": "draw", "o": "minimise"}[name[0]]]
    assert model.privacy_.epsilon <= 20.0
    assert np.linalg.norm(model.coef_) <= 1 + 1e-9
