"""Objective perturbation: the minimiser of a risk with a random linear term.

The exact minimiser is private, but only an approximate one can be computed. It is certified to lie
within a public distance of the exact one, and noise that hides this distance is added (Iyengar et
al. 2019). Proofs are in docs/privacy/objective_perturbation.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from riata.mechanisms.additive import Draws, LaplaceDraws, NormalDraws, rounded
from riata.mechanisms.approximate_normals import ERROR_BITS, approximate_gamma, approximate_normals
from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.minimise import Objective, minimise
from riata.mechanisms.noise import Noise
from riata.privacy.events import Event, Gaussian, ObjectivePerturbed, Pure, compose
from riata.queries import Minimum
from riata.vectors import Vector, length
from riata.wording import number_of

#: Linear terms that are this many times longer than expected are drawn again. One in e^1000 is.
_LONGEST = 1024.0

#: The released point lies on a grid this many times finer than the distance that is hidden.
_GRID_BELOW_RADIUS = 16


@dataclass(frozen=True)
class ObjectivePerturbation(Mechanism):
    """The common part of the two kinds of noise.

    Parameters
    ----------
    regularisation : float
        The weight lambda of ||theta||^2 / 2 beside the *sum* of the losses.
    stretch : float
        What the Jacobian costs: at least what `Minimum.stretch` says.
    smoothing : float, default=0.0
        The one of the query that it is for.
    """

    norm: ClassVar[str | None] = "l2"

    regularisation: float
    stretch: float
    smoothing: float = field(default=0.0, kw_only=True)

    @abstractmethod
    def scale(self, query: Minimum) -> float:
        """The scale of the linear term."""

    @abstractmethod
    def expected_length(self, query: Minimum) -> float:
        """The expected length of the linear term, or a little more."""

    @abstractmethod
    def term_error(self, query: Minimum) -> float:
        """How far the drawn linear term may be from the exact one, in l2."""

    @abstractmethod
    def _term(self, query: Minimum, noise: Noise) -> np.ndarray:
        """The random linear term."""

    @abstractmethod
    def hiding_scale(self, query: Minimum) -> float:
        """The scale of the noise that hides which approximate minimiser was found."""

    @abstractmethod
    def _hiding(self, n: int, noise: Noise) -> Draws: ...

    def smoothness(self, query: Minimum) -> float:
        return query.n_rows * query.row_curvature + self.regularisation

    def tolerance(self, query: Minimum) -> float:
        """The residual that a computed minimiser must not exceed: what rounding may hide."""
        smoothness = self.smoothness(query)
        projection = self._projection_error(query)
        projection += 2.0**-50 * self._largest(query) * math.sqrt(query.size)
        return 2 * query.gradient_error + self.term_error(query) + 3 * smoothness * projection

    def _largest(self, query: Minimum) -> float:
        """A bound on the entries of the points that are projected."""
        size = query.set.radius_in("l2") + query.offset_bound
        pull = query.n_rows * query.row_bound("l2") + _LONGEST * self.expected_length(query)
        return 2 * size + pull / self.smoothness(query)

    def _projection_error(self, query: Minimum) -> float:
        error = query.set.projection_error(self._largest(query))
        assert error is not None
        return error

    def radius(self, query: Minimum) -> float:
        """A bound on the distance from the rounded, computed minimiser to the exact one."""
        return 2.5 * self.tolerance(query) / self.regularisation

    def grid(self, query: Minimum) -> float:
        """A power of two: rounding to its multiples moves a point by less than radius / 16."""
        step = self.radius(query) / (2 * _GRID_BELOW_RADIUS * math.sqrt(query.size))
        return math.ldexp(1.0, math.frexp(step)[1] - 1)

    @abstractmethod
    def charged(self, query: Minimum) -> bool:
        """Whether the event counts all of the query's stretch."""

    def _corner(self) -> str:
        return f"corner rounded over {self.smoothing:.3g}, " if self.smoothing else ""

    def release(self, query: Minimum, engine: Engine, noise: Noise) -> Vector:
        if not self.charged(query):
            raise ValueError("The stretch that was charged is smaller than the query's.")
        theta = self._minimiser(query, engine, self._term(query, noise))
        grid = self.grid(query)
        steps = np.rint(theta / grid).astype(np.int64)
        scale = np.asarray(self.hiding_scale(query) / grid)
        released = rounded(steps, scale, self._hiding(len(steps), noise)) * grid
        return _as_vector(_into(query, released), query)

    def _minimiser(self, query: Minimum, engine: Engine, term: np.ndarray) -> np.ndarray:
        def gradient(theta: np.ndarray) -> np.ndarray:
            sums = query.gradient(_as_vector(theta, query))
            loss = sums.from_total(engine.total(sums))[: query.size]
            return loss + self.regularisation * theta + term

        allowed = self._projection_error(query)
        objective = Objective(
            gradient, lambda v: _into(query, v), self.regularisation, self.smoothness(query),
            lambda v: _certified(query, v, allowed),
        )  # fmt: skip
        start = np.zeros(query.size)
        start[: query.set.required_size()] = query.set.start().dense()
        return minimise(objective, start, self.tolerance(query))


@dataclass(frozen=True)
class GaussianObjective(ObjectivePerturbation):
    """A Gaussian linear term: for (epsilon, delta).

    Parameters
    ----------
    noise_multiplier : float
        The standard deviation of the term over the l2 sensitivity of the sum of gradients.
    hiding_multiplier : float
        That of the hiding noise over the diameter of what it hides.
    directions : {1, 2}, default=1
        Which sensitivity the term is scaled to, and how it is accounted for.
    above, stretch_above : float, optional
        Where the term loses more than `above`, so much of the stretch is charged.
    """

    noise_multiplier: float
    hiding_multiplier: float
    directions: int = 1
    above: float = 0.0
    stretch_above: float | None = None

    @property
    def event(self) -> Event:
        own = ObjectivePerturbed(
            self.noise_multiplier, self.stretch, self.directions, self.above, self.stretch_above
        )
        return compose((own, 1), (Gaussian(self.hiding_multiplier), 1))

    def charged(self, query: Minimum) -> bool:
        steep = query.stretch(self.regularisation, self.above, self.directions)
        return query.stretch(self.regularisation) <= self.stretch and (
            self.stretch_above is None or steep <= self.stretch_above
        )

    def scale(self, query: Minimum) -> float:
        return self.noise_multiplier * query.sensitivity("l2", self.directions)

    def expected_length(self, query: Minimum) -> float:
        return self.scale(query) * math.sqrt(query.size)

    def term_error(self, query: Minimum) -> float:
        return self.expected_length(query) * 2.0**-ERROR_BITS

    def _term(self, query: Minimum, noise: Noise) -> np.ndarray:
        while True:
            term = self.scale(query) * approximate_normals(query.size, noise)
            if length(term) <= _LONGEST * self.expected_length(query):
                return term

    def hiding_scale(self, query: Minimum) -> float:
        return self.hiding_multiplier * 2 * self.radius(query)

    def _hiding(self, n: int, noise: Noise) -> Draws:
        return NormalDraws(n, noise)

    def describe(self, times: int) -> str:
        return (
            f"objective perturbation, Gaussian term of {self.noise_multiplier:.4g} x sensitivity, "
            f"regularisation {self.regularisation:.4g}, "
            f"stretch {self.stretch if self.stretch_above is None else self.stretch_above:.3g}, "
            f"{self._corner()}{number_of(times, 'release')}"
        )


@dataclass(frozen=True)
class GammaObjective(ObjectivePerturbation):
    """A linear term with a random direction and a Gamma length: for pure epsilon.

    Parameters
    ----------
    epsilon : float
        What the term costs, beside the stretch.
    hiding_epsilon : float
        What the hiding noise costs.
    """

    epsilon: float
    hiding_epsilon: float

    def charged(self, query: Minimum) -> bool:
        return query.stretch(self.regularisation, self.epsilon) <= self.stretch

    @property
    def event(self) -> Event:
        return compose((Pure(self.epsilon + self.stretch), 1), (Pure(self.hiding_epsilon), 1))

    def scale(self, query: Minimum) -> float:
        return query.sensitivity("l2") / self.epsilon

    def expected_length(self, query: Minimum) -> float:
        return self.scale(query) * query.size

    def term_error(self, query: Minimum) -> float:
        return self.expected_length(query) * 2.0 ** (9 - ERROR_BITS)

    def _term(self, query: Minimum, noise: Noise) -> np.ndarray:
        size = query.size
        while True:
            radius = approximate_gamma(size, noise)
            if radius <= _LONGEST * size:
                break
        # A draw that is much longer than usual needs its direction to more digits.
        bits = ERROR_BITS + max(0, math.frexp(radius / (16 * size))[1])
        while True:
            direction = approximate_normals(size, noise, bits)
            if length(direction) >= math.sqrt(size) / 8:
                break
        return self.scale(query) * radius * direction / length(direction)

    def hiding_scale(self, query: Minimum) -> float:
        return 2 * self.radius(query) * math.sqrt(query.size) / self.hiding_epsilon

    def _hiding(self, n: int, noise: Noise) -> Draws:
        return LaplaceDraws(n, noise)

    def describe(self, times: int) -> str:
        return (
            f"objective perturbation, Gamma term at epsilon {self.epsilon:.4g}, "
            f"regularisation {self.regularisation:.4g}, stretch {self.stretch:.3g}, "
            f"{self._corner()}{number_of(times, 'release')}"
        )


def _into(query: Minimum, v: np.ndarray) -> np.ndarray:
    """The nearest point of the set, the intercept within its own bound."""
    size = query.set.required_size()
    offset = np.clip(v[size:], -query.offset_bound, query.offset_bound)
    return np.concatenate([query.set.project(v[:size]), offset])


def _certified(query: Minimum, v: np.ndarray, allowed: float) -> np.ndarray | None:
    """The same, if its error is proven to be at most what is allowed."""
    size = query.set.required_size()
    nearest, error = query.set.certified_project(v[:size])
    offset = np.clip(v[size:], -query.offset_bound, query.offset_bound)
    return np.concatenate([nearest, offset]) if error <= allowed else None


def _as_vector(v: np.ndarray, query: Minimum) -> Vector:
    size = query.set.required_size()
    return Vector.of(v[:size]).with_offset(float(v[size]) if query.fit_intercept else 0.0)
