"""What the tests of the solvers with Gaussian gradients share: losses, a problem, a run."""

import pytest

from riata import PrivateErm
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import Incompatible
from riata.losses import Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared
from riata.mechanisms.noise import Noise
from riata.privacy import Budget
from riata.privacy.accountants import GaussianAccountant
from riata.privacy.events import Gaussian, leaves
from riata.problem import Problem
from riata.sets import L1Ball, L2Ball, Simplex

LOSSES = [Squared(), Huber(0.5), Logistic(), SmoothedHinge(0.3), OneAgainstRest(Logistic(), 1)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_adjacency = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
with_or_without = pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
some_budgets = pytest.mark.parametrize(("fits", "epsilon"), [(1, 1.0), (3, 0.1), (2, 30.0)])

#: What none of the solvers takes, and the words of the refusal.
what_does_not_fit = pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.0}, "delta=0"),
        ({"epsilon": float("inf")}, "epsilon=inf"),
        ({"constraint": Simplex(1.0)}, "Simplex"),
    ],
)


def problem_of(loss=None, *, bounds, p, n=1_000, adjacency="replace-one", intercept=True):
    constraint = L2Ball(100.0)
    return Problem(loss or Squared(), constraint, bounds, n, p, adjacency, fit_intercept=intercept)


def planned_releases(solver, problem, fits, epsilon):
    """A plan that spends the budget exactly, by Gaussian releases, and how many there are."""
    plan = solver.plan(problem, Budget(epsilon, 1e-6, problem.adjacency), fits)
    assert 1 - 1e-9 <= plan.spent.epsilon / epsilon <= 1
    assert plan.spent.accountant == GaussianAccountant.name
    counts = leaves(plan.event)
    assert all(isinstance(leaf, Gaussian) for leaf in counts)
    return plan, sum(counts.values())


def run_as_planned(solver, problem, x, y):
    """The solution of a run that makes the releases of its plan and no others."""
    plan, told = solver.plan(problem, Budget(20.0, 1e-6)), []
    curator = Curator.open(
        plan.event,
        read=lambda: LocalEngine(x, y, problem.bounds),
        noise=Noise(0),
        adjacency="replace-one",
    )
    solution = solver.run(plan, problem, curator, told.append)
    assert "0 releases left" in repr(curator)
    assert [step.number for step in told] == list(range(1, solver.steps + 1))
    assert solution.steps == solver.steps
    assert problem.fit_intercept or solution.theta.offset == 0.0
    return solution


def assert_refused(solver, bounds, options, words):
    facts = {"constraint": L1Ball(1.0), "epsilon": 1.0, "delta": 1e-6} | options
    model = PrivateErm(
        Squared(), facts["constraint"], facts["epsilon"], facts["delta"], bounds=bounds,
        solver=solver,
    )  # fmt: skip
    with pytest.raises(Incompatible, match=words):
        model.plan(100, 5)


def assert_too_wide(solver, bounds, p):
    with pytest.raises(Incompatible, match="columns"):
        solver.plan(problem_of(bounds=bounds, p=p), Budget(1.0, 1e-6))
