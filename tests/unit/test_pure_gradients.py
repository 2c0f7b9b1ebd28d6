"""Averaged gradients without delta: what they spend, and that no release exceeds its claim."""

import numpy as np
import pytest

from riata import Bounds, PrivateErm
from riata.audit import random_pairs, replays
from riata.losses import Logistic, Squared
from riata.privacy.events import Pure, leaves
from riata.sets import L2Ball


def erm(loss, adjacency="replace-one", **options):
    return PrivateErm(
        loss, L2Ball(10.0), 1.0, 0.0, bounds=Bounds(1.3, 1.0, norm="l2"),
        solver="averaged-gradient", adjacency=adjacency, **options,
    )  # fmt: skip


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_no_release_exceeds_its_claim_and_together_they_cost_the_budget(loss, adjacency):
    model = erm(loss, adjacency)
    plan = model.plan(12, 8)
    assert all(isinstance(leaf, Pure) for leaf in leaves(plan.event))
    assert 1 - 1e-6 <= plan.spent.epsilon <= 1.0
    found = list(replays(model, random_pairs(model, 4, 12, 8), seed=1))
    assert all(each.sound for each in found)
    assert all(each.realised.epsilon <= each.claimed.epsilon for each in found)


def test_a_strong_direction_is_found():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (4_000, 6)) / 6**0.5
    y = np.clip(x @ np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0]), -1, 1)
    assert erm(Squared(), random_state=0).fit(x, y).score(x, y) > 0.5
