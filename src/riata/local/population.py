"""Simulated populations: people made up from a public guess, and the sums of their reports.

The sums of all reports are drawn at once from their distribution, so that a forecast for a billion
people takes as long as one for a thousand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from riata.arguments import check_positive, check_whole
from riata.local.learners.canonical import FAMILIES, normal_canonical, target_scale
from riata.local.learners.mean import mean_model
from riata.local.learners.model import LocalModel
from riata.local.learners.moments import joint_moments
from riata.local.learners.regression import learn_regression, regression_model
from riata.local.learners.ridge import TRUST
from riata.local.questions import TARGET_SHARE

if TYPE_CHECKING:
    from riata.local.task import Task

_PEOPLE = 4096


@dataclass(frozen=True)
class PopulationGuess:
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
        part = "it is a part of the target's variance that noise limits"
        check_positive("explained", self.explained, part, 0.6)
        check_positive("spread", self.spread, "a target varies, within its bounds", 1.0)
        check_positive("length", self.length, "rows vary, within the unit ball", 1.0)
        if self.decay != 0:
            check_positive("decay", self.decay, "it is the exponent of a decay, or 0", 9.0)
        check_whole("nonzero", self.nonzero, "it is a number of columns")


class Population:
    """A simulated population: independent columns, a random model, and how its reports vary."""

    def __init__(self, task: Task, guess: PopulationGuess, rng: np.random.Generator) -> None:
        self.task, self.guess, self.rng = task, guess, rng
        self.columns = task.vector_size - (task.intercept > 0)
        decay = 0.0 if task.spec.sparse else guess.decay
        variances = np.arange(1, self.columns + 1) ** -decay
        left = (1.0 - task.intercept) * guess.length**2
        self.variances = variances * (left / variances.sum())
        theta = rng.standard_normal(self.columns)
        if task.spec.sparse:
            theta[rng.permutation(self.columns)[guess.nonzero :]] = 0.0
        #: What the best model explains, on the encoded scale of the target.
        self.spread = 1.0 if task.spec.logistic else guess.spread
        self.explained = guess.explained * self.spread**2
        self.theta = theta * math.sqrt(self.explained / float(self.variances @ theta**2))

    def ease(self, n: int) -> float:
        """About the share of ridge regression from `n` people, for an order of populations.

        What a column explains counts as far as its variance is above the noise of second moments.
        """
        name, row = ("joint", 1.0 - TARGET_SHARE) if self.task.joint else ("gram", 1.0)
        level = TRUST * self.columns * (self._noise(name, n) / row) ** 2
        seen = self.variances**2 / (self.variances**2 + level)
        return float((self.variances * seen) @ self.theta**2) / self.explained

    def share(self, n: int) -> float:
        """Of the achievable gain, in a collection from `n` people."""
        if not self.task.spec.regression:
            return self._share_of_mean(n)
        model = self._model(n)
        if not model.signal:
            return 0.0
        if self.task.spec.family:
            return self._share_of_likelihood(model)
        cross = self.variances * self.theta
        gain = 2.0 * float(cross @ model.theta) - float(self.variances @ model.theta**2)
        return (gain - model.offset**2) / self.explained

    def _share_of_mean(self, n: int) -> float:
        mean = self.theta * (self.guess.length / np.linalg.norm(self.theta))
        noise = self._noise("mean", n)
        noisy = mean + noise * self.rng.standard_normal(len(mean))
        theta = mean_model(self.task, n, noisy, noise).theta
        return 1.0 - float(np.sum((theta - mean) ** 2) / np.sum(mean**2))

    def _model(self, n: int) -> LocalModel:
        cross = self._with_constant(self.variances * self.theta, 0.0)
        square = self._with_constant(self.variances, self.task.intercept)
        if self.task.joint:
            both = math.sqrt(TARGET_SHARE * (1.0 - TARGET_SHARE)) * cross
            truth = np.diag(np.append((1.0 - TARGET_SHARE) * square, TARGET_SHARE * self.spread**2))
            truth[-1, :-1] = truth[:-1, -1] = both
            matrix, noise = self._second_moments("joint", n, truth)
            moments = joint_moments(self.task, matrix, noise)
            return regression_model(self.task, n, moments, normal=True)
        cross_noise = self._noise("cross", n)
        cross = cross + cross_noise * self.rng.standard_normal(len(cross))

        def second_moments(places: np.ndarray | None) -> tuple[np.ndarray, float]:
            return self._second_moments(
                "gram", n, np.diag(square if places is None else square[places])
            )

        return learn_regression(self.task, n, cross, cross_noise, second_moments)

    def _noise(self, name: str, n: int) -> float:
        """Of a coordinate, when `n` people answer all questions together."""
        question = self.task.question(name)
        return question.noise(question.share * n)

    def _with_constant(self, values: np.ndarray, last: float) -> np.ndarray:
        return np.append(values, last) if self.task.intercept > 0 else values

    def _second_moments(self, name: str, n: int, truth: np.ndarray) -> tuple[np.ndarray, float]:
        """The estimated second moments: the truth, and a centred Wishart matrix over e_2."""
        question = self.task.question(name)
        reports = max(1.0, question.share * n)
        size = len(truth)
        if size < reports and size <= 512:
            root = np.tril(self.rng.standard_normal((size, size)), -1)
            root += np.diag(np.sqrt(self.rng.chisquare(reports - np.arange(size))))
            noise = root @ root.T / reports - np.eye(size)
        else:
            noise = self.rng.standard_normal((size, size)) / math.sqrt(reports)
            noise = (noise + noise.T) / math.sqrt(2.0)
        return truth + noise / question.channel.signal, question.noise(reports)

    def _share_of_likelihood(self, model: LocalModel) -> float:
        """By simulated people, whose true and estimated margins are normal."""
        family, (unit, middle) = FAMILIES[self.task.spec.family], target_scale(self.task)
        scale, offset = normal_canonical(family, unit**2 * self.explained, middle)
        scale *= unit
        away = scale * math.sqrt(self.explained) * self.rng.standard_normal(_PEOPLE)
        weights = self.variances * self.theta
        slope = float(weights @ model.theta) / self.explained / scale
        rest = float(self.variances @ model.theta**2) - (slope * scale) ** 2 * self.explained
        estimated = model.offset + slope * away
        estimated += math.sqrt(max(rest, 0.0)) * self.rng.standard_normal(_PEOPLE)
        if self.task.spec.family == "poisson":
            assert self.task.target is not None
            estimated = np.minimum(estimated, math.log(self.task.target.bounds[1]))
        mean = family.mean(offset + away)

        def loss(margins: np.ndarray) -> float:
            return float(np.mean(family.convex(margins) - mean * margins))

        nothing = loss(np.full(_PEOPLE, normal_canonical(family, 0.0, middle)[1]))
        return (nothing - loss(estimated)) / (nothing - loss(offset + away))
