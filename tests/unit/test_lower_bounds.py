"""Lower bounds: against the best mechanism where it is known, and below every plan's bound."""

import math

import numpy as np
import pytest

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.hard_instances import HardInstance
from riata.losses import Absolute, Hinge, Huber, Logistic, Quantile, SmoothedHinge, Squared
from riata.lower_bounds import lower_bound, lower_bounds
from riata.privacy import Budget
from riata.problem import Problem
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex, SparseBall
from riata.solvers import SOLVERS
from riata.solvers.risk_range import risk_range

INF = float("inf")
ENTRIES, LENGTH = Bounds(1.0, 1.0), Bounds(1.0, 1.0, norm="l2")


def problem(loss=None, C=None, bounds=ENTRIES, n=2_000, p=64, **facts):
    return Problem(loss or Squared(), C or L1Ball(1.0), bounds, n, p, **facts)


def value(which, *args, **facts):
    budget = facts.pop("budget", Budget(1.0))
    found = {each.hidden: each.value for each in lower_bounds(problem(*args, **facts), budget)}
    return found.get(which, 0.0)


def test_a_hidden_sign_costs_what_the_best_randomised_response_pays():
    # An absolute loss whose label is out of reach is a line, and randomised response is optimal.
    n, epsilon = 2_000, 0.37
    found = value("signs", Absolute(), LpBall(2.0, 0.5), n=n, p=1, budget=Budget(epsilon))
    paid = [k / n * 0.5 * (1 - math.tanh(k * epsilon / 2)) for k in range(1, 60)]
    assert found == pytest.approx(max(paid), rel=1e-12)


def test_signs_add_up_over_columns():
    one, many = (value("signs", C=LpBall(INF), p=p, bounds=LENGTH) for p in (1, 16))
    assert many == pytest.approx(16 * one, rel=1e-12)
    linear = [value("signs", Absolute(), L2Ball(0.5), LENGTH, p=p) for p in (1, 16, 64)]
    assert linear[1] / linear[0] == pytest.approx(4.0)  # sqrt(p) / n, as Bassily et al. have it
    assert linear[2] / linear[0] == pytest.approx(8.0)


def test_orthogonal_rows_of_signs_are_as_long_as_entries_allow():
    short = value("signs", Absolute(), L2Ball(0.01), LENGTH, p=64)
    assert value("signs", Absolute(), L2Ball(0.01), ENTRIES, p=64) == pytest.approx(8 * short)


def test_a_hidden_vertex_costs_little_less_than_the_best_weighted_choice_pays():
    n, p, epsilon = 2_000, 1_000, 0.5
    found = value("a vertex", Absolute(), Simplex(0.5), n=n, p=p, budget=Budget(epsilon))

    def paid(k):
        weight = math.exp(k * epsilon)
        return k / n * 0.5 * (1 - weight / (weight + p - 1))

    worst = max(paid(k) for k in range(1, 60))
    assert 0.75 * worst < found <= worst


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_hidden_direction_is_hardly_guessed(delta):
    """Hoeffding's inequality is what the bound on a guess uses, so simulate it. False alarms: the
    inequality holds with a factor of 2 to spare, and 20,000 draws leave it with less than 1e-6."""
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(64)
    signs = rng.choice([-1.0, 1.0], (20_000, 64))
    for t in (0.1, 0.3, 0.5):
        share = np.mean(signs @ theta > t * 8 * np.linalg.norm(theta))
        assert share <= math.exp(-t * t * 32)
    budget = Budget(1.0, delta)
    direction = value("a direction", C=L2Ball(1.0), bounds=LENGTH, p=4096, budget=budget)
    zero = 4096 / 2_000  # no more than the model 0 pays on rows that are all of the code
    assert 0 < direction < zero
    wider = [value("a direction", C=L2Ball(1.0), bounds=LENGTH, p=p) for p in (64, 128, 256)]
    assert wider == sorted(wider)


def test_a_dense_direction_has_the_pure_rate():
    found = [value("a dense direction", n=n, p=2**15) for n in (2**12, 2**14, 2**16)]
    slopes = np.diff(np.log2(found)) / 2
    assert slopes == pytest.approx([-0.5, -0.5], abs=0.1)  # as frank-wolfe under pure privacy


def test_the_code_is_that_of_the_hard_instances():
    n, budget = 2**14 + 64, Budget(1.0, 1e-9)
    best = HardInstance.hardest(n, 1.0, 1e-9)
    found = value("a fingerprinting code", n=n, p=n, budget=budget)
    assert 0.85 * best.lower_bound(1.0, 1e-9) < found <= 1.05 * best.lower_bound(1.0, 1e-9)


def test_units_do_not_matter():
    small = lower_bounds(problem(n=5_000, p=512), Budget(1.0, 1e-6))
    scaled = problem(C=L1Ball(20.0), bounds=Bounds(0.5, 10.0), n=5_000, p=512)
    large = lower_bounds(scaled, Budget(1.0, 1e-6))
    assert [each.hidden for each in large] == [each.hidden for each in small]
    for one, other in zip(small, large, strict=True):
        assert other.value == pytest.approx(100 * one.value)


def test_what_is_not_known_is_not_claimed():
    corners = np.vstack([np.eye(4), -np.eye(4)])
    assert lower_bound(problem(C=Polytope(corners), p=4), Budget(1.0)) is None
    assert lower_bound(problem(), Budget(INF)) is None
    assert lower_bound(problem(fit_intercept=True, loss=Quantile(0.3)), Budget(1.0)) is None
    counts = Bounds(1.0, 1.0, nonnegative=True)
    assert lower_bound(problem(bounds=counts, fit_intercept=True), Budget(1.0)) is None
    hidden = {each.hidden for each in lower_bounds(problem(fit_intercept=True), Budget(1.0))}
    assert hidden == {"signs", "a vertex"}


@pytest.mark.matrix(one_in=11, test_all_one_in=3)
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(0.5), SmoothedHinge(0.5), Hinge()])
@pytest.mark.parametrize(
    ("C", "bounds"),
    [
        (L1Ball(1.0), ENTRIES),
        (L1Ball(1.0), LENGTH),
        (L1Ball(1.0), Bounds(1.0, 1.0, nonnegative=True)),
        (L2Ball(1.0), LENGTH),
        (L2Ball(1.0), ENTRIES),
        (Simplex(1.0), ENTRIES),
        (GroupL1Ball(4), LENGTH),
        (LpBall(1.5), LENGTH),
        (LpBall(INF, 0.1), ENTRIES),
        (SparseBall(3), LENGTH),
    ],
    ids=repr,
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_plan_promises_less_than_what_nobody_can_do(loss, C, bounds, delta):
    for adjacency, epsilon in (("replace-one", 0.1), ("add-remove", 2.0)):
        public = problem(loss, C, bounds, n=1_000, p=32, adjacency=adjacency)
        budget = Budget(epsilon, delta)
        below = lower_bound(public, budget)
        for name in ("frank-wolfe", "gaussian-frank-wolfe", "objective-perturbation"):
            try:
                plan = SOLVERS[name]().plan(public, budget)
            except InvalidArgument:
                continue
            assert below is None or below.value < plan.excess_risk


def test_less_privacy_and_more_rows_make_everything_easier():
    for C, bounds in ((L1Ball(1.0), ENTRIES), (L2Ball(1.0), LENGTH)):
        by_epsilon = [
            lower_bound(problem(C=C, bounds=bounds), Budget(e, 1e-6)).value for e in (0.1, 1.0, 5.0)
        ]
        assert by_epsilon == sorted(by_epsilon, reverse=True)
        by_rows = [
            lower_bound(problem(C=C, bounds=bounds, n=n), Budget(1.0)).value for n in (500, 5_000)
        ]
        assert by_rows[0] > by_rows[1]


@pytest.mark.parametrize(
    ("C", "bounds", "most"), [(L2Ball(1.0), LENGTH, 90), (L1Ball(1.0), ENTRIES, 700)]
)
def test_upper_and_lower_are_within_the_stated_factor(C, bounds, most):
    found = risk_range(problem(C=C, bounds=bounds, n=8_192, p=8_192), Budget(1.0, 1e-6))
    assert 1 < found.factor < most
    assert f"{found.lower:.3g}" in str(found)
    assert found.upper <= found.plan.excess_risk


def test_a_range_says_when_nothing_is_known_or_nothing_can_be_learned():
    far = risk_range(problem(C=L2Ball(1.0), bounds=LENGTH, n=50, p=4_000), Budget(0.1))
    assert "reads nothing" in str(far)
    with pytest.raises(InvalidArgument, match="No solver promises"):
        risk_range(problem(C=SparseBall(3)), Budget(1.0))


def test_a_printed_plan_has_both_bounds():
    plan = SOLVERS["frank-wolfe"]().plan(problem(), Budget(1.0, 1e-6))
    below = plan.lower_bound
    assert f"no private model is below {below.value:.3g} on all data" in str(plan)
    assert f"a factor of {plan.excess_risk / below.value:,.3g}" in str(plan)


def test_no_lower_bound_where_rows_have_a_length_beside_their_entries():
    """Its hard rows have all entries at their bounds, which may be too long."""
    bounds = Bounds(1.0, 1.0, length=2.0)
    problem = Problem(Squared(), L1Ball(1.0), bounds, 1_000, 50)
    assert lower_bounds(problem, Budget(1.0, 1e-6)) == []
