"""`riata.audit.lower_bound`: attacks on whole fits, and on fits that are broken."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from riata import Bounds, PrivateErm, PrivateLasso
from riata.audit import epsilon_lower_bound, lower_bound, worst_pair
from riata.cli import audit
from riata.cli.exits import OK, UNSOUND
from riata.cli.main import app
from riata.errors import InvalidArgument
from riata.losses import Squared
from riata.sets import L1Ball
from riata.solvers import PrivateFrankWolfe

UNIT = Bounds(1.0, 1.0)


def attack(model, n_rows, draws, **options):
    pair = worst_pair(model, n_rows, 1)
    return lower_bound(model, pair.data, pair.neighbour, draws=draws, seed=7, **options)


def one_step(solver=None, delta=0.0, epsilon=1.0):
    return PrivateErm(
        Squared(), L1Ball(1.0), epsilon, delta, bounds=UNIT, fit_intercept=False,
        solver=solver or PrivateFrankWolfe(1),
    )  # fmt: skip


def test_one_step_is_attacked_and_not_accused():
    found = attack(one_step(), 4, 3_000)
    assert 0.6 <= found.lower[0] <= found.claimed[0] <= 1.0
    assert found.sound
    assert "consistent with the claim" in str(found)


@pytest.mark.slow
def test_several_steps_and_an_intercept_are_attacked_at_several_deltas():
    model = PrivateLasso(6.0, 1e-3, bounds=UNIT, solver="frank-wolfe", steps=3)
    found = attack(model, 2, 800, deltas=(1e-3, 1e-2, 0.1))
    assert found.sound
    assert found.claimed[0] > found.claimed[1] > found.claimed[2]
    assert found.ratio > 0.1


class Cheap(PrivateFrankWolfe):
    """Plans for one step and takes many."""

    def plan(self, problem, budget, fits=1):
        paid = PrivateFrankWolfe(1).plan(problem, budget, fits)
        return replace(paid, steps=self.steps)


@pytest.mark.slow
def test_forgotten_composition_is_caught():
    model = one_step(Cheap(40), delta=1e-3, epsilon=2.0)
    pair = worst_pair(model, 2, 1)
    found = lower_bound(model, pair.data, pair.neighbour, draws=200, seed=8)
    # The plan's event covers all forty steps, so the claim is compared by hand.
    assert found.lower[0] > 2.0


def test_equal_data_sets_prove_nothing():
    model = one_step()
    pair = worst_pair(model, 4, 1)
    assert lower_bound(model, pair.data, pair.data, draws=500, seed=9).lower == (0.0,)


def test_an_audit_is_reproducible_and_leaves_the_model_alone():
    model = one_step()
    first, second = attack(model, 4, 200), attack(model, 4, 200)
    assert first == second
    assert not hasattr(model, "coef_")


def test_the_bound_needs_draws():
    with pytest.raises(InvalidArgument, match="at least 10"):
        epsilon_lower_bound([1], [2])


def test_the_bound_is_rarely_wrong_for_randomised_response():
    # At a failure rate of 5%, 400 audits of the worst epsilon = 1 mechanism are wrong at most
    # about 20 times; 60 or more has probability below 1e-12.
    rng, wrong = np.random.default_rng(10), 0
    keep = np.e / (1 + np.e)
    for _ in range(400):
        ours, theirs = rng.random(400) < keep, rng.random(400) >= keep
        found = epsilon_lower_bound(ours.astype(int), theirs.astype(int), failure=0.05)
        wrong += found > 1.0
    assert wrong < 60


def test_the_bound_comes_near_the_truth():
    rng = np.random.default_rng(11)
    keep = np.e / (1 + np.e)
    ours, theirs = rng.random(200_000) < keep, rng.random(200_000) >= keep
    assert 0.93 <= epsilon_lower_bound(ours.astype(int), theirs.astype(int)) <= 1.0


@pytest.fixture
def audited(monkeypatch):
    """The command, with few pairs, tries and fits."""
    monkeypatch.setattr(audit, "QUICK", (2, 1, 40, 12))
    return lambda *options: CliRunner().invoke(app, ["audit", "--quick", *options])


@pytest.mark.long
def test_the_report_of_a_short_audit(tmp_path, audited):
    out = tmp_path / "audit.html"
    result = audited("--out", str(out))
    assert result.exit_code == OK
    page = out.read_text()
    assert "No claim was exceeded." in page
    assert "PrivateLogisticRegression" in page
    assert "searched pair" in page
    assert "<svg" in page
    assert "src=" not in page
    assert "<link" not in page
    assert "exponential mechanism" in result.output


@pytest.mark.slow
def test_a_strict_audit_wants_to_see_something(tmp_path, audited):
    # Forty fits show nothing of a claim.
    assert audited("--out", str(tmp_path / "a.html"), "--strict").exit_code == UNSOUND
