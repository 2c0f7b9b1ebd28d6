"""What a task can learn, before anything is collected: there is no second round."""

from __future__ import annotations

import difflib
import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from riata.arguments import check_whole
from riata.errors import InvalidArgument
from riata.local.channel import LARGEST_EPSILON
from riata.local.kinds import MOST_COLUMNS
from riata.local.population import Population, PopulationGuess
from riata.local.questions import Question
from riata.wording import number_of

if TYPE_CHECKING:
    from riata.local.task import Task

#: The quantiles of an 80% interval.
LOW, HIGH = 0.1, 0.9
#: Below this share of the achievable gain a collection is not worth its reports.
WORTHWHILE = 0.5
#: No seed of the generator reaches further in a given direction, but with probability 1e-6.
FURTHEST = 10.8
#: Simulated populations of a forecast, and of each comparison: all of them for matrices of second
#: moments up to `_SMALL` columns. Beyond, fewer, because the time of one grows about as size^2.5;
#: a forecast never has fewer than `_LEAST`.
_REPEATS, _FEWER, _LEAST = 40, 12, 4
_SMALL, _GROWTH = 256, 2.5
#: Exponents of the numbers of people that are tried: quarter decades, every second one where a
#: single population is asked.
_EXPONENTS = np.arange(8, 49) / 4.0


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
        What 80% of collections have: the mean can be outside, where most of them show nothing.
    no_signal : float
        How often the reports would show no signal.
    people_needed : int or None
        About how many people an expected share of one half needs; None beyond 10^12.
    influence : dict
        For each question, how far one lying device can move an estimate, in the units of its noise.
    options : tuple of (str, float)
        What else could be done, and the share to expect of it.
    """

    task: Task
    people: int
    share: float
    interval: tuple[float, float]
    no_signal: float
    people_needed: int | None
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
        if self.people_needed is not None:
            better.insert(0, f"ask about {self.people_needed:,} people")
        ways = ", or ".join(better) if better else "nothing near would be enough"
        return f"Too few people for this task. Choose: {ways}."

    def __str__(self) -> str:
        low, high = self.interval
        tries = max(question.channel.tries for question in self.task.questions)
        needed = "more than 10^12" if self.people_needed is None else f"{self.people_needed:,}"
        lines = [
            f"{self.task.kind}, {number_of(self.task.encoding.columns, 'column')}, epsilon "
            f"{self.task.epsilon:g}, {number_of(self.people, 'person', 'people')}",
            f"  share of the achievable gain   {self.share:.2f} ({low:.2f} to {high:.2f})",
            f"  no signal                      in {self.no_signal:.0%} of collections",
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
        Of the simulated people.
    **guess
        Fields of `PopulationGuess`.
    """
    check_whole("n", n, "it is a number of people")
    check_whole("seed", seed, "it names the simulated people", 0)
    names = [one.name for one in fields(PopulationGuess)]
    for name in guess:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise InvalidArgument(f"{name} is not known.{hint} Guess any of {', '.join(names)}.")
    believed = PopulationGuess(**guess)  # type: ignore[arg-type]
    shares = _shares(task, int(n), believed, _REPEATS, seed)
    low, high = np.quantile(shares, [LOW, HIGH], method="hazen")  # of four: both ends
    share = float(shares.mean())
    return TaskPlan(
        task=task,
        people=int(n),
        share=share,
        interval=(float(low), float(high)),
        no_signal=float(np.mean(shares == 0.0)),
        people_needed=_people_needed(task, int(n), share, believed, seed),
        influence={question.name: influence(question, int(n)) for question in task.questions},
        options=_options(task, int(n), believed, seed),
    )


def influence(question: Question, n: int) -> float:
    """How many standard errors of an estimate one lying device can move it, at most.

    A report is a seed, so a liar can send no vector that the generator does not make. With `m`
    reports an estimate in one direction has the noise 1 / (e sqrt(m)), and the liar adds at most
    the longest inner product (degree 1) or its square (degree 2) over e m.
    """
    reports = max(1.0, question.share * n)
    return FURTHEST**question.channel.degree / math.sqrt(reports)


def _people_needed(
    task: Task, n: int, share: float, guess: PopulationGuess, seed: int
) -> int | None:
    """The smallest number on a grid of quarter or half decades that gives half of the gain.

    By bisection, from what the forecast for `n` people says: more people learn more.
    """
    exponents = _EXPONENTS if _affordable(task, _FEWER) > 1 else _EXPONENTS[::2]

    def enough(exponent: float) -> bool:
        people = round(10.0**exponent)
        return float(_shares(task, people, guess, _FEWER, seed).mean()) >= WORTHWHILE

    here = math.log10(n)
    if share >= WORTHWHILE:
        least, most = 0, int(np.searchsorted(exponents[:-1], here))
    else:
        least, most = int(np.searchsorted(exponents, here, "right")), len(exponents)
    place = bisect_left(exponents, True, least, most, key=enough)
    return int(float(f"{10.0 ** exponents[place]:.1e}")) if place < len(exponents) else None


def _options(
    task: Task, n: int, guess: PopulationGuess, seed: int
) -> tuple[tuple[str, float], ...]:
    """Other tasks for the same people: more epsilon, fewer columns, another kind."""
    double = min(2.0 * task.epsilon, LARGEST_EPSILON)
    options = [
        ("with twice the epsilon", task.variant(epsilon=double)),
        ("with half the epsilon", task.variant(epsilon=task.epsilon / 2.0)),
    ]
    if other := task.spec.alternative:
        options.append((f"as kind {other}", task.variant(kind=other)))
    features = task.encoding.features
    if len(features) == 1 and features[0].kind == "vector" and features[0].size > 3:
        half = replace(features[0], size=features[0].size // 2)
        options.append(("with half the columns", task.variant(features=[half.table()])))
    elif len(features) > 3:
        half_of = [feature.table() for feature in features[: len(features) // 2]]
        options.append(("with half the features", task.variant(features=half_of)))
    return tuple(
        (what, float(_shares(one, n, guess, _FEWER, seed).mean())) for what, one in options
    )


def _shares(task: Task, n: int, guess: PopulationGuess, repeats: int, seed: int) -> np.ndarray:
    """The share of the achievable gain in each of `repeats` simulated collections, or of fewer."""
    return np.array([one.share(n) for one in _populations(task, n, guess, repeats, seed)])


def _populations(
    task: Task, n: int, guess: PopulationGuess, repeats: int, seed: int
) -> Iterable[Population]:
    """Simulated populations, each with the same model for every number of people.

    Where only a few can be solved, they stand for `_REPEATS` of them: in the order of how easy
    they are, these are cut into so many equal parts, and the middle of each is taken.
    """
    few = _affordable(task, repeats)
    rngs = np.random.default_rng(seed).spawn(repeats if few == repeats else _REPEATS)
    populations = (Population(task, guess, rng) for rng in rngs)
    if few == repeats:
        return populations
    ordered = sorted(populations, key=lambda one: one.ease(n))
    return [ordered[(2 * part + 1) * len(ordered) // (2 * few)] for part in range(few)]


def _affordable(task: Task, repeats: int) -> int:
    """How many of so many populations are solved, from the size of the matrix of each."""
    degrees = [question.channel.degree for question in task.questions]
    if max(degrees) == 1 or not _SMALL < task.vector_size <= MOST_COLUMNS:
        return repeats
    least = _LEAST if repeats == _REPEATS else 1
    return max(least, round(repeats * (_SMALL / task.vector_size) ** _GROWTH))
