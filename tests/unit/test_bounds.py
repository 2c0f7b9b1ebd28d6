"""Bounds: whatever a row contains, it ends inside the promise, silently."""

import copy
import itertools
import pickle
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata import bounds as bounds_module
from riata import row_norms
from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.grid import MOST_COLUMNS, ROUNDED_UP, X_STEPS
from riata.losses import Huber, RowLoss
from riata.problem import Problem
from riata.sets import L2Ball
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=11)

HOSTILE = np.array(
    [
        [0.0, 0.5, -0.5, 1.0],
        [np.nan, np.inf, -np.inf, 0.1],
        [1e300, -1e300, 1e-300, 5e-324],
        [1.0, 1.0, 1.0, 1.0],
        [-2.0, 0.0, 0.0, 0.0],
        [np.nan, np.nan, np.nan, np.nan],
        [np.inf, np.inf, np.inf, np.inf],
        [1.7e308, -1.7e308, 1.7e308, -0.0],
    ]
)
BOUNDS = [
    Bounds(1.0),
    Bounds(0.3),
    Bounds([1.0, 0.2, 3.0, 1e-3]),
    Bounds(1.0, norm="l2"),
    Bounds(2.5, norm="l2"),
    Bounds(1e60),
    Bounds(1e60, norm="l2"),
    Bounds(1.0, length=1.5),
    Bounds([1.0, 0.2, 3.0, 1e-3], length=2.0),
    Bounds(0.5, nonzeros=2),
    Bounds(2.0, norm=1.0),
    Bounds(1.5, norm=3.5),
]
CONTAINERS = [
    sparse.csr_array,
    sparse.csr_matrix,
    sparse.csc_array,
    sparse.csc_matrix,
    sparse.coo_array,
    sparse.coo_matrix,
]
every_bound = pytest.mark.parametrize("bounds", BOUNDS, ids=repr)


def expected(bounds, rows):
    """The promise, written the slow way."""
    out = np.zeros(rows.shape)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            limit = float(np.broadcast_to(bounds.x, rows.shape[1])[j])
            if not np.isnan(value):
                out[i, j] = min(max(value, -limit), limit)
        if not isinstance(bounds.norm, str):
            length = bounds.x * np.linalg.norm(out[i] / bounds.x, bounds.order)
            out[i] *= min(1.0, bounds.x / length) if length > 0 else 1.0
        elif bounds.max_length is not None:
            length = bounds.max_length * np.linalg.norm(out[i] / bounds.max_length)
            out[i] *= min(1.0, bounds.max_length / length) if length > 0 else 1.0
    return out


@every_bound
def test_hostile_dense_rows_end_inside_the_bounds_without_a_warning(bounds):
    clipped = bounds.clip_x(HOSTILE)
    np.testing.assert_allclose(clipped, expected(bounds, HOSTILE), rtol=1e-14, atol=0)
    assert np.all(np.isfinite(clipped))


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda c: c.__name__)
@every_bound
def test_hostile_sparse_rows_agree_with_dense_ones_and_stay_sparse(bounds, container):
    rows = container(HOSTILE)
    clipped = bounds.clip_x(rows)
    assert sparse.issparse(clipped)
    assert clipped.format == "csr"
    assert clipped.nnz <= rows.nnz
    np.testing.assert_allclose(clipped.toarray(), bounds.clip_x(HOSTILE), rtol=1e-14, atol=0)


@pytest.mark.parametrize("bounds", [Bounds(1.0), Bounds([1.0, 2.0, 1.0]), Bounds(1.0, norm="l2")])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_entries_stored_twice_are_summed_before_they_are_clipped(bounds, container):
    # Row 0 stores 0.9 + 0.9 in column 1; row 1 stores inf - inf; row 2 overflows to inf.
    data = np.array([0.9, 0.9, np.inf, -np.inf, 1e308, 1e308, 0.25])
    indices, indptr = np.array([1, 1, 0, 0, 2, 2, 0]), np.array([0, 2, 4, 7])
    rows = container((data, indices, indptr), shape=(3, 3))
    clipped = bounds.clip_x(rows)
    summed = np.array([[0.0, 1.8, 0.0], [np.nan, 0.0, 0.0], [0.25, 0.0, np.inf]])
    np.testing.assert_allclose(clipped.toarray(), expected(bounds, summed), rtol=1e-14)
    # As the engine sees them: a product must not add two clipped entries up.
    reach = np.abs(clipped @ np.eye(3)).max(axis=0)
    assert np.all(reach <= np.broadcast_to(bounds.x, 3))


def test_entries_stored_twice_cannot_hide_behind_a_cached_flag():
    rows = sparse.csr_array(
        (np.array([0.9, 0.9]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1)
    )
    rows.has_canonical_format = True  # what SciPy caches, and a caller can get wrong
    assert Bounds(1.0).clip_x(rows).toarray() == [[1.0]]


def test_opposite_entries_stored_twice_cancel_as_in_the_dense_rows():
    rows = sparse.csr_array(
        (np.array([5.0, -4.5]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1)
    )
    assert Bounds(1.0).clip_x(rows).toarray() == [[0.5]]


@pytest.mark.parametrize("container", [np.array, *CONTAINERS], ids=lambda c: c.__name__)
@every_bound
def test_the_callers_rows_are_not_modified(bounds, container):
    rows = container(HOSTILE)
    bounds.clip_x(rows)
    after = rows.toarray() if sparse.issparse(rows) else rows
    np.testing.assert_array_equal(after, HOSTILE)


def test_rows_that_call_themselves_canonical_are_looked_at():
    rows = sparse.csr_array((np.full(2, 0.9), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    rows.has_canonical_format = True  # as after a change of the indices
    for found in (Bounds(1.0).clip_x(rows), Bounds(1.0).grid_x(rows) / X_STEPS):
        np.testing.assert_array_equal(found.toarray(), [[1.0]])


def test_sparse_rows_of_many_blocks_are_on_the_grid_as_dense_ones_are():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 80)) * (rng.random((3000, 80)) < 0.8)
    x[1000:2000] = 0.0
    for bounds in (Bounds(1.0), Bounds(1.0, length=2.0), Bounds(np.linspace(0.5, 2, 80))):
        rows = sparse.csr_array(x)
        np.testing.assert_array_equal(bounds.grid_x(rows).toarray(), bounds.grid_x(x))
        np.testing.assert_array_equal(rows.toarray(), x)  # the caller's rows are as they were
        on_grid = bounds.grid_x(x)
        lengths = bounds.squared_lengths(sparse.csr_array(on_grid))
        np.testing.assert_array_equal(lengths, bounds.squared_lengths(on_grid))


def test_the_callers_duplicates_are_not_summed_in_place():
    rows = sparse.csr_array(
        (np.array([0.9, 0.9]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1)
    )
    Bounds(1.0).clip_x(rows)
    np.testing.assert_array_equal(rows.data, [0.9, 0.9])


@every_bound
def test_rows_inside_the_bounds_are_unchanged_and_clipping_twice_is_clipping_once(bounds):
    once = bounds.clip_x(HOSTILE)
    np.testing.assert_allclose(bounds.clip_x(once), once, rtol=1e-15, atol=0)
    small = 0.1 * once
    np.testing.assert_array_equal(bounds.clip_x(small), small)


@pytest.mark.parametrize("x", [1e-250, 1e-200, 1e-160, 1e-30, 1.0, 1e30, 1e60])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_l2_rows_are_no_longer_than_the_bound_at_any_scale(x, container):
    try:
        bounds = Bounds(x, norm="l2")
    except InvalidArgument:
        assert x < 1e-60  # refusing what cannot be squared would do as well
        return
    rng = np.random.default_rng(0)
    rows = np.vstack([np.ones((1, 100)), 1e-3 * np.ones((1, 100)), rng.standard_normal((3, 100))])
    clipped = bounds.clip_x(container(rows * x))
    dense = clipped.toarray() if sparse.issparse(clipped) else clipped
    lengths = np.linalg.norm(dense / x, axis=1)
    assert np.all(lengths <= 1 + 1e-12)
    assert lengths[0] >= 1 - 1e-12
    assert lengths[1] == pytest.approx(1e-2)


def test_l2_clipping_keeps_the_direction_of_rows_inside_the_cube():
    row = np.array([[0.6, -0.8, 0.9, 0.1]])
    clipped = Bounds(1.0, norm="l2").clip_x(row)
    np.testing.assert_allclose(clipped, row / np.linalg.norm(row), rtol=1e-15)


@pytest.mark.parametrize(
    "rows",
    [
        np.array([[300, -2, 0, 1]], dtype=np.int64),
        np.array([[3e38, -2, np.nan, 1]], dtype=np.float32),
        np.array([[True, False, True, False]]),
        np.asfortranarray(HOSTILE),
        np.empty((0, 4)),
    ],
    ids=["int64", "float32", "bool", "fortran", "empty"],
)
@every_bound
def test_other_number_types_are_clipped_as_float64(bounds, rows):
    clipped = bounds.clip_x(rows)
    assert clipped.dtype == np.float64
    np.testing.assert_allclose(clipped, expected(bounds, rows.astype(float)), rtol=1e-14)
    from_sparse = bounds.clip_x(sparse.csr_array(rows)).toarray()
    np.testing.assert_allclose(from_sparse, clipped, rtol=1e-14)


@pytest.mark.skipif(
    np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wider float here"
)
def test_long_doubles_beyond_float64_give_no_warning():
    # A warning whose presence depends on a value reveals the value.
    rows = np.array([[np.longdouble("1e4000"), 0.5]])
    np.testing.assert_array_equal(Bounds(1.0).clip_x(rows), [[1.0, 0.5]])


def test_clip_y_is_silent_and_inside():
    y = np.array([np.nan, np.inf, -np.inf, 1e300, -0.3, 7.0])
    np.testing.assert_array_equal(Bounds(1.0, 2.0).clip_y(y), [0, 2, -2, 2, -0.3, 2])
    np.testing.assert_array_equal(Bounds(1.0).clip_y(y), [0, 1, -1, 1, -0.3, 1])
    assert np.isnan(y[0])


def test_clipping_depends_on_no_global_error_state():
    for bounds in BOUNDS:
        expected = bounds.clip_x(HOSTILE)
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(bounds.clip_x(HOSTILE), expected)
            found = bounds.clip_x(sparse.csr_array(HOSTILE))
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-15)


@pytest.mark.parametrize("bounds", [Bounds(0.7), Bounds([1.0, 0.2, 3.0, 0.5, 2.0])], ids=repr)
def test_reach_is_the_maximum_over_the_corners(bounds):
    rng = np.random.default_rng(4)
    corners = np.array(list(itertools.product([-1, 1], repeat=5))) * bounds.per_column(5)
    for n_nonzero in (0, 1, 3, 5):
        dense = np.zeros(5)
        dense[rng.choice(5, n_nonzero, replace=False)] = rng.standard_normal(n_nonzero)
        theta = Vector.of(dense).with_offset(9.0)  # the offset is not a coordinate
        assert bounds.reach(theta) == pytest.approx(np.abs(corners @ dense).max(), rel=1e-14)


def test_l2_reach_is_attained_in_the_direction_of_theta():
    rng = np.random.default_rng(5)
    dense = rng.standard_normal(6)
    bounds = Bounds(1.7, norm="l2")
    reach = bounds.reach(Vector.of(dense))
    best = 1.7 * dense / np.linalg.norm(dense)
    assert reach == pytest.approx(best @ dense, rel=1e-14)
    rows = bounds.clip_x(rng.standard_normal((2_000, 6)) * 3)
    assert np.abs(rows @ dense).max() <= reach * (1 + 1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(
    "bounds", [Bounds(0.7), Bounds([1.0, 0.2, 3.0]), Bounds(1.5, norm="l2")], ids=repr
)
def test_row_norm_bounds_every_row_and_is_attained(bounds, norm):
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    extreme = [np.full((1, 3), 1e9), 1e9 * np.eye(3), np.random.default_rng(6).normal(size=(99, 3))]
    rows = bounds.clip_x(np.vstack(extreme))
    lengths = np.linalg.norm(rows, order, axis=1)
    bound = bounds.row_norm(norm, 3)
    assert lengths.max() <= bound * (1 + 1e-12)
    assert lengths.max() >= bound * (1 - 1e-12)


@pytest.mark.parametrize("x", [0, -1.0, np.nan, np.inf, 1e61, [1.0, 0.0], [1.0, np.nan]])
def test_unusable_x_is_refused(x):
    with pytest.raises(InvalidArgument, match="Bounds x"):
        Bounds(x)


@pytest.mark.parametrize("x", ["a", None, object(), [[1.0, 2.0]], ["a", "b"]])
def test_x_that_is_not_numbers_is_refused(x):
    with pytest.raises(InvalidArgument, match="Bounds x"):
        Bounds(x)


@pytest.mark.parametrize("y", [0, -1.0, np.nan, np.inf, 1e61, "a", [1.0, 2.0], object()])
def test_unusable_y_is_refused(y):
    with pytest.raises(InvalidArgument, match="y"):
        Bounds(1.0, y)


def test_an_unknown_norm_and_a_vector_with_l2_are_refused():
    with pytest.raises(InvalidArgument, match="norm="):
        Bounds(1.0, norm="l1")
    with pytest.raises(InvalidArgument, match="l2"):
        Bounds([1.0, 2.0], norm="l2")


def test_check_size_wants_a_bound_for_each_column():
    Bounds(1.0).check_size(7)
    Bounds([1.0, 2.0]).check_size(2)
    with pytest.raises(InvalidArgument, match="2 entries and the data 3 columns"):
        Bounds([1.0, 2.0]).check_size(3)


# Powers, or squares, of the entries of a row at their bounds would wrap around in wider rows.
TOO_WIDE = [(1.0, 2**26), (1.5, 2**26), (64.0, 2**26), ("l2", 2**30), ("inf", 2**30)]


@pytest.mark.parametrize(("norm", "most"), TOO_WIDE)
def test_rows_too_wide_for_an_exact_length_are_refused(norm, most):
    bounds = Bounds(1.0, 1.0, norm=norm)
    bounds.check_size(most)
    with pytest.raises(InvalidArgument, match=f"{most + 1:,} columns.*Hash or project"):
        bounds.check_size(most + 1)
    with pytest.raises(InvalidArgument, match=f"{most:,} is the most"):
        Problem(Huber(1.0), L2Ball(1.0), bounds, n_rows=1, n_features=most + 1)


@pytest.mark.parametrize(("norm", "most"), TOO_WIDE[:-1])
def test_rows_that_nobody_checked_are_refused_on_the_grid(norm, most):
    # As at the columns of a model file: nothing is summed before the check.
    wide = sparse.csr_array(([1.0], ([0], [most])), shape=(1, most + 1))
    with pytest.raises(ValueError, match="exact"):
        Bounds(1.0, norm=norm).grid_x(wide)


def test_sums_over_the_widest_row_fit_integers():
    assert row_norms.UNIT * row_norms.MOST_COLUMNS_OF_POWERS <= 2**62
    assert row_norms._powers(1.5).max() == row_norms.UNIT
    assert X_STEPS**2 * MOST_COLUMNS <= 2**62
    assert X_STEPS**2 * (bounds_module._WEIGHT_STEPS + bounds_module._MOST_BOUNDS) < 2**62


def test_gradients_of_whole_rows_that_are_too_wide_are_refused_too():
    loss = RowLoss(lambda theta, x, y: x, 1.0, norm=3.0)
    facts = (loss, L2Ball(1.0), Bounds(1.0, 1.0))
    Problem(*facts, n_rows=1, n_features=2**26)
    with pytest.raises(InvalidArgument, match=r"norm=1.5 67,108,864 is the most"):
        Problem(*facts, n_rows=1, n_features=2**26 + 1)


def test_bounds_do_not_follow_later_changes_of_the_callers_array():
    x = np.array([1.0, 2.0])
    bounds = Bounds(x)
    x[0] = 100.0
    np.testing.assert_array_equal(bounds.per_column(2), [1.0, 2.0])


def test_with_y_changes_y_alone():
    bounds = Bounds(2.0, norm="l2").with_y(3.0)
    assert (bounds.x, bounds.y, bounds.norm) == (2.0, 3.0, "l2")


MIXED = [
    Bounds(1.0, length=1.5),
    Bounds([1.0, 0.2, 3.0, 1e-3, 0.5], length=2.0),
    Bounds(0.5, nonzeros=2, nonnegative=True),
    Bounds(1.0, length=1e-3),
]


@pytest.mark.parametrize("bounds", MIXED, ids=repr)
def test_rows_on_the_grid_keep_both_promises_in_every_container(bounds):
    """Entries and lengths of hostile rows, and of rows at both limits, as whole numbers."""
    rng = np.random.default_rng(8)
    rows = np.vstack(
        [
            rng.standard_normal((300, 5)) * 10.0 ** rng.integers(-3, 4, (300, 1)),
            np.full((1, 5), np.inf), np.full((1, 5), np.nan), 1e300 * np.eye(5), -np.eye(5),
        ]
    )  # fmt: skip
    steps = bounds.grid_x(rows)
    limits = bounds.per_column(5)
    assert np.abs(steps).max() <= X_STEPS
    lengths = np.sqrt(np.square(steps * (limits / X_STEPS)).sum(axis=1))
    assert lengths.max() <= bounds.max_length * ROUNDED_UP
    assert lengths.max() >= 0.99 * bounds.max_length
    for container in (np.asfortranarray, sparse.csr_array, sparse.csc_array):
        found = bounds.grid_x(container(rows))
        found = found.toarray() if sparse.issparse(found) else found
        np.testing.assert_array_equal(found, steps)
    inside = bounds.clip_x(rows)
    assert np.linalg.norm(inside, axis=1).max() <= bounds.max_length * (1 + 1e-12)
    units = np.linalg.norm(steps / X_STEPS, axis=1)
    assert units.max() <= bounds.unit_length(slice(None), 5) * ROUNDED_UP
    assert units.max() >= 0.5 * bounds.unit_length(slice(None), 5) or np.ndim(bounds.x)


@pytest.mark.parametrize("bounds", MIXED, ids=repr)
def test_norms_and_reach_use_entries_and_length(bounds):
    rng = np.random.default_rng(9)
    rows = bounds.clip_x(rng.standard_normal((2_000, 5)) * 3)
    for norm, order in (("l1", 1), ("l2", 2), ("linf", np.inf)):
        bound = bounds.row_norm(norm, 5)
        assert np.linalg.norm(rows, order, axis=1).max() <= bound * (1 + 1e-12)
    entries = Bounds(bounds.x)
    assert bounds.row_norm("l2", 5) <= min(entries.row_norm("l2", 5), bounds.max_length)
    for _ in range(20):
        theta = Vector.of(rng.standard_normal(5))
        assert np.abs(rows @ theta.dense()).max() <= bounds.reach(theta) * (1 + 1e-12)
        by_length = bounds.max_length * np.linalg.norm(theta.dense())
        assert bounds.reach(theta) <= min(entries.reach(theta), by_length * (1 + 1e-12))


def test_a_length_says_more_about_entries_and_a_number_of_entries_about_the_length():
    assert Bounds(3.0, length=2.0).x == 2.0
    assert Bounds([3.0, 1.0], length=2.0).x.tolist() == [2.0, 1.0]
    assert Bounds(2.0, nonzeros=9).max_length == pytest.approx(6.0, rel=1e-14)
    assert Bounds(2.0, nonzeros=9, length=5.0).max_length == 5.0
    assert Bounds(2.0).max_length is None
    assert Bounds(2.0, norm="l2").max_length == 2.0
    assert repr(Bounds(2.0, length=3.0)) == "Bounds(x=2.0, y=None, norm='inf', length=3)"
    assert repr(Bounds(2.0, nonzeros=3)) == "Bounds(x=2.0, y=None, norm='inf', nonzeros=3)"


@pytest.mark.parametrize("length", [0, -1.0, np.nan, np.inf, "a"])
def test_an_unusable_length_is_refused(length):
    with pytest.raises(InvalidArgument, match="length"):
        Bounds(1.0, length=length)


@pytest.mark.parametrize("nonzeros", [0, -1, 1.5, "a", np.nan, True, 10**300, 10**400])
def test_an_unusable_number_of_entries_is_refused(nonzeros):
    with pytest.raises(InvalidArgument, match="nonzeros"):
        Bounds(1.0, nonzeros=nonzeros)


def test_a_length_beside_a_length_is_refused():
    with pytest.raises(InvalidArgument, match="already the length"):
        Bounds(1.0, norm="l2", length=2.0)
    with pytest.raises(InvalidArgument, match="already the length"):
        Bounds(1.0, norm="l2", nonzeros=2)


def test_a_copy_with_another_bound_is_what_it_says():
    bounds = Bounds(1.0, nonzeros=4)
    assert replace(bounds, x=10.0).x == 10.0
    assert replace(bounds, x=10.0).max_length == pytest.approx(20.0, rel=1e-14)
    assert replace(bounds, nonzeros=16).max_length == pytest.approx(4.0, rel=1e-14)
    assert replace(bounds, nonzeros=None).max_length is None
    assert repr(replace(bounds, length=1.5)) != repr(bounds)


def test_a_copy_can_be_written_to_no_more_than_the_original():
    bounds = Bounds([1.0, 2.0], length=2.0)
    for copied in (copy.deepcopy(bounds), pickle.loads(pickle.dumps(bounds))):
        with pytest.raises(ValueError, match="read-only"):
            copied.x[0] = 9.0


@pytest.mark.parametrize("count", range(1, 40))
def test_so_many_entries_at_their_bound_are_not_shortened(count):
    rows = np.r_[np.ones(count), np.zeros(3)][None]
    steps = Bounds(1.0, nonzeros=count).grid_x(rows)
    np.testing.assert_array_equal(steps, X_STEPS * rows)


def test_some_columns_are_as_long_as_rows_may_be_and_not_as_their_own_bounds_say():
    """A bound on the number of entries is a length of the whole row: of its largest column."""
    bounds = Bounds([100.0, *[1.0] * 16], nonzeros=1)
    steps = bounds.grid_x(np.r_[0.0, np.ones(16)][None])
    length = np.linalg.norm(steps * bounds.x / X_STEPS)
    assert length == 4.0
    few = np.arange(1, 17)
    assert bounds.row_norm("l2", 17, few) >= length
    assert bounds.row_norm("l1", 17, few) >= 16.0
    assert bounds.row_norm("linf", 17, few) == 1.0


@pytest.mark.parametrize(
    "bounds", [*MIXED, Bounds(1.0), Bounds([1.0, 2.0, 1.0, 1.0, 1.0])], ids=repr
)
def test_no_columns_have_length_0(bounds):
    none = np.array([], dtype=int)
    assert bounds.unit_length(none, 0) == 0.0
    for norm in ("l1", "l2", "linf"):
        assert bounds.row_norm(norm, 5, none) == 0.0


def test_more_bounds_than_lengths_are_exact_for_are_refused():
    with pytest.raises(InvalidArgument, match="536,870,912 is the most"):
        Bounds(np.broadcast_to(1.0, 2**29 + 1))


def test_weights_of_columns_do_not_depend_on_the_order_of_a_sum():
    """A row's squared length in the largest step, by exact fractions: a little more, never less."""
    x = np.random.default_rng(3).lognormal(0, 4, 1_001)
    order = np.random.default_rng(4).permutation(len(x))
    bounds, turned = Bounds(x), Bounds(x[order])
    rows = np.random.default_rng(5).integers(-X_STEPS, X_STEPS, (3, len(x))).astype(float)
    lengths = bounds.squared_lengths(rows)
    np.testing.assert_array_equal(lengths, turned.squared_lengths(rows[:, order]))
    squares = [Fraction(each) for each in np.square(x / x.max()).tolist()]
    for row, found in zip(rows.tolist(), lengths.tolist(), strict=True):
        exact = sum(int(e) ** 2 * s for e, s in zip(row, squares, strict=True))
        assert exact <= Fraction(found) * (1 + Fraction(1, 2**40))
        assert float(found) <= 1.01 * float(exact)


def test_a_copy_of_bounds_holds_its_fields_alone():
    bounds = Bounds([1.0, 2.0], length=2.0)
    before = pickle.dumps(bounds)
    bounds.grid_x(np.ones((2, 2)))
    assert bounds.max_length == bounds.largest == 2.0
    assert pickle.dumps(bounds) == before


def test_one_geometry_has_one_default_however_it_is_written():
    """A length that one entry may have alone is what norm="l2" says."""
    for x in (1.0, 3.0):
        assert Bounds(x=x, length=1.0).favours_gradients == Bounds(1.0, norm="l2").favours_gradients
    assert not Bounds(x=1.0, length=2.0).favours_gradients
    assert not Bounds(x=1.0).favours_gradients


# Rows bounded in any lr norm.

ORDERS = [1.0, 1.2, 1.5, 3.0, 7.5, 60.0]


def hostile_rows(rng, size):
    scales = 10.0 ** rng.integers(-3, 4, (300, 1))
    return np.vstack(
        [
            rng.standard_normal((300, size)) * scales, rng.choice([-1e9, 1e9], (20, size)),
            np.full((1, size), np.inf), np.full((1, size), np.nan), 1e300 * np.eye(size),
            -np.eye(size), np.full((1, size), 5e-324),
        ]
    )  # fmt: skip


def within(steps, order):
    """Whether integers keep the promise, exactly, for a whole order."""
    total = sum(abs(Fraction(int(k), X_STEPS)) ** int(order) for k in steps)
    return total <= 1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [1, 5, 3_000])
def test_rows_on_the_grid_keep_a_promise_in_any_norm_in_every_container(order, size):
    bounds = Bounds(1.3, norm=order)
    rows = hostile_rows(np.random.default_rng(10), size)[: 400 if size < 100 else 40]
    steps = bounds.grid_x(rows)
    assert np.abs(steps).max() <= X_STEPS
    lengths = np.linalg.norm(steps / X_STEPS, order, axis=1)
    assert lengths.max() <= 1 + 1e-14
    assert lengths.max() >= 0.95 if size > 100 else 0.999
    if order == int(order):
        assert all(within(row, order) for row in steps[:50])
    for container in (np.asfortranarray, sparse.csr_array, sparse.csc_array):
        found = bounds.grid_x(container(rows))
        found = found.toarray() if sparse.issparse(found) else found
        np.testing.assert_array_equal(found, steps)
    for one in (0, len(rows) // 2, len(rows) - 1):  # a row is shortened alike wherever it stands
        np.testing.assert_array_equal(bounds.grid_x(rows[one : one + 1])[0], steps[one])


@pytest.mark.parametrize("order", ORDERS)
def test_norms_and_reach_in_any_norm_bound_every_row_and_are_attained(order):
    bounds, rng = Bounds(1.3, norm=order), np.random.default_rng(11)
    even = np.full((1, 5), 1e9)
    rows = bounds.clip_x(np.vstack([hostile_rows(rng, 5), even]))
    assert np.linalg.norm(rows, order, axis=1).max() <= 1.3 * (1 + 1e-12)
    for norm, q in (("l1", 1), ("l2", 2), ("linf", np.inf)):
        bound, longest = bounds.row_norm(norm, 5), np.linalg.norm(rows, q, axis=1).max()
        assert bound * (1 - 1e-11) <= longest <= bound
    assert bounds.unit_length(slice(None), 5) == pytest.approx(bounds.row_norm("l2", 5) / 1.3)
    assert (bounds.max_length == 1.3) == (order < 2)
    for _ in range(20):
        theta = rng.standard_normal(5)
        reach = bounds.reach(Vector.of(theta))
        assert np.abs(rows @ theta).max() <= reach
        power = 1 / (order - 1) if order > 1 else 1e6
        best = np.sign(theta) * (np.abs(theta) / np.abs(theta).max()) ** power
        best *= 1.3 / np.linalg.norm(best, order)
        assert best @ theta == pytest.approx(reach, rel=1e-9)


def test_two_and_infinity_are_the_norms_with_names():
    assert Bounds(1.0, norm=2).norm == "l2"
    assert Bounds(1.0, norm=np.inf).norm == "inf"
    assert Bounds(1.0, norm=3).norm == 3.0
    assert repr(Bounds(1.0, norm=1.5)) == "Bounds(x=1.0, y=None, norm=1.5)"
    assert replace(Bounds(1.0, norm=1.5), y=2.0).order == 1.5
    for norm in (0.5, -1, np.nan, "l3", None, True, [2]):
        with pytest.raises(InvalidArgument, match="norm"):
            Bounds(1.0, norm=norm)
    with pytest.raises(InvalidArgument, match="already the length"):
        Bounds(1.0, norm=3.0, nonzeros=2)
    with pytest.raises(InvalidArgument, match="one number"):
        Bounds([1.0, 2.0], norm=3.0)
