"""Hostile rows, and what neighbours that differ in one of them change, in exact arithmetic.

Answers are whole numbers of one common unit, so that no tolerance for rounding is left.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata import losses
from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.losses import Huber, Logistic, SmoothedHinge, Squared
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.problem import Problem
from riata.queries import Block
from riata.sets import L2Ball
from riata.vectors import Vector

P = 6
NORMS = ("l1", "l2", "linf")
LOSSES = [Squared(), Huber(0.5), Logistic(), SmoothedHinge(0.3)]
LENGTH = Bounds(1.4, 1.3, norm="l2")
BOUNDS = [
    Bounds(0.9, 1.3),
    Bounds([0.3, 1.0, 2.5, 1e-3, 1.0, 0.7], 1.3),
    LENGTH,
    Bounds(0.9, 1.3, length=1.4),
    Bounds([0.3, 1.0, 2.5, 1e-3, 1.0, 0.7], 1.3, length=1.2),
    Bounds([0.3, 1.0, 4.0, 0.1, 1.0, 0.7], 1.3, nonzeros=1),
]
every_loss = pytest.mark.parametrize("loss", losses.REGISTRY.complete(LOSSES), ids=repr)
every_bound = pytest.mark.parametrize("bounds", BOUNDS, ids=repr)
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
every_layout = pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])


def problem_of(loss=None, bounds=LENGTH, n=1, adjacency=REPLACE_ONE):
    return Problem(loss or Squared(), L2Ball(1.0), bounds, n, P, adjacency)


def hostile_rows(rng, n, p=P):
    """Corners, single long entries, short rows, empty rows and rubbish, and their targets."""
    rubbish = np.array([0.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.01, -0.01, 1.0, -1.0])
    corners = rng.choice([-1e9, 1e9], (n, p))
    single = np.zeros((n, p))
    single[np.arange(n), rng.integers(0, p, n)] = rng.choice([-1e9, 1e9], n)
    near = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-6, 3, (n, 1))
    x = np.vstack([corners, single, near, rng.choice(rubbish, (n, p)), np.zeros((n // 4, p))])
    return x, rng.choice([-9.0, -1.0, 0.0, 1.0, 9.0, np.nan, np.inf], len(x))


def hostile_classes(rng, n, p, codes):
    """The same with opposite corners and full rows, and codes of classes for targets."""
    x, _ = hostile_rows(rng, n, p)
    full = np.full((4, p), 1e9)
    x = np.vstack([x, -x[:n], full, 0 * full])
    return x, rng.choice([*codes, -9.0, -1.0, np.nan, np.inf, -np.inf], len(x))


def some_points(rng, count=4):
    """A few thetas, zero and sparse ones among them."""
    yield Vector.zero(P)
    for k in range(count - 1):
        dense = rng.standard_normal(P) * (rng.random(P) < 0.7) * 10.0 ** (k - 1)
        yield Vector.of(dense).with_offset(0.3 * k)


def squared_length(vector, norm):
    if norm == "l2":
        return sum(v * v for v in vector)
    sizes = [abs(v) for v in vector]
    return (sum(sizes) if norm == "l1" else max(sizes)) ** 2


def in_fractions(query, total):
    """An exact sum as the exact answer that it stands for."""
    units = np.broadcast_to(query.unit, np.shape(total))
    return [int(t) * Fraction(float(u)) for t, u in zip(total, units, strict=True)]


def summands(query, x, y, layout=np.asarray):
    """What each row alone adds to the sum, as integers."""
    rows, targets = query.bounds.grid_x(layout(x)), query.bounds.clip_y(y)
    each = [query.block_sum(Block(rows[[i]], targets[[i]])) for i in range(len(targets))]
    assert all(np.array_equal(one, np.rint(one)) for one in each)
    return np.array(each).astype(np.int64)


def whole_answers(query, alone):
    """The answers of sums of integers, in whole numbers of one unit, and the unit."""
    ratios = [
        float(unit).as_integer_ratio() for unit in np.broadcast_to(query.unit, alone[0].shape)
    ]
    parts = max(below for _, below in ratios)
    factors = [above * (parts // below) for above, below in ratios]
    answers = [[t * f for t, f in zip(one.tolist(), factors, strict=True)] for one in alone]
    return answers, Fraction(1, parts)


def squared_lengths(query, alone, norm="l2"):
    """The squared length of each answer, exactly."""
    answers, unit = whole_answers(query, alone)
    return [squared_length(one, norm) * unit**2 for one in answers]


def exceeds(query, alone, *norms):
    """Whether a removed row, or a replaced one, changes the answer by more than a sensitivity."""
    answers, unit = whole_answers(query, alone)
    for norm in norms:
        changes = answers
        if query.adjacency != ADD_REMOVE:
            # The longest summands, and a few others: their differences are the worst.
            order = sorted(answers, key=lambda one: squared_length(one, norm))
            changes = [
                [a - b for a, b in zip(one, other, strict=True)]
                for one, other in itertools.combinations(order[-20:] + order[:4], 2)
            ]
        longest = max(squared_length(change, norm) for change in changes)
        if longest > (Fraction(query.sensitivity(norm)) / unit) ** 2:
            return True
    return False


def assert_no_neighbour_exceeds(query, alone, norms):
    assert not exceeds(query, alone, *norms)


def squared_share(query, row, other, norm="l2"):
    """The squared change when a row replaces another, or is added, as a part of that allowed.

    Rows are pairs of x, with one row or several, and the target of each of them.
    """
    ours, theirs = (
        LocalEngine(
            x if sparse.issparse(x) else np.atleast_2d(x), np.atleast_1d(y), query.bounds
        ).total(query)
        for x, y in (row, other)
    )
    change = ours - theirs if query.adjacency == REPLACE_ONE else ours
    allowed = Fraction(query.sensitivity(norm)) ** 2
    return squared_length(in_fractions(query, change), norm) / allowed


def assert_same_sums(queries, x, y, bounds, rng):
    """Dense and sparse rows have the same sums, whatever the blocks and their order."""
    for query in queries:
        whole = LocalEngine(x, y, bounds).total(query)
        for layout, block in itertools.product((np.asarray, sparse.csr_array), (1, 7, 10**6)):
            order = rng.permutation(len(x))
            engine = LocalEngine(layout(x[order]), y[order], bounds, block_rows=block)
            np.testing.assert_array_equal(engine.total(query), whole)
