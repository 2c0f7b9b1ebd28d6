"""Second moments are exact integers, and no row exceeds what is derived for its loss."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.grid import MOST_ROWS, X_STEPS
from riata.privacy.budget import ADD_REMOVE, CHANGED_CONTRIBUTIONS, REPLACE_ONE
from riata.queries import Block
from riata.queries.moments import MOST_COEFFICIENTS, Y_STEPS, SquaredMoments

pytestmark = pytest.mark.matrix(one_in=11)

P, N = 4, 523
RNG = np.random.default_rng(81)
RUBBISH = [0.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.01, -0.01, 1.0, -1.0, 5e-324]
with_or_without = pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
every_bound = pytest.mark.parametrize(
    "bounds",
    [Bounds(1.0, 1.0, "l2"), Bounds(2.7, 0.3, "l2"), Bounds(1e-3, 40.0, "l2")],
    ids=repr,
)


def hostile(n=N, p=P):
    """Rows of ordinary numbers, of rubbish, and of single long entries."""
    x = RNG.standard_normal((n, p)) * 10.0 ** RNG.integers(-3, 3, (n, 1))
    x[: n // 3] = RNG.choice(RUBBISH, (n // 3, p))
    x[n // 3 : n // 2] = 0.0
    x[np.arange(n // 3, n // 2), RNG.integers(0, p, n // 2 - n // 3)] = 1e9
    y = np.where(RNG.random(n) < 0.5, RNG.standard_normal(n), RNG.choice(RUBBISH, n))
    return x, y


def query(bounds, intercept=False, radius=1.0, adjacency=REPLACE_ONE, n_rows=N, size=P):
    return SquaredMoments(bounds, radius, n_rows, adjacency, size, intercept)


def whole_rows(bounds, intercept, x, y):
    """The rows (x, [constant], y) as Python's integers."""
    columns = [[int(v) for v in column] for column in bounds.grid_x(x).T]
    if intercept:
        columns.append([X_STEPS] * len(x))
    bounded = [0.0 if math.isnan(v) else max(-bounds.y, min(bounds.y, v)) for v in y]
    columns.append([round(v / bounds.y * Y_STEPS) for v in bounded])
    return list(zip(*columns, strict=True))


@with_or_without
@every_bound
def test_the_sum_is_what_integers_give(bounds, intercept):
    x, y = hostile()
    asked = query(bounds, intercept)
    rows = whole_rows(bounds, intercept, x, y)
    pairs = list(itertools.combinations_with_replacement(range(len(rows[0])), 2))
    expected = [sum(row[i] * row[j] for row in rows) for i, j in pairs]
    total = LocalEngine(x, y, bounds).total(asked)
    assert total.dtype == np.int64
    assert total.tolist() == expected
    matrix = asked.matrix(total)
    assert np.array_equal(matrix, matrix.T)
    assert [int(matrix[i, j]) for i, j in pairs] == expected


@with_or_without
@every_bound
def test_the_sum_depends_on_the_rows_alone(bounds, intercept):
    x, y = hostile()
    asked = query(bounds, intercept)
    expected = LocalEngine(x, y, bounds).total(asked).tolist()
    order = RNG.permutation(N)
    assert LocalEngine(x[order], y[order], bounds).total(asked).tolist() == expected
    assert LocalEngine(np.asfortranarray(x), y, bounds).total(asked).tolist() == expected
    for blocks in range(1, 9):
        engine = LocalEngine(x, y, bounds, block_rows=-(-N // blocks))
        assert engine.total(asked).tolist() == expected


@with_or_without
@every_bound
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_sparse_rows_give_the_same_integers(bounds, intercept, container):
    x, y = hostile()
    x[x == 0] = 1.0  # in a sparse row zeros are not stored, and the room for rounding is smaller
    asked = query(bounds, intercept)
    expected = LocalEngine(x, y, bounds).total(asked).tolist()
    assert LocalEngine(container(x), y, bounds).total(asked).tolist() == expected
    # And with zeros, from the same rows on the grid.
    grid, targets = bounds.grid_x(hostile()[0]), bounds.clip_y(y)
    dense = asked.block_sum(Block(grid, targets))
    assert asked.block_sum(Block(sparse.csr_array(grid), targets)).tolist() == dense.tolist()


def test_the_largest_block_is_summed_without_rounding():
    # 2^21 rows at the bound, less one step in the last of them: 2^53 and its neighbours.
    bounds, n = Bounds(1.0, 1.0, "l2"), 2**21
    x = np.full((n, 1), float(X_STEPS))
    y = np.ones(n)
    x[-1] -= 1
    total = query(bounds, True, size=1, n_rows=n).block_sum(Block(x, y)).astype(np.int64).tolist()
    full, less = n * 2**32, n * 2**32 - 2**16
    assert total == [full - 2 * 2**16 + 1, less, less, full, full, full]


@with_or_without
@every_bound
@pytest.mark.parametrize("radius", [0.01, 1.0, 30.0])
def test_no_loss_varies_by_more_than_its_bound(bounds, intercept, radius):
    # Over the ball <u, theta> takes all values up to |u| |theta|: the rest is exact arithmetic,
    # with the length of a row rounded up.
    asked = query(bounds, intercept, radius)
    step_x, step_y = Fraction(bounds.x) / X_STEPS, Fraction(bounds.y) / Y_STEPS
    for *row, target in whole_rows(bounds, intercept, *hostile()):
        assert sum(k * k for k in row) <= (1 + intercept) * X_STEPS**2
        length = math.isqrt(sum(k * k for k in row)) + bool(any(row))
        reach, y = length * step_x * Fraction(asked.ball_radius), abs(target) * step_y
        lowest = max(y - reach, 0) ** 2
        tolerance = 1 + Fraction(3, X_STEPS)  # of the length, which was rounded up
        assert (reach + y) ** 2 - lowest <= Fraction(asked.loss_bound) * tolerance


@every_bound
@pytest.mark.parametrize("radius", [0.01, 1.0, 30.0])
def test_two_rows_reach_the_bound(bounds, radius):
    # x = R and y = Y, against x = -R: for Y >= R r their losses differ by -4 Y <x, theta>.
    asked = query(bounds, False, radius)
    theta = np.linspace(-radius, radius, 4_001)
    one, other = ((s * bounds.x * theta) * (s * bounds.x * theta - 2 * bounds.y) for s in (1, -1))
    assert (
        0.999 <= np.ptp(one) / asked.loss_bound <= 1
    )  # up to y^2, which is the same for all theta
    if bounds.y >= bounds.x * radius:
        assert 0.999 <= np.ptp(one - other) / (2 * asked.loss_bound) <= 1


def test_the_bound_on_the_loss_is_rounded_up():
    for bounds in (Bounds(1 / 3, 0.7, "l2"), Bounds(1 / 3, 0.01, "l2")):
        asked = query(bounds, False, 0.1)
        margin, y = Fraction(bounds.x) * Fraction(0.1), Fraction(bounds.y)
        meant = (margin + y) ** 2 if y <= margin else 4 * margin * y
        assert (
            meant * (1 + Fraction(1, 2**41)) < asked.loss_bound < meant * (1 + Fraction(1, 2**39))
        )


def test_the_ball_has_room_for_the_intercept():
    asked = query(Bounds(2.0, 3.0, "l2"), True, radius=1.5)
    assert asked.ball_radius == pytest.approx(math.hypot(1.5, 3.0 / 2.0))
    assert asked.loss_bound == pytest.approx((2.0 * math.sqrt(2) * asked.ball_radius + 3.0) ** 2)
    assert asked.n_coefficients == P + 1
    assert query(Bounds(2.0, 3.0, "l2"), radius=1.5).ball_radius == 1.5


@with_or_without
@every_bound
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_no_neighbours_exceed_the_sensitivity(bounds, intercept, adjacency):
    asked = query(bounds, intercept, adjacency=adjacency)
    units = [Fraction(float(unit)) for unit in asked.unit]
    rows = whole_rows(bounds, intercept, *hostile(24))
    corners = [
        [0] * P + [X_STEPS] * intercept + [Y_STEPS],
        [X_STEPS] + [0] * (P - 1) + [X_STEPS] * intercept + [-Y_STEPS],
        [X_STEPS // 2] * P + [X_STEPS] * intercept + [Y_STEPS],
    ]
    pairs = list(itertools.combinations_with_replacement(range(len(rows[0])), 2))
    summands = [[row[i] * row[j] for i, j in pairs] for row in [*rows, *corners]]
    absent = [[0] * len(pairs)] if CHANGED_CONTRIBUTIONS[adjacency] == 1 else summands
    for ours, theirs in itertools.product(summands, absent):
        change = [abs(a - b) * u for a, b, u in zip(ours, theirs, units, strict=True)]
        assert sum(change) <= Fraction(asked.sensitivity("l1"))
        assert sum(v * v for v in change) <= Fraction(asked.sensitivity("l2")) ** 2
        assert max(change) <= Fraction(asked.sensitivity("linf"))


@with_or_without
def test_the_answer_is_the_matrix_of_means(intercept):
    bounds = Bounds(3.0, 2.0, "l2")
    x, y = RNG.standard_normal((N, P)) / 4, RNG.standard_normal(N) / 4
    asked = query(bounds, intercept)
    rows = np.c_[x, np.full((N, int(intercept)), 3.0), y]
    found = asked.from_total(LocalEngine(x, y, bounds).total(asked))
    np.testing.assert_allclose(found, rows.T @ rows / N, atol=1e-4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bounds": Bounds(1.0, 1.0)}, "length of a row"),
        ({"bounds": Bounds(1.0, norm="l2")}, "target"),
        ({"radius": 0.0}, "radius"),
        ({"radius": np.inf}, "radius"),
        ({"n_rows": 0}, "n_rows"),
        ({"n_rows": MOST_ROWS + 1}, "n_rows"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"size": 0}, "size"),
        ({"size": MOST_COEFFICIENTS}, "size"),
    ],
    ids=str,
)
def test_what_cannot_be_bounded_is_refused(wrong, message):
    right = {
        "bounds": Bounds(1.0, 1.0, "l2"),
        "radius": 1.0,
        "n_rows": 10,
        "adjacency": REPLACE_ONE,
        "size": 3,
        "fit_intercept": False,
    }
    SquaredMoments(**right)
    with pytest.raises(InvalidArgument, match=message):
        SquaredMoments(**{**right, **wrong})
