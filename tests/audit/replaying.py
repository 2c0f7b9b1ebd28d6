"""What audits by replay share: small fits of any loss over any set, and what their replays find."""

import numpy as np
import pytest

from riata import Bounds, PrivateErm
from riata.audit import random_pairs, replay, replays, worst_pair
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE

N_ROWS, N_COLUMNS = 12, 8
ENTRIES = Bounds(np.linspace(0.5, 2.0, N_COLUMNS), 1.5)
LENGTH = Bounds(1.3, 1.5, norm="l2")
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])


def erm(loss, constraint, bounds, solver, delta=1e-6, epsilon=1.0, **options):
    """A model for each adjacency."""
    return lambda adjacency: PrivateErm(
        loss, constraint, epsilon, delta, bounds=bounds, solver=solver, adjacency=adjacency,
        **options,
    )  # fmt: skip


def hostile_pairs(model, pairs):
    return random_pairs(model, pairs, N_ROWS, N_COLUMNS)


def hostile_replays(model, pairs, seed):
    return list(replays(model, hostile_pairs(model, pairs), seed=seed))


def worst_rows(model):
    """The worst data set that is known, and its neighbour."""
    pair = worst_pair(model, N_ROWS, N_COLUMNS)
    return pair.data, pair.neighbour


def worst_replay(model, seed):
    return replay(model, *worst_rows(model), seed=seed)
