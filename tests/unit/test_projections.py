"""Projections: one matrix, however it is asked for, and lengths that are kept on average."""

import numpy as np
import pytest
from scipy import fft, sparse

from riata.errors import InvalidArgument
from riata.projections import (
    PROJECTIONS,
    GaussianProjection,
    GivenProjection,
    SparseSignProjection,
    StructuredProjection,
)

pytestmark = pytest.mark.matrix(one_in=11)

SEEDED = list(PROJECTIONS.values())
every_seeded = pytest.mark.parametrize("make", SEEDED, ids=list(PROJECTIONS))
EVERY = [make(m, d, seed=3) for make in SEEDED for m, d in [(7, 40), (1, 5), (6, 6), (1, 1)]]
EVERY.append(GivenProjection(np.random.default_rng(0).standard_normal((4, 9))))
every = pytest.mark.parametrize("phi", EVERY, ids=repr)


@every
def test_every_product_is_a_product_with_the_same_matrix(phi):
    rng = np.random.default_rng(1)
    matrix = phi.matrix()
    assert matrix.shape == (phi.dimension, phi.n_features)
    assert matrix.dtype == np.float64
    x = rng.standard_normal((11, phi.n_features))
    v = rng.standard_normal(phi.dimension)
    indices = rng.integers(0, phi.n_features, 5)
    np.testing.assert_allclose(phi.rows(x), x @ matrix.T, atol=1e-13)
    np.testing.assert_allclose(phi.forward(x[0]), matrix @ x[0], atol=1e-13)
    np.testing.assert_allclose(phi.back(v), matrix.T @ v, atol=1e-13)
    np.testing.assert_allclose(phi.columns(indices), matrix[:, indices], atol=1e-14)
    np.testing.assert_allclose(phi.column_norms(), np.linalg.norm(matrix, axis=0), rtol=1e-12)


@every
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_rows_give_what_dense_rows_give(phi, kind):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((13, phi.n_features)) * (rng.random((13, phi.n_features)) < 0.2)
    found = phi.rows(kind(x))
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, phi.rows(x), atol=1e-13)


@every
def test_whole_numbers_and_short_floats_are_taken_as_float64(phi):
    x = np.arange(2 * phi.n_features).reshape(2, -1)
    wide = phi.rows(x.astype(np.float64))
    for narrow in (x, x.astype(np.float32), sparse.csr_array(x)):
        found = phi.rows(narrow)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, wide, rtol=1e-12, atol=1e-12)


@every
def test_no_rows_give_no_rows(phi):
    assert phi.rows(np.empty((0, phi.n_features))).shape == (0, phi.dimension)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_structured_rows_do_not_depend_on_the_block_they_are_in(kind, monkeypatch):
    phi = StructuredProjection(5, 30)
    x = np.random.default_rng(3).standard_normal((17, 30))
    whole = phi.rows(kind(x))
    norms = phi.column_norms()
    monkeypatch.setattr("riata.projections.BLOCK", 120)
    np.testing.assert_array_equal(phi.rows(kind(x)), whole)
    np.testing.assert_allclose(phi.column_norms(), norms, rtol=1e-14)


@every_seeded
def test_the_seed_and_nothing_else_decides(make):
    one = make(4, 20, 1)
    np.testing.assert_array_equal(one.matrix(), make(4, 20, seed=1).matrix())
    assert one == make(4, 20, np.int64(1))
    for other in (make(4, 20), make(4, 20, 2), make(4, 20, -1)):
        assert one != other
        assert np.abs(one.matrix() - other.matrix()).max() > 0.1


def test_kinds_of_projections_do_not_share_their_randomness():
    signs = np.sign(GaussianProjection(6, 200).matrix())
    sparse_signs = SparseSignProjection(6, 200).matrix()
    kept = sparse_signs != 0
    agree = (signs == np.sign(sparse_signs))[kept].mean()
    assert abs(agree - 0.5) <= 5 * 0.5 / np.sqrt(kept.sum())


@every_seeded
def test_lengths_are_kept_on_average(make):
    # E Phi'Phi = I. A mean over 400 seeds of an entry has a standard error of at most
    # sqrt(2 / m) / 20 = 0.02 here. The bound is 5 of them, for 36 x 36 entries.
    m, d = 12, 36
    draws = [make(m, d, seed).matrix() for seed in range(400)]
    mean = np.mean([draw.T @ draw for draw in draws], axis=0)
    np.testing.assert_allclose(mean, np.eye(d), atol=5 * np.sqrt(2 / m) / 20)
    assert np.trace(mean) / d == pytest.approx(1, abs=0.02)


@every_seeded
def test_a_long_vector_keeps_its_length(make):
    phi = make(400, 5_000)
    theta = np.zeros(5_000)
    theta[[3, 70, 4_999]] = [0.6, 0.0, -0.8]
    assert np.linalg.norm(phi.forward(theta)) == pytest.approx(1, abs=0.2)
    ones = np.full(5_000, 5_000**-0.5)
    assert np.linalg.norm(phi.forward(ones)) == pytest.approx(1, abs=0.2)


def test_gaussian_entries_have_the_right_distribution():
    entries = GaussianProjection(50, 2_000).matrix() * np.sqrt(50)
    n = entries.size
    assert abs(entries.mean()) <= 5 / np.sqrt(n)
    assert abs(entries.var() - 1) <= 5 * np.sqrt(2 / n)
    assert abs((entries**4).mean() - 3) <= 5 * np.sqrt(96 / n)
    assert abs(np.corrcoef(entries[0], entries[1])[0, 1]) <= 5 / np.sqrt(2_000)


def test_sparse_sign_entries_have_the_right_distribution():
    phi = SparseSignProjection(50, 2_000)
    entries = phi.matrix() * np.sqrt(50 / 3)
    np.testing.assert_allclose(np.abs(entries), np.round(np.abs(entries)), atol=1e-14)
    n = entries.size
    for value, chance in [(1, 1 / 6), (0, 2 / 3), (-1, 1 / 6)]:
        share = (np.round(entries) == value).mean()
        assert abs(share - chance) <= 5 * np.sqrt(chance * (1 - chance) / n)


def test_the_structured_matrix_is_the_transform_it_says():
    phi = StructuredProjection(9, 9, 5)
    full = fft.dct(np.eye(9), norm="ortho", axis=0) * phi._signs
    np.testing.assert_allclose(phi.matrix(), full, atol=1e-14)
    part = StructuredProjection(30, 1_000)
    gram = part.matrix() @ part.matrix().T
    np.testing.assert_allclose(gram, 1_000 / 30 * np.eye(30), atol=1e-11)
    assert len(np.unique(part._sample)) == 30


@pytest.mark.long
def test_a_structured_projection_stores_no_matrix():
    phi = StructuredProjection(2_000, 300_000)  # 4.8 GB if it were written down
    v = phi.forward(phi.back(np.ones(2_000)))
    np.testing.assert_allclose(v, 150.0, rtol=1e-10)
    j = np.array([0, 299_999])
    np.testing.assert_allclose(
        phi.columns(j)[:, 1], phi.forward(np.eye(1, 300_000, 299_999)[0]), atol=1e-12
    )
    assert sum(np.size(value) for value in vars(phi).values()) < 10**6


def test_a_given_projection_does_not_follow_later_changes_of_the_callers_array():
    entries = np.ones((2, 3))
    phi = GivenProjection(entries)
    entries *= 100
    np.testing.assert_array_equal(phi.matrix(), np.ones((2, 3)))


@pytest.mark.parametrize("phi", [GaussianProjection(2, 3), GivenProjection(np.ones((2, 3)))])
def test_a_stored_matrix_cannot_be_changed(phi):
    with pytest.raises(ValueError, match="read-only"):
        phi.matrix()[0, 0] = 5.0


# bad arguments


@every_seeded
@pytest.mark.parametrize("name", ["dimension", "n_features", "seed"])
@pytest.mark.parametrize("value", [2.0, 2.5, "2", None, True, np.nan, [2]], ids=repr)
def test_what_is_not_a_whole_number_is_refused(make, name, value):
    arguments = {"dimension": 2, "n_features": 5, "seed": 0, name: value}
    with pytest.raises(InvalidArgument, match=f"{name}=.* whole number"):
        make(**arguments)


@every_seeded
@pytest.mark.parametrize("dimension", [0, -1, 6])
def test_a_dimension_out_of_range_is_refused(make, dimension):
    with pytest.raises(InvalidArgument, match=f"dimension={dimension} must lie between 1 and"):
        make(dimension, 5)


@every_seeded
def test_no_columns_are_refused(make):
    with pytest.raises(InvalidArgument, match="n_features=0 must be at least 1"):
        make(1, 0)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (np.ones(3), r"shape \(3,\)"),
        (np.ones((1, 2, 3)), r"shape \(1, 2, 3\)"),
        ([[1.0, np.nan]], "entry nan in row 0 and column 1"),
        ([[1.0, 1.0], [-np.inf, 1.0]], "entry -inf in row 1 and column 0"),
        (np.ones((3, 2)), "dimension=3 must lie between 1 and n_features=2"),
        (np.ones((0, 2)), "dimension=0"),
        ([["a", "b"]], "list"),
        ([[1.0], [1.0, 2.0]], "list"),
        (None, "shape|NoneType"),
        (sparse.csr_array(np.eye(2)), "csr_array"),
    ],
)
def test_an_unusable_given_matrix_is_refused(entries, words):
    with pytest.raises(InvalidArgument, match=words):
        GivenProjection(entries)


@every
def test_rows_of_another_length_are_refused(phi):
    for shape in [(3, phi.n_features + 1), (phi.n_features,), (1, 3, phi.n_features)]:
        with pytest.raises(InvalidArgument, match=f"rows of {phi.n_features} columns"):
            phi.rows(np.ones(shape))
