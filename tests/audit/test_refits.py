"""Audits of the refitting solvers: every release costs what the filter charged, and no more.

Replays are exact. The black-box audit accuses a sound fit with probability at most 1e-9 over the
choice of its seed; seeds are fixed. Broken twins show that the audits would notice.
"""

from fractions import Fraction

import numpy as np
import pytest

from riata import Bounds, PrivateErm, PrivateLogisticRegression
from riata.audit import lower_bound, replay, replays, worst_pair
from riata.audit.witness import Trial
from riata.curator import Filter
from riata.errors import BudgetExceeded
from riata.losses import Huber, Logistic, SmoothedHinge, Squared
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import PureAccountant, ZcdpAccountant
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.queries import (
    Coordinate,
    Correlations,
    EntrySizes,
    Improvement,
    LengthSizes,
    LimitedSlope,
    Query,
    SlopeSizes,
    SupportCurvature,
    SupportGradient,
)
from riata.queries.sizes import SHARE_STEPS, _bins_of_rows, column_ranks
from riata.sets import L1Ball, L2Ball
from riata.solvers import PrivateGreedy, RefittedFrankWolfe, SufficientStatistics
from riata.solvers.adaptive_budget import RemainingBudget
from riata.solvers.refit import Run

from replaying import (
    ENTRIES,
    LENGTH,
    N_COLUMNS,
    erm,
    every_adjacency,
    hostile_pairs,
    hostile_replays,
    worst_replay,
    worst_rows,
)

pytestmark = pytest.mark.matrix(one_in=11)

PAIRS = 20
EVERY_KIND = {
    Coordinate, Correlations, EntrySizes, Improvement, LengthSizes, LimitedSlope, SlopeSizes,
    SupportCurvature, SupportGradient,
}  # fmt: skip


def refit(loss, solver, bounds=ENTRIES, constraint=None, **options):
    return erm(loss, constraint or L1Ball(5.0), bounds, solver, **options)


MODELS = {
    "greedy": refit(Squared(), PrivateGreedy(6)),
    "greedy, pure": refit(Squared(), PrivateGreedy(6), delta=0.0),
    "greedy, large budget": refit(Huber(0.5), "greedy", epsilon=300.0),
    "greedy, pure, large budget": refit(Logistic(), "greedy", delta=0.0, epsilon=1e4),
    "greedy, length": refit(Logistic(), PrivateGreedy(6), LENGTH, constraint=L2Ball(2.0)),
    "refitted": refit(Squared(), RefittedFrankWolfe(4)),
    "refitted, pure": refit(SmoothedHinge(), RefittedFrankWolfe(4), delta=0.0),
    "refitted, no intercept": refit(Huber(0.3), RefittedFrankWolfe(4), fit_intercept=False),
    "all columns": refit(Squared(), SufficientStatistics()),
    "all columns, pure": refit(Squared(), SufficientStatistics(), delta=0.0),
    "all columns, length": refit(Logistic(), SufficientStatistics(), LENGTH),
    "three classes": lambda adjacency: PrivateLogisticRegression(
        3.0, 1e-6, bounds=ENTRIES, classes=["a", "b", "c"], solver="greedy", adjacency=adjacency
    ),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@every_model
@every_adjacency
def test_no_release_exceeds_its_claim_and_all_cost_no_more_than_was_charged(make, adjacency):
    model = make(adjacency)
    found, worst = hostile_replays(model, PAIRS, seed=1), worst_replay(model, seed=2)
    pure = found[0].plan.budget.delta == 0
    cost = (PureAccountant() if pure else ZcdpAccountant()).exactly
    charged = cost(worst.plan.event)
    for each in (*found, worst):
        assert each.sound
        assert each.realised.epsilon <= each.claimed.epsilon
        used = sum((cost(release.event) for release in each.releases), Fraction())
        assert used <= charged
    assert worst.worst >= 0.9


def test_every_kind_of_query_is_among_the_audited_releases():
    seen, largest = set(), {}
    for name in ("greedy, large budget", "refitted", "all columns"):
        model = MODELS[name](ADD_REMOVE)
        for k, pair in enumerate(hostile_pairs(model, 6)):
            for each in Trial(model, *pair).run(Noise(k)):
                seen.add(type(each.query))
                moved = bool(np.any(each.ours != each.theirs))
                largest[type(each.query)] = largest.get(type(each.query), False) or moved
    assert seen == EVERY_KIND
    assert all(largest.values())  # and each of them tells of the row that is missing


# Broken twins that a replay catches


def caught(model, pairs=12):
    """Whether a worst pair, or one of a few hostile ones, shows a release beyond its claim."""
    each_pair = [worst_rows(model), *hostile_pairs(model, pairs)]
    return any(not each.sound for each in replays(model, each_pair, seed=3))


@pytest.mark.parametrize("name", ["greedy", "greedy, pure", "refitted", "all columns"])
@every_adjacency
def test_half_the_sensitivity_is_accused(monkeypatch, name, adjacency):
    model = MODELS[name](adjacency)
    assert not caught(model)
    honest = Query.sensitivity
    monkeypatch.setattr(Query, "sensitivity", lambda self, norm: honest(self, norm) / 2)
    assert caught(model)


SHORT = refit(Squared(), SufficientStatistics(), epsilon=1e4)(REPLACE_ONE)


def short_rows(outlier):
    """Many short rows, so that a released length is short, and one of another length."""
    rng = np.random.default_rng(4)
    x = 0.02 * rng.standard_normal((400, N_COLUMNS)) * ENTRIES.x
    y = rng.uniform(-1.5, 1.5, 400)
    x[0] = outlier * ENTRIES.x
    return x, y


def test_rows_on_a_support_that_are_not_shortened_are_accused(monkeypatch):
    pair = short_rows(1.0), short_rows(-1.0)
    assert replay(SHORT, *pair, seed=5).sound

    def whole(self, entries):
        constant = np.full(len(entries), np.floor(self.constant * 2**16))
        return np.column_stack([entries, constant]) if self.constant else entries

    monkeypatch.setattr(SupportGradient, "rows", whole)
    assert not replay(SHORT, *pair, seed=5).sound


def test_every_entry_with_a_vote_of_its_own_is_accused(monkeypatch):
    model = MODELS["greedy"](REPLACE_ONE)

    def every_entry(self, block):
        ranks = column_ranks(block.shape[1])
        places, counts = _bins_of_rows(block.rows, self.parts, ranks)
        total = np.zeros(len(self.edges))
        total[places] = counts.sum(axis=0) * float(SHARE_STEPS)
        return total

    assert not caught(model)
    monkeypatch.setattr(EntrySizes, "block_sum", every_entry)
    assert caught(model)


@pytest.mark.parametrize("kind", [SupportGradient, Coordinate, LimitedSlope])
def test_non_negative_inner_products_claimed_of_signed_summands_are_accused(monkeypatch, kind):
    name = "all columns" if kind is SupportGradient else "greedy"
    model = MODELS[name](REPLACE_ONE)
    assert not caught(model)
    monkeypatch.setattr(kind, "nonnegative_inner", True)
    assert caught(model)


def test_scales_that_nobody_pays_for_are_refused_by_the_filter_and_accused_without_it(monkeypatch):
    model = refit(Squared(), SufficientStatistics())(REPLACE_ONE)
    assert worst_replay(model, seed=6).covered

    scale, free = Run.scale, []

    def unpaid(self, query, amount):
        left = self.remaining.left
        found = scale(self, query, 100 * amount)  # so much that it cannot go unnoticed
        self.remaining.left = left
        free.append(amount)
        return found

    monkeypatch.setattr(Run, "scale", unpaid)
    with pytest.raises(BudgetExceeded):
        worst_replay(model, seed=6)

    monkeypatch.setattr(
        "riata.curator.Filter.take", lambda self, event: None
    )  # a filter that counts nothing
    found = worst_replay(model, seed=6)
    monkeypatch.undo()
    assert not found.covered
    assert not found.sound
    assert free


def test_a_purse_that_sells_too_cheaply_is_refused(monkeypatch):
    model = MODELS["all columns"](REPLACE_ONE)
    monkeypatch.setattr(RemainingBudget, "_take", lambda self, amount: None)
    with pytest.raises(BudgetExceeded):
        worst_replay(model, seed=7)


def test_a_filter_is_not_a_list():
    model = MODELS["greedy"](REPLACE_ONE)
    found = worst_replay(model, seed=8)
    assert found.plan.adaptive
    assert Filter(found.plan.event)._left == ZcdpAccountant().exactly(found.plan.event)


# A black box


def shown(draws, epsilon, seed=9):
    """What two rows, one of them replaced by its opposite, show of a small greedy fit."""
    model = PrivateErm(
        Squared(), L1Ball(1.0), epsilon, 0.01, bounds=Bounds(1.0, 1.0), solver=PrivateGreedy(2),
        fit_intercept=False,
    )  # fmt: skip
    pair = worst_pair(model, 2, 1)
    return lower_bound(
        model, pair.data, pair.neighbour, draws=draws, deltas=(0.01, 0.1), failure=1e-9, seed=seed
    )


def test_a_greedy_fit_is_not_accused_and_hardly_any_noise_is(monkeypatch):
    assert shown(300, 0.8).sound
    honest = Query.sensitivity
    monkeypatch.setattr(Query, "sensitivity", lambda self, norm: honest(self, norm) / 60)
    assert not shown(300, 0.8).sound


@pytest.mark.slow
def test_a_greedy_fit_is_not_accused_in_a_long_audit():
    assert shown(5_000, 6.0).sound
