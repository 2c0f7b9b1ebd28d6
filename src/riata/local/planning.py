"""What a task can learn, before anything is collected: there is no second round.

People are made up from a public guess, and the sums of all their reports are drawn at once from
their law, so that a forecast for a billion people takes as long as one for a thousand.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import expit, log_expit

from riata.errors import InvalidArgument
from riata.local.arms import Arm
from riata.local.learners.learn import mean_model, regression_model, wide_model
from riata.local.learners.logistic import scale_and_offset
from riata.local.learners.model import LocalModel
from riata.local.learners.moments import Moments
from riata.local.learners.screening import screened
from riata.local.task import MOST_COLUMNS, Task
from riata.wording import number_of

#: Eight of ten collections lie between these quantiles.
LOW, HIGH = 0.1, 0.9
#: Below this share of the achievable gain a collection is not worth its reports.
WORTHWHILE = 0.5
#: No seed of the generator reaches further in a given direction, but with probability 1e-6.
FURTHEST = 10.8
_REPEATS, _FEWER = 40, 12
_PEOPLE = 4096


@dataclass(frozen=True)
class Guess:
    """What is believed about the people. Public, and worth nothing if it is wrong.

    Attributes
    ----------
    explained : float, default=0.3
        The part of the target's variance that the best model explains.
    spread : float, default=0.3
        The standard deviation of the target, where its bounds are -1 and 1.
    length : float, default=0.7
        How long a typical encoded row is, where the longest has length 1.
    decay : float, default=1.0
        The j-th largest variance among the columns is in proportion to j^-decay.
    nonzero : int, default=10
        For sparse kinds: how many columns matter.
    """

    explained: float = 0.3
    spread: float = 0.3
    length: float = 0.7
    decay: float = 1.0
    nonzero: int = 10

    def __post_init__(self) -> None:
        for name, most in (("explained", 0.6), ("spread", 1.0), ("length", 1.0), ("decay", 9.0)):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not (number and 0 <= value <= most):
                raise InvalidArgument(
                    f"{name}={value!r} is not possible. Guess a number from 0 to {most:g}."
                )
        if not self.explained > 0 or not self.spread > 0 or not self.length > 0:
            raise InvalidArgument(
                "explained, spread and length must be above 0: without them there is nothing to "
                "learn."
            )
        if not _is_whole(self.nonzero, 1):
            raise InvalidArgument(
                f"nonzero={self.nonzero!r} is not possible. Guess a whole number of columns, at "
                "least 1."
            )


@dataclass(frozen=True)
class TaskPlan:
    """The forecast of a collection, if the guess is right.

    Attributes
    ----------
    task : Task
    people : int
        How many reports are expected.
    share : float
        The expected part of the achievable gain over the trivial predictor: 1 is the best model,
        0 a constant.
    interval : tuple of float
        The shares of eight of ten collections.
    silent : float
        How often the reports would show no signal.
    needed : int or None
        About how many people an expected share of one half needs; None beyond 10^12.
    influence : dict
        For each arm, how far one lying device can move an estimate, in the units of its noise.
    options : tuple of (str, float)
        What else could be done, and the share to expect of it.
    """

    task: Task
    people: int
    share: float
    interval: tuple[float, float]
    silent: float
    needed: int | None
    influence: dict[str, float]
    options: tuple[tuple[str, float], ...]

    @property
    def worthwhile(self) -> bool:
        """Whether half of the achievable gain can be expected."""
        return self.share >= WORTHWHILE

    @property
    def advice(self) -> str:
        """What to do, in a sentence or two."""
        if self.worthwhile:
            return "Collect: the reports will show most of what there is."
        better = [f"{what} (share {share:.2f})" for what, share in self.options if share > 0.5]
        if self.needed is not None:
            better.insert(0, f"ask about {self.needed:,} people")
        ways = ", or ".join(better) if better else "nothing near would be enough"
        return f"Too few people for this task. Choose: {ways}."

    def __str__(self) -> str:
        low, high = self.interval
        tries = max(arm.channel.tries for arm in self.task.arms)
        needed = "more than 10^12" if self.needed is None else f"{self.needed:,}"
        lines = [
            f"{self.task.kind}, {self.task.encoding.columns} columns, epsilon "
            f"{self.task.epsilon:g}, {number_of(self.people, 'person', 'people')}",
            f"  share of the achievable gain   {self.share:.2f} ({low:.2f} to {high:.2f})",
            f"  no signal                      in {self.silent:.0%} of collections",
            f"  people for a share of 1/2      {needed}",
            f"  one report                     8 bytes, about {tries:.1f} tries on the device",
            *(
                f"  one liar moves {name:<15} by at most {times:.2g} standard errors"
                for name, times in self.influence.items()
            ),
            *(f"  {what:<30} {share:.2f}" for what, share in self.options),
            f"  {self.advice}",
        ]
        return "\n".join(lines)

    __repr__ = __str__


def plan(task: Task, n: int, *, seed: int = 0, **guess: float) -> TaskPlan:
    """The forecast of a task with `n` people.

    Parameters
    ----------
    task : Task
    n : int
    seed : int, default=0
        Of the made-up people.
    **guess
        Fields of `Guess`.
    """
    if not _is_whole(n, 1):
        raise InvalidArgument(f"n={n!r} must be a number of people, at least 1.")
    if not _is_whole(seed, 0):
        raise InvalidArgument(f"seed={seed!r} must be a whole number, at least 0.")
    known = [one.name for one in fields(Guess)]
    for name in guess:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InvalidArgument(f"{name} is not known.{hint} Guess any of {', '.join(known)}.")
    believed = Guess(**guess)  # type: ignore[arg-type]
    shares = _shares(task, int(n), believed, _REPEATS, seed)
    return TaskPlan(
        task=task,
        people=int(n),
        share=float(shares.mean()),
        interval=(float(np.quantile(shares, LOW)), float(np.quantile(shares, HIGH))),
        silent=float(np.mean(shares == 0.0)),
        needed=_needed(task, believed, seed),
        influence={arm.name: influence(arm, int(n)) for arm in task.arms},
        options=_options(task, int(n), believed, seed),
    )


def _is_whole(value: object, least: int) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and int(value) >= least  # type: ignore[call-overload]


def influence(arm: Arm, n: int) -> float:
    """How many standard errors of an estimate one lying device can move it, at most.

    A report is a seed, so a liar can send no vector that the generator does not make. With `m`
    reports an estimate in one direction has the noise 1 / (e sqrt(m)), and the liar adds at most
    the longest inner product (degree 1) or its square (degree 2) over e m.
    """
    reports = max(1.0, arm.share * n)
    return FURTHEST**arm.channel.degree / math.sqrt(reports)


def _needed(task: Task, guess: Guess, seed: int) -> int | None:
    """The smallest number on a grid of quarter decades that gives half of the gain."""

    def enough(exponent: float) -> bool:
        people = round(10.0**exponent)
        return float(_shares(task, people, guess, _FEWER, seed).mean()) >= WORTHWHILE

    for exponent in np.arange(2.0, 12.01, 0.5):
        if enough(exponent):
            least = exponent - 0.25 if enough(exponent - 0.25) else exponent
            return int(float(f"{10.0**least:.1e}"))
    return None


def _options(task: Task, n: int, guess: Guess, seed: int) -> tuple[tuple[str, float], ...]:
    """Other tasks for the same people: more epsilon, fewer columns, another kind."""
    found = [
        ("with twice the epsilon", _with(task, epsilon=min(2.0 * task.epsilon, 16.0))),
        ("with half the epsilon", _with(task, epsilon=task.epsilon / 2.0)),
    ]
    other = {"linear": "lasso", "lasso": "linear"}.get(task.kind)
    if other is not None:
        found.append((f"as kind {other}", _with(task, kind=other)))
    features = task.encoding.features
    if len(features) == 1 and features[0].kind == "vector" and features[0].size > 3:
        half = replace(features[0], size=features[0].size // 2)
        found.append(("with half the columns", _with(task, features=[half.table()])))
    elif len(features) > 3:
        half_of = [feature.table() for feature in features[: len(features) // 2]]
        found.append(("with half the features", _with(task, features=half_of)))
    return tuple((what, float(_shares(one, n, guess, _FEWER, seed).mean())) for what, one in found)


def _with(task: Task, **changes: object) -> Task:
    """The task with other fields, and channels chosen again."""
    table = task.table() | changes
    table["arms"] = dict(task.shares)
    return Task.from_table(table)


def _shares(task: Task, n: int, guess: Guess, repeats: int, seed: int) -> np.ndarray:
    """The share of the achievable gain in each of `repeats` made-up collections."""
    rngs = np.random.default_rng(seed).spawn(repeats)
    return np.array([World(task, guess, rng).share(n) for rng in rngs])


class World:
    """One made-up population: independent columns, a random model, and the law of its reports.

    Parameters
    ----------
    task : Task
    guess : Guess
    rng : numpy.random.Generator
    """

    def __init__(self, task: Task, guess: Guess, rng: np.random.Generator) -> None:
        self.task, self.guess, self.rng = task, guess, rng
        self.columns = task.vector_size - (task.intercept > 0)
        few = task.kind in ("sparse-mean", "lasso", "sparse-linear")
        decay = 0.0 if few else guess.decay
        variances = np.arange(1, self.columns + 1) ** -decay
        left = (1.0 - task.intercept) * guess.length**2
        self.variances = variances * (left / variances.sum())
        theta = rng.standard_normal(self.columns)
        if few:
            theta[rng.permutation(self.columns)[guess.nonzero :]] = 0.0
        #: What the best model explains, on the encoded scale of the target.
        spread = 1.0 if task.kind == "logistic" else guess.spread
        self.explained = guess.explained * spread**2
        self.theta = theta * math.sqrt(self.explained / float(self.variances @ theta**2))

    def share(self, n: int) -> float:
        """Of the achievable gain, in a collection from `n` people."""
        if "mean" in self.task.shares:
            return self._share_of_mean(n)
        model = self._model(n)
        if not model.signal:
            return 0.0
        if self.task.kind == "logistic":
            return self._share_of_odds(model)
        cross = self.variances * self.theta
        gain = 2.0 * float(cross @ model.theta) - float(self.variances @ model.theta**2)
        return (gain - model.offset**2) / self.explained

    def _share_of_mean(self, n: int) -> float:
        mean = self.theta * (self.guess.length / np.linalg.norm(self.theta))
        noise = self._noise("mean", n)
        seen = mean + noise * self.rng.standard_normal(len(mean))
        found = mean_model(self.task, n, seen, noise).theta
        return 1.0 - float(np.sum((found - mean) ** 2) / np.sum(mean**2))

    def _model(self, n: int) -> LocalModel:
        cross_noise = self._noise("cross", n)
        cross = self._with_constant(self.variances * self.theta, 0.0)
        cross = cross + cross_noise * self.rng.standard_normal(len(cross))
        square = self._with_constant(self.variances, self.task.intercept)
        if len(cross) <= MOST_COLUMNS:
            gram, noise = self._gram(n, square)
            return regression_model(self.task, n, Moments(gram, cross, noise, cross_noise))
        constant = self.task.intercept > 0
        kept = screened(cross, cross_noise, constant)
        places = np.append(kept, len(cross) - 1) if constant else kept
        gram, noise = self._gram(n, square[places])
        return wide_model(self.task, n, kept, Moments(gram, cross[places], noise, cross_noise))

    def _noise(self, name: str, n: int) -> float:
        """Of a coordinate, when `n` people answer all arms together."""
        arm = self.task.arm(name)
        return arm.noise(arm.share * n)

    def _with_constant(self, values: np.ndarray, last: float) -> np.ndarray:
        return np.append(values, last) if self.task.intercept > 0 else values

    def _gram(self, n: int, square: np.ndarray) -> tuple[np.ndarray, float]:
        """The estimated second moments: the truth, and a centred Wishart matrix over e_2."""
        arm = self.task.arm("gram")
        reports = max(1.0, arm.share * n)
        size = len(square)
        if size < reports and size <= 512:
            root = np.tril(self.rng.standard_normal((size, size)), -1)
            root += np.diag(np.sqrt(self.rng.chisquare(reports - np.arange(size))))
            noise = root @ root.T / reports - np.eye(size)
        else:
            noise = self.rng.standard_normal((size, size)) / math.sqrt(reports)
            noise = (noise + noise.T) / math.sqrt(2.0)
        return np.diag(square) + noise / arm.channel.signal, arm.noise(reports)

    def _share_of_odds(self, model: LocalModel) -> float:
        """By the log loss of made-up people, of whom the true and the learned odds are normal."""
        scale, _ = scale_and_offset(0.0, self.explained)
        true = scale * math.sqrt(self.explained) * self.rng.standard_normal(_PEOPLE)
        weights = self.variances * self.theta
        slope = float(weights @ model.theta) / self.explained / scale
        rest = float(self.variances @ model.theta**2) - (slope * scale) ** 2 * self.explained
        learned = model.offset + slope * true
        learned += math.sqrt(max(rest, 0.0)) * self.rng.standard_normal(_PEOPLE)
        chance = expit(true)

        def loss(odds: np.ndarray) -> float:
            return -float(np.mean(chance * log_expit(odds) + (1.0 - chance) * log_expit(-odds)))

        return (math.log(2.0) - loss(learned)) / (math.log(2.0) - loss(true))
