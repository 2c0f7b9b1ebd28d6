"""The realised privacy loss of a fit for one pair of neighbours, exactly and without sampling."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from riata.audit.witness import Data, Trial, WitnessedRelease
from riata.curator import Filter
from riata.errors import BudgetExceeded
from riata.mechanisms import (
    Exact,
    GaussianMechanism,
    LaplaceMechanism,
    ObjectivePerturbation,
    PosteriorSample,
    PublicAnswer,
    SampledGaussianMechanism,
)
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import CHANGED_CONTRIBUTIONS
from riata.privacy.events import (
    BoundedRange,
    Composed,
    Event,
    Gaussian,
    LaplaceMax,
    Leaf,
    ObjectivePerturbed,
    Pure,
    SampledGaussian,
    compose,
    leaves,
)
from riata.queries import Minimum, SquaredMoments
from riata.solvers import Plan
from riata.wording import number_of


@dataclass(frozen=True)
class ReplayedRelease:
    """One release of a replayed fit.

    Attributes
    ----------
    mechanism : str
    event : Event
        What it claims to cost.
    ratio : float
        The change that the neighbour makes over the one that the noise was scaled to.
    sound : bool
        Whether that ratio is at most 1, in exact arithmetic.
    """

    mechanism: str
    event: Event
    ratio: float
    sound: bool


@dataclass(frozen=True)
class Replay:
    """What a pair of neighbours realises of the privacy loss that a fit claims.

    Attributes
    ----------
    releases : tuple of ReplayedRelease
    claimed, realised : Spent
        What the plan costs for the worst neighbours, and what it costs for these.
    """

    releases: tuple[ReplayedRelease, ...]
    plan: Plan

    @property
    def claimed(self) -> Spent:
        return self.plan.spent

    @cached_property
    def realised(self) -> Spent:
        events = [(_scaled(each.event, each.ratio), 1) for each in self.releases]
        return spent(compose(*events), self.plan.budget.delta)

    @property
    def sound(self) -> bool:
        """Whether no release exceeds its claim, in exact arithmetic, nor all of them the plan's."""
        return all(release.sound for release in self.releases) and self.covered

    @cached_property
    def covered(self) -> bool:
        """Whether what a run decided to release costs no more than its plan, exactly."""
        if not self.plan.adaptive:
            return True
        account = Filter(self.plan.event)
        try:
            for release in self.releases:
                account.take(release.event)
        except BudgetExceeded:
            return False
        return True

    @property
    def worst(self) -> float:
        """The largest ratio of realised to claimed over the releases."""
        return max(release.ratio for release in self.releases)

    @property
    def ratio(self) -> float:
        """Realised over claimed epsilon of the whole fit."""
        return self.realised.epsilon / self.claimed.epsilon

    def __str__(self) -> str:
        verdict = "no release exceeds its claim" if self.sound else "A RELEASE EXCEEDS ITS CLAIM"
        return (
            f"{verdict}: worst release {self.worst:.6f} of its claim, whole fit epsilon "
            f"{self.realised.epsilon:.4g} of {self.claimed.epsilon:.4g} at delta "
            f"{self.claimed.delta:g}, {number_of(len(self.releases), 'release')}"
        )


def replay(model: Any, data: Data, neighbour: Data, *, seed: int | None = None) -> Replay:
    """Fit `model` on `data` and measure what each release tells about `neighbour`.

    The released trajectory is seen from both data sets: each query that the fit releases is also
    summed over the neighbour's rows. The sums are exact integers, so the comparison with the
    claimed sensitivity is exact too.

    Parameters
    ----------
    model, data, neighbour, seed
        As for `scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateLasso
    >>> from riata.audit import replay
    >>> model = PrivateLasso(epsilon=1.0, delta=1e-6, bounds=Bounds(x=1.0, y=1.0), steps=5)
    >>> X, y = np.ones((20, 3)), np.ones(20)
    >>> neighbour = y.copy()
    >>> neighbour[0] = -1.0
    >>> replay(model, (X, y), (X, neighbour)).sound
    True
    """
    return next(replays(model, [(data, neighbour)], seed=seed))


def replays(
    model: Any, pairs: Iterable[tuple[Data, Data]], *, seed: int | None = None
) -> Iterator[Replay]:
    """`replay` for many pairs of neighbours of the same shape, planned once."""
    noise, trial = Noise(seed), None
    for data, neighbour in pairs:
        trial = Trial(model, data, neighbour, like=trial)
        yield measured(trial.run(noise), trial.plan)


def measured(run: Iterable[WitnessedRelease], plan: Plan) -> Replay:
    """What a run that has been seen realises."""
    return Replay(tuple(_measured(each) for each in run), plan)


def _measured(release: WitnessedRelease) -> ReplayedRelease:
    match release.mechanism:
        case Exact():
            ratio, sound = math.inf, False
        case PublicAnswer():
            same = bool(np.array_equal(release.ours, release.theirs))
            ratio, sound = (0.0, True) if same else (math.inf, False)
        case GaussianMechanism() | SampledGaussianMechanism():
            ratio, sound = _norm_ratio(release, "l2")
        case ObjectivePerturbation():
            ratio, sound = _objective_ratio(release)
        case PosteriorSample():
            ratio, sound = _posterior_ratio(release)
        case LaplaceMechanism():
            ratio, sound = _norm_ratio(release, "l1")
        case _:
            ratio, sound = _range_ratio(release)
    name = type(release.mechanism).__name__
    return ReplayedRelease(name, release.mechanism.event, ratio, sound)


def _norm_ratio(release: WitnessedRelease, norm: str) -> tuple[float, bool]:
    """The length of the change over the sensitivity, and whether it is at most 1."""
    power = {"l1": 1, "l2": 2}[norm]
    units = np.broadcast_to(release.query.unit, release.ours.shape)
    steps = [int(a) - int(b) for a, b in zip(release.ours, release.theirs, strict=True)]
    length = sum(
        abs(step * Fraction(float(unit))) ** power for step, unit in zip(steps, units, strict=True)
    )
    ratio = Fraction(length) / Fraction(release.query.sensitivity(norm)) ** power
    return float(ratio) ** (1 / power), ratio <= 1


def _objective_ratio(release: WitnessedRelease) -> tuple[float, bool]:
    """The change of the sum of gradients at the released point over the sensitivity of all points.

    The sums are in 48 bits, and rounding them to float64 moves their ratio by far less than 2^-30.
    """
    change = release.query.from_total(release.ours) - release.query.from_total(release.theirs)
    assert isinstance(release.asked, Minimum)
    ratio = float(np.linalg.norm(change[: release.asked.size])) / release.asked.sensitivity("l2")
    return ratio, ratio <= 1 + 2.0**-30


def _posterior_ratio(release: WitnessedRelease) -> tuple[float, bool]:
    """The range, over the ball, of the change of the summed losses, over the range allowed."""
    query = release.asked
    assert isinstance(query, SquaredMoments)
    change = query.from_total(release.ours - release.theirs) * query.n_rows
    square, cross = change[:-1, :-1], change[:-1, -1]
    spread = sum(largest_on_ball(s * square, s * cross, query.ball_radius) for s in (1, -1))
    ratio = float(spread) / (CHANGED_CONTRIBUTIONS[query.adjacency] * query.loss_bound)
    return ratio, ratio <= 1 + 2.0**-30


def largest_on_ball(square: np.ndarray, cross: np.ndarray, radius: float) -> float:
    """The largest <v, square v> - 2 <cross, v> over the ball: at a root of the secular equation."""
    values, vectors = np.linalg.eigh(square)
    pulls = -vectors.T @ cross
    # With a multiplier above all eigenvalues, v = pulls / (multiplier - values) in these axes.
    scale = float(np.abs(values).max() + np.abs(pulls).max() / radius) or 1.0
    low, high = max(values[-1], 0.0) + 1e-14 * scale, max(values[-1], 0.0) + 2 * scale
    for _ in range(200):
        middle = (low + high) / 2
        too_long = np.sum((pulls / (middle - values)) ** 2) > radius**2
        low, high = (middle, high) if too_long else (low, middle)
    v = pulls / (high - values)
    value = float(np.sum(values * v**2) + 2 * pulls @ v)
    spare = max(radius**2 - float(v @ v), 0.0)  # the hard case: go on along the top axis
    return value + spare * max(values[-1], 0.0)


def _range_ratio(release: WitnessedRelease) -> tuple[float, bool]:
    """The range of the utilities' changes over twice the sensitivity: what a selection loses."""
    ours, theirs = release.query.from_total(release.ours), release.query.from_total(release.theirs)
    change = ours - theirs
    slack = 2.0**-50 * (np.abs(ours).max() + np.abs(theirs).max())

    def largest(sign: int) -> Fraction:
        """The largest change in this direction; those that rounding may confuse, exactly."""
        close = np.flatnonzero(sign * change >= (sign * change).max() - slack)
        return max(sign * (Fraction(float(ours[i])) - Fraction(float(theirs[i]))) for i in close)

    up, down = largest(1), largest(-1)
    symmetric = release.query.symmetric
    width = 2 * max(up, down) if symmetric else up + down
    ratio = width / (2 * Fraction(release.query.sensitivity("linf")))
    return float(ratio), ratio <= 1


def _scaled(event: Event, ratio: float) -> Composed:
    """The event for neighbours that realise only `ratio` of the sensitivity."""
    if ratio == 0:
        return compose()
    return compose(*((_scaled_leaf(leaf, ratio), count) for leaf, count in leaves(event).items()))


def _scaled_leaf(leaf: Leaf, ratio: float) -> Leaf:
    match leaf:
        case Gaussian(z):
            return Gaussian(z / ratio)
        case Pure(epsilon):
            return Pure(epsilon * ratio)
        case BoundedRange(epsilon):
            return BoundedRange(epsilon * ratio)
        case LaplaceMax(epsilon):
            return LaplaceMax(epsilon * ratio)
        case SampledGaussian(z, rate):
            return SampledGaussian(z / ratio, rate)
        case ObjectivePerturbed(z):
            return replace(leaf, noise_multiplier=z / ratio)
    return leaf
