"""The audits that riata runs on itself: what is run, and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from riata.audit.black_box import Curve, lower_bound
from riata.audit.grey_box import replay, replays
from riata.audit.pair_search import SearchedPair, search_pair
from riata.audit.pairs import random_pairs, worst_pair
from riata.audit.witness import Progress
from riata.bounds import Bounds
from riata.estimators import (
    HeavyTailedRegression,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    ProjectedRegression,
)
from riata.losses import Huber, Logistic, SmoothedHinge, Squared
from riata.sets import L1Ball, L2Ball, Simplex, SparseBall
from riata.solvers import (
    ClassSums,
    GaussianFrankWolfe,
    NoisyGradient,
    PerturbedObjective,
    PrivateFrankWolfe,
    PrivateGreedy,
    PrivatePeeling,
    RefittedFrankWolfe,
    ScaledGradient,
    SufficientStatistics,
    WhitenedGradient,
)

UNIT = Bounds(1.0, 1.0)
LENGTH = Bounds(1.0, 1.0, norm="l2")

#: How near to its claim the worst pair must come, ...
WORST_PAIR = 0.95

#: ... except where the claim is about the worst model of the set and a replay sees only the one
#: that was released, or about rows before a projection.
LESS_SHARP = {"PrivateErm, objective perturbation": 0.4, "ProjectedRegression, pure": 0.3}

#: How near to its claim a whole fit must come on the pair that was searched for, ...
SEARCHED_PAIR = 0.75

#: ... except where no pair can change all releases at once: scales need rows of different sizes,
#: gradients two large ones, and what is released on one column says nothing of the others.
LESS_AT_ONCE = {"PrivateLasso, pure": 0.35, "PrivateLasso, greedy, pure": 0.35,
                "PrivateLogisticRegression": 0.6,
                "PrivateLasso, sufficient statistics": 0.6}  # fmt: skip

#: The size of the data sets of replays, and the number of steps. A search has more rows, which make
#: a fit sure of its way.
ROWS, COLUMNS, STEPS = 12, 8, 6
SEARCHED_ROWS = 1_000

ESTIMATORS: dict[str, Any] = {
    "PrivateLasso": PrivateLasso(1.0, 1e-6, bounds=UNIT, steps=STEPS),
    "PrivateLasso, pure": PrivateLasso(1.0, 0.0, bounds=UNIT, steps=STEPS),
    "PrivateLasso, rows bounded in l2": PrivateLasso(1.0, 1e-6, bounds=LENGTH, steps=STEPS),
    "PrivateLogisticRegression": PrivateLogisticRegression(
        1.0, 1e-6, bounds=UNIT, steps=STEPS, classes=[0, 1]
    ),
    "PrivateErm, Huber over L2Ball": PrivateErm(
        Huber(0.5), L2Ball(1.0), 1.0, 1e-6, bounds=UNIT, steps=STEPS
    ),
    "PrivateSparseRegression": PrivateSparseRegression(
        1.0, 1e-6, bounds=UNIT, sparsity=2, steps=STEPS
    ),
    "PrivateSparseRegression, rows bounded in l2": PrivateSparseRegression(
        1.0, 1e-6, bounds=LENGTH, sparsity=2, steps=STEPS, solver="hard-thresholding"
    ),
    "HeavyTailedRegression, split, pure": HeavyTailedRegression(
        1.0, 0.0, truncation=1.0, sparsity=2, solver=PrivatePeeling(3, split=True)
    ),
    "PrivateLinearSVC, rows bounded in l2": PrivateLinearSVC(
        1.0, 1e-6, bounds=LENGTH, steps=STEPS, classes=[0, 1]
    ),
    "PrivateLogisticRegression, class sums": PrivateLogisticRegression(
        1.0, 1e-6, bounds=LENGTH, solver=ClassSums(STEPS), classes=[0, 1]
    ),
    "PrivateErm, noisy gradients of samples": PrivateErm(
        Squared(), L2Ball(1.0), 1.0, 1e-6, bounds=UNIT, solver=NoisyGradient(STEPS, sampling=0.5)
    ),
    "PrivateErm, objective perturbation": PrivateErm(
        Logistic(), L1Ball(1.0), 1.0, 1e-6, bounds=UNIT, solver="objective-perturbation"
    ),
    "PrivateLasso, scaled gradients": PrivateLasso(
        1.0, 1e-6, bounds=LENGTH, solver=ScaledGradient(STEPS)
    ),
    "PrivateLasso, whitened gradients": PrivateLasso(
        1.0, 1e-6, bounds=UNIT, solver=WhitenedGradient(STEPS)
    ),
    "ProjectedRegression": ProjectedRegression(1.0, 1e-6, bounds=LENGTH, dimension=3, steps=STEPS),
    "ProjectedRegression, pure": ProjectedRegression(1.0, 0.0, bounds=LENGTH, dimension=3),
    "PrivateLasso, greedy": PrivateLasso(1.0, 1e-6, bounds=UNIT, solver=PrivateGreedy(STEPS)),
    "PrivateLasso, greedy, pure": PrivateLasso(1.0, 0.0, bounds=UNIT, solver=PrivateGreedy(STEPS)),
    "PrivateLasso, refitted Frank-Wolfe": PrivateLasso(
        1.0, 1e-6, bounds=UNIT, solver=RefittedFrankWolfe(STEPS)
    ),
    "PrivateLasso, sufficient statistics": PrivateLasso(
        1.0, 1e-6, bounds=UNIT, solver=SufficientStatistics()
    ),
    "PrivateErm, hinge over Simplex, add-remove": PrivateErm(
        SmoothedHinge(), Simplex(1.0), 1.0, 1e-6, bounds=UNIT, steps=STEPS, adjacency="add-remove"
    ),
}


def _lasso(solver: Any, epsilon: float, delta: float) -> PrivateErm:
    return PrivateErm(
        Squared(), L1Ball(1.0), epsilon, delta, bounds=UNIT, solver=solver, fit_intercept=False
    )


#: Fits of one step: the model, how many rows tilt the outcome so that the loss shows, and the
#: share of the claim that a hundred thousand fits on each side should show.
ONE_STEP: dict[str, tuple[Any, int, float]] = {
    "exponential mechanism": (
        _lasso(PrivateFrankWolfe(1, selection="exponential"), 1.0, 0.0),
        3,
        0.7,
    ),
    "permute-and-flip": (
        _lasso(PrivateFrankWolfe(1, selection="permute-and-flip"), 1.0, 0.0),
        1,
        0.7,
    ),
    "Laplace noisy max": (_lasso(PrivateFrankWolfe(1, selection="laplace"), 1.0, 0.0), 2, 0.55),
}

#: Fits of several steps, whose claim is compared at several deltas. At a smaller epsilon, a few
#: thousand fits would show nothing.
CURVES: dict[str, Any] = {
    "frank-wolfe, 10 steps": _lasso(PrivateFrankWolfe(10), 4.0, 1e-3),
    "frank-wolfe, 50 steps": _lasso(PrivateFrankWolfe(50), 4.0, 1e-3),
    "gaussian-frank-wolfe, 10 steps": _lasso(GaussianFrankWolfe(10), 4.0, 1e-3),
    "gaussian-frank-wolfe, 50 steps": _lasso(GaussianFrankWolfe(50), 4.0, 1e-3),
    "noisy-gradient, 10 steps": _lasso(NoisyGradient(10), 4.0, 1e-3),
    "noisy-gradient of samples, 10 steps": _lasso(NoisyGradient(10, sampling=0.5), 4.0, 1e-3),
    "objective-perturbation": _lasso(PerturbedObjective(), 4.0, 1e-3),
    "greedy, 2 selections": _lasso(PrivateGreedy(2), 4.0, 1e-3),
    "sufficient-statistics": _lasso(SufficientStatistics(), 4.0, 1e-3),
    "peeling, 2 steps": PrivateErm(
        Squared(),
        SparseBall(1),
        4.0,
        1e-3,
        bounds=UNIT,
        solver=PrivatePeeling(2, split=False),
        fit_intercept=False,
    ),
}
DELTAS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.2)


@dataclass(frozen=True)
class Replayed:
    """Replays of one estimator: random pairs, and the worst one."""

    name: str
    pairs: int
    exceeded: int
    largest: float
    worst_pair: float

    @property
    def sound(self) -> bool:
        return self.exceeded == 0 and self.worst_pair <= 1


@dataclass(frozen=True)
class AuditResult:
    """What all audits showed, by the names of estimators and of fits of one step and of several."""

    replays: tuple[Replayed, ...]
    searches: Mapping[str, SearchedPair]
    attacks: Mapping[str, Curve]
    curves: Mapping[str, Curve]

    @property
    def sound(self) -> bool:
        """Whether no claim was exceeded."""
        tables = (self.searches, self.attacks, self.curves)
        return all(each.sound for each in self.replays) and all(
            each.sound for table in tables for each in table.values()
        )

    @property
    def sharp(self) -> bool:
        """Whether the audits would have noticed: they come near to the claims, in a full run."""
        return (
            all(e.worst_pair >= LESS_SHARP.get(e.name, WORST_PAIR) for e in self.replays)
            and all(
                pair.share >= LESS_AT_ONCE.get(name, SEARCHED_PAIR)
                for name, pair in self.searches.items()
            )
            and all(curve.ratio >= ONE_STEP[name][2] for name, curve in self.attacks.items())
            and all(curve.ratio > 0 for curve in self.curves.values())
        )

    def to_dict(self) -> dict[str, Any]:
        """The same for a program."""
        curves = {**self.attacks, **self.curves}
        shown = ("first_share", "share", "background", "sound")
        return {
            "sound": self.sound,
            "replays": [{**asdict(each), "sound": each.sound} for each in self.replays],
            "searches": [
                {"name": name, **{fact: getattr(pair, fact) for fact in shown}}
                for name, pair in self.searches.items()
            ],
            "attacks": [
                {"name": name, "ratio": curve.ratio, "sound": curve.sound}
                for name, curve in curves.items()
            ],
        }


def replay_estimator(name: str, pairs: int, progress: Progress) -> Replayed:
    """Replay an estimator on random hostile neighbours and on its worst pair."""
    model, exceeded, largest = ESTIMATORS[name], 0, 0.0
    found = replays(model, random_pairs(model, pairs, ROWS, COLUMNS, label=name), seed=0)
    for k, each in enumerate(found, start=1):
        exceeded += not each.sound
        largest = max(largest, each.worst)
        progress(k)
    worst = worst_pair(model, ROWS, COLUMNS)
    extreme = replay(model, worst.data, worst.neighbour, seed=0)
    return Replayed(name, pairs, exceeded + (not extreme.sound), largest, extreme.worst)


def search_estimator(name: str, tries: int, progress: Progress) -> SearchedPair:
    """The pair that changes a whole fit of an estimator most."""
    return search_pair(ESTIMATORS[name], SEARCHED_ROWS, COLUMNS, tries=tries, progress=progress)


def attack_one_step(name: str, draws: int, progress: Progress) -> Curve:
    """The black-box bound for a fit of one step on its worst pair."""
    model, tilt, _ = ONE_STEP[name]
    pair = worst_pair(model, tilt + 3, 1, tilt=tilt)
    return lower_bound(model, pair.data, pair.neighbour, draws=draws, seed=0, progress=progress)


def attack_steps(name: str, draws: int, progress: Progress) -> Curve:
    """The black-box curve for a fit of several steps.

    With two rows, what one of them pulls is not soon pushed back by the other.
    """
    model = CURVES[name]
    pair = worst_pair(model, 2, 1)
    return lower_bound(
        model, pair.data, pair.neighbour, draws=draws, deltas=DELTAS, seed=0, progress=progress
    )
