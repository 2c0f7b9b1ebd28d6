"""Scales: quantiles of sizes from counts in bins, and which bins count."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from riata.bounds import Bounds
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.grid import X_STEPS
from riata.losses import Squared
from riata.mechanisms import GaussianMechanism, LaplaceMechanism
from riata.mechanisms.noise import Noise
from riata.privacy.events import compose
from riata.problem import Problem
from riata.queries import Block, SlopeSizes
from riata.queries.sizes import (
    N_BINS,
    PARTS,
    SHARE_STEPS,
    EntrySizes,
    bins_of,
    upper_edges,
)
from riata.sets import L1Ball
from riata.solvers.scaled_gradient import ENTRY_BINS
from riata.solvers.scales import Scale, released_scale
from riata.vectors import Vector

QS = [0.0, 1e-9, 0.1, 0.5, 0.683, 0.95, 1.0]


def counted(sizes, top=1.0):
    """The scale without noise of some sizes up to 1."""
    steps = np.rint(np.asarray(sizes) * X_STEPS)
    return Scale(top, np.bincount(bins_of(steps), minlength=N_BINS) / len(steps))


EVERY_SIZE = np.arange(X_STEPS + 1.0)


@pytest.mark.parametrize("parts", [PARTS, ENTRY_BINS])
def test_every_size_is_in_one_bin_and_the_proof_counts_them(parts):
    """docs/privacy/scales.md: 17 octaves of so many bins, and one for 0."""
    found, edges = bins_of(EVERY_SIZE, parts), upper_edges(parts)
    assert len(edges) == 17 * parts + 1
    np.testing.assert_array_equal(found, bins_of(-EVERY_SIZE, parts))
    assert found[0] == 0
    assert found[-1] == 16 * parts + 1
    assert np.all((found[1:] >= 1) & (found[1:] < len(edges)))
    assert np.all(np.diff(found) >= 0)
    octave = np.floor(np.log2(EVERY_SIZE[1:])).astype(int)
    within = EVERY_SIZE[1:] / 2.0**octave - 1
    np.testing.assert_array_equal(found[1:], octave * parts + np.floor(parts * within) + 1)
    # A bin ends where the next one begins.
    assert np.all(edges[found] >= EVERY_SIZE / X_STEPS)
    assert np.all(EVERY_SIZE[1:] / X_STEPS >= edges[found[1:] - 1])


def test_the_page_says_how_many_bins_there_are():
    page = (Path(__file__).parents[2] / "docs/privacy/scales.md").read_text()
    assert len(upper_edges()) == N_BINS
    for parts, name in ((PARTS, "`PARTS`"), (ENTRY_BINS, "`ENTRY_BINS`")):
        (line,) = (line for line in page.splitlines() if line.startswith("|") and name in line)
        assert [int(n) for n in re.findall(r"\b\d+\b", line)] == [parts, 17 * parts + 1]


@pytest.mark.parametrize("parts", [PARTS, ENTRY_BINS])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_row_has_one_vote_however_many_bins_there_are(parts, wrap):
    rng = np.random.default_rng(4)
    query = EntrySizes(Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 30, 40), parts)
    for row in [
        np.full(40, X_STEPS),
        np.arange(40),
        np.zeros(40),
        *rng.integers(-X_STEPS, X_STEPS + 1, (30, 40)),
    ]:
        votes = query.block_sum(Block(wrap(row[None].astype(float)), np.zeros(1)))
        assert len(votes) == 17 * parts + 1
        assert np.all(votes >= 0)
        assert votes.sum() <= SHARE_STEPS
        assert np.all(votes == np.rint(votes))
    assert query.sensitivity("l2") == pytest.approx(np.sqrt(2) / 30)
    assert query.sensitivity("l1") == pytest.approx(2 / 30)


def test_a_quantile_is_within_a_factor_of_two_of_the_true_one():
    rng = np.random.default_rng(1)
    for _ in range(50):
        sizes = np.minimum(rng.lognormal(rng.uniform(-6, 0), rng.uniform(0.1, 2), 2_000), 1.0)
        scale = counted(sizes)
        for q in QS[2:]:
            true = np.quantile(np.rint(sizes * X_STEPS) / X_STEPS, q, method="inverted_cdf")
            assert true / 2.01 <= scale.quantile(q) <= max(2.01 * true, 2 / X_STEPS)


def test_quantiles_grow_with_their_part_and_with_the_top():
    rng = np.random.default_rng(2)
    for _ in range(50):
        shares = rng.random(N_BINS) * (rng.random(N_BINS) < 0.4)
        found = [Scale(1.0, shares).quantile(q) for q in QS]
        assert found == sorted(found)
        assert all(0 < size <= 1 for size in found)
        np.testing.assert_allclose(
            [Scale(7.5, shares).quantile(q) for q in QS], 7.5 * np.array(found)
        )


@pytest.mark.parametrize("top", [1e-60, 1.0, 1e60])
def test_a_scale_is_a_positive_number_up_to_the_top_whatever_was_counted(top):
    alone = np.eye(N_BINS)
    for shares in (np.zeros(N_BINS), *alone, *(1e300 * alone), *(1e-300 * alone), np.ones(N_BINS)):
        for q in QS:
            for zeros in (True, False):
                size = Scale(top, shares).quantile(q, zeros=zeros)
                assert 0 < size <= top
                assert size >= top / X_STEPS


def test_nothing_that_stands_out_means_the_largest_size():
    assert Scale(3.0, np.zeros(N_BINS)).quantile(0.5) == 3.0
    only_zeros = np.eye(N_BINS)[0]
    assert Scale(3.0, only_zeros).quantile(0.5) <= 3.0 * upper_edges()[1]
    assert Scale(3.0, only_zeros).quantile(0.5, zeros=False) == 3.0


def test_zeros_may_be_left_out():
    scale = counted([0.0] * 90 + [0.5] * 10)
    assert scale.quantile(0.5) <= 2 / X_STEPS
    assert scale.quantile(0.5, zeros=False) >= 0.4


@pytest.mark.parametrize("mechanism", [GaussianMechanism(2.0), LaplaceMechanism(0.5)])
@pytest.mark.parametrize("n", [5, 5_000])
def test_bins_within_the_noise_do_not_count(mechanism, n):
    bounds = Bounds(1.0, 1.0)
    problem = Problem(Squared(), L1Ball(1.0), bounds, n, 1)
    query = SlopeSizes(problem, Vector.zero(1))
    engine = LocalEngine(np.zeros((n, 1)), np.full(n, 0.26), bounds)
    curator = Curator(engine, compose((mechanism.event, 40)), Noise(3))
    found = [released_scale(query, mechanism, curator) for _ in range(40)]
    assert all(scale.top == query.top == 2.0 for scale in found)
    spare = sum(np.count_nonzero(scale.shares) for scale in found) / 40
    if n == 5_000:
        sizes = [scale.quantile(0.5) for scale in found]
        assert 0.26 <= np.median(sizes) <= 1.04
        assert spare <= 2
    else:
        assert spare <= 1
