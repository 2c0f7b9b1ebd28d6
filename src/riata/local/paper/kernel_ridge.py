"""Algorithm 4: kernel ridge regression by random Fourier features."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from riata.arguments import check_positive, check_whole, is_auto
from riata.errors import InvalidArgument
from riata.local.learners.moments import raise_eigenvalues
from riata.local.paper.base import finite_rows
from riata.local.paper.error_bounds import feature_distortion, kernel_distance, moment_errors
from riata.local.paper.moment_learner import MomentLearner
from riata.local.paper.moments import Moments
from riata.local.paper.private_vector import PrivateVector, check_budget
from riata.mechanisms.noise import Noise
from riata.privacy.budget import check_number, check_open_unit
from riata.public import public_normals

#: Draws public normal numbers of a shape: ``draw(shape)``, and others with each further call.
Draw = Callable[[tuple[int, ...]], np.ndarray]


def _rbf(draw: Draw, shape: tuple[int, int], gamma: float) -> np.ndarray:
    return math.sqrt(2 * gamma) * draw(shape)


def _laplacian(draw: Draw, shape: tuple[int, int], gamma: float) -> np.ndarray:
    return gamma * draw(shape) / draw(shape)  # a Cauchy variable is a quotient of two normal ones


def _matern(halves: int) -> Callable[[Draw, tuple[int, int], float], np.ndarray]:
    """Of the order halves / 2: Student's distribution with as many degrees of freedom."""

    def sampler(draw: Draw, shape: tuple[int, int], gamma: float) -> np.ndarray:
        normals, squares = draw(shape), (draw((shape[0], halves)) ** 2).mean(axis=1)
        return gamma * normals / np.sqrt(squares)[:, None]

    return sampler


#: Samplers of the spectral measures, called with public normal numbers, a shape and gamma.
KERNELS: dict[str, Callable[[Draw, tuple[int, int], float], np.ndarray]] = {
    "rbf": _rbf,
    "laplacian": _laplacian,
    "matern12": _matern(1),
    "matern32": _matern(3),
    "matern52": _matern(5),
}


def kernel_name(kernel: Any) -> str:
    """A kernel, for a Statement."""
    return kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "given")


class FourierFeatures:
    """Public random features whose inner products are about a shift-invariant kernel.

    Cosines and sines in pairs, so that every row has length 1 and its inner product with itself is
    the kernel's.

    Parameters
    ----------
    n_features : int
        The number of columns of a row.
    n_components : int
        The number of random features, even.
    kernel : str or callable
        A name of `KERNELS`, or a sampler of a spectral measure.
    gamma : float
    seed : int
        Names the public frequencies.
    """

    def __init__(
        self, n_features: int, n_components: int, kernel: Any, gamma: float, seed: int
    ) -> None:
        self.dimension = n_components
        shape = (n_components // 2, n_features)
        label = f"riata paper kernel {kernel_name(kernel)} {shape} {seed}"
        endings = itertools.chain(["", " below"], map(str, itertools.count(3)))

        def draw(wanted: tuple[int, ...]) -> np.ndarray:
            return public_normals(wanted, label + next(endings))

        sampler = KERNELS[kernel] if isinstance(kernel, str) else kernel
        self.frequencies = np.asarray(sampler(draw, shape, gamma), dtype=np.float64)
        if self.frequencies.shape != shape or not np.isfinite(self.frequencies).all():
            raise InvalidArgument(
                f"The kernel's sampler gave the shape {self.frequencies.shape}, or numbers that "
                f"are not finite: frequencies of the shape {shape} are wanted, one in each row."
            )

    def rows(self, X: Any) -> np.ndarray:
        """The features of each row: line 3."""
        phases = finite_rows(X) @ self.frequencies.T
        scale = 1 / math.sqrt(len(self.frequencies))
        return np.hstack([np.cos(phases), np.sin(phases)]) * scale


@dataclass(eq=False, repr=False, kw_only=True)
class PaperKernelRidge(MomentLearner):
    """Algorithm 4 of Zheng, Mou and Wang (2017), with its errata applied.

    Each device sends a private vector of its random Fourier features and one of its target. The
    server takes the noise out of the Gram matrix, raises eigenvalues that are below the noise and
    solves a ridge regression.

    Parameters
    ----------
    epsilon, delta : float
        The budget of each device. delta must be positive.
    n_components : int or "auto", default=100
        The number of random features, even: d_p of the paper. "auto" is epsilon sqrt(d n), as in
        Corollary 2.
    kernel : {"rbf", "laplacian", "matern12", "matern32", "matern52"} or callable, default="rbf"
        exp(-gamma ||x - x'||_2^2), exp(-gamma ||x - x'||_1), the kernels of Matern with the length
        1 / gamma, or any kernel that depends on x - x' alone: a function
        ``sampler(draw, shape, gamma)`` that returns independent draws from its spectral measure,
        one in each row, made from the public normal numbers of ``draw(shape)``.
    gamma : float, default=1.0
        The kernel's inverse width.
    C : float, default=1.0
        The weight of the loss against the ridge ||w||^2, as in formula (7).
    floor : float, default=2.0
        Eigenvalues of the mean Gram matrix below this multiple of sigma^2 sqrt(n_components / n)
        are raised to it. At 2 it is the edge of the noise's spectrum; at 0 it is the projection to
        the positive semidefinite cone of the paper.
    composition : {"basic", "exact"}, default="basic"
        As for `PaperL1Regression`.
    feature_seed : int, default=0
        Names the public frequencies.
    random_state : int, optional
        Makes a fit reproducible, for tests. Such a model is marked as not private.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,)
    sigma_, target_sigma_ : float
        The noise on each feature and on the target.
    privacy_ : Statement

    Notes
    -----
    *Privacy.* Each person's report is (epsilon, delta)-locally private, whatever the row. Targets
    are clipped to [-1, 1]; features have length 1 for every row.

    *Differences from the paper.* See docs/algorithms/local_paper.md: the calibration, pairs of
    cosines and sines, the ridge term that line 8 leaves out, and the floor.
    """

    algorithm = "kernel ridge regression (Zheng, Mou, Wang 2017, Algorithm 4)"

    epsilon: float
    delta: float
    n_components: int | str = 100
    kernel: Any = "rbf"
    gamma: float = 1.0
    C: float = 1.0
    floor: float = 2.0
    composition: str = "basic"
    feature_seed: int = 0
    random_state: int | None = None

    def features(self, n_features: int, n_users: int | None = None) -> FourierFeatures:
        """The public features of rows with so many columns: line 1."""
        wanted = self.n_components
        if is_auto(wanted):
            if n_users is None:
                raise InvalidArgument(
                    'n_components="auto" follows from the public number of people, which a single '
                    "device does not know. Pass n_users, or a whole number as n_components."
                )
            people = check_whole("n_users", n_users, "it is the number of people")
            epsilon = check_budget(self.epsilon, self.delta).epsilon
            wanted = 2 * math.ceil(epsilon * math.sqrt(n_features * people) / 2)
        return self._features_of(
            check_whole("n_components", wanted, "a device sends so many", 2), n_features
        )

    def _features_of(self, components: int, n_features: int) -> FourierFeatures:
        if components % 2:
            raise InvalidArgument(
                f"n_components={components} must be even: features are pairs of a cosine and a "
                "sine, so that every row has length 1. Pass the next even number."
            )
        if not (callable(self.kernel) or self.kernel in KERNELS):
            raise InvalidArgument(
                f"kernel={self.kernel!r} is not known: its Fourier transform must be sampled. "
                f"Use one of {list(KERNELS)}, or a function that samples it."
            )
        gamma = check_positive("gamma", self.gamma, "it is the kernel's inverse width")
        seed = check_whole("feature_seed", self.feature_seed, "it names the public features", 0)
        return FourierFeatures(n_features, components, self.kernel, gamma, seed)

    def _map(self, n_features: int, n_users: int | None) -> FourierFeatures:
        return self.features(n_features, n_users)

    def _server_map(self, width: int, n_features: int) -> FourierFeatures:
        if width != self.n_components and not isinstance(self.n_components, str):
            raise InvalidArgument(
                f"The reports have {width} coordinates and n_components={self.n_components}: "
                "devices and server must agree on it. Pass the number that the devices had."
            )
        return self._features_of(width, n_features)

    def _rows(self, X: Any, public: FourierFeatures) -> np.ndarray:
        return public.rows(X)

    def distance_bound(
        self, n_users: int, n_features: int, points: int = 1, failure: float = 0.05
    ) -> float:
        """What predictions differ from those with the kernel itself: Corollary 2, second half.

        With probability 1 - failure at most this, at `points` rows that are fixed before the
        features are drawn. The kernel's predictions minimise formula (6) on the same people,
        without noise.
        """
        half = check_open_unit("failure", failure) / 2
        people = check_whole("n_users", n_users, "it is the number of people")
        others = check_whole("points", points, "predictions are compared there")
        C = check_positive("C", self.C, "it is the weight of the loss against the ridge")
        public = self.features(n_features, people)
        vector, target = self.vectors(public)
        gram, cross = moment_errors(vector, target, people, public.dimension, half)
        longest = min(math.sqrt(C), C)  # of the coefficients without noise
        noise = C * (cross + (2 * gram + self._floor(vector, public.dimension, people)) * longest)
        distortion = feature_distortion(public.dimension, people + others, half)
        return kernel_distance(distortion, dual_norm=C, C=C) + noise

    def _floor(self, vector: PrivateVector, dimension: int, people: int) -> float:
        multiple = check_number("floor", self.floor)
        if not multiple >= 0:
            raise InvalidArgument(f"floor={self.floor!r} must not be negative: pass 0 or more.")
        return multiple * vector.variance * math.sqrt(dimension / people)

    def fit_moments(
        self, n_users: int, second: Any, cross: Any, target_second: float, *, n_features: int
    ) -> Self:
        """The fit that `n_users` people would give, from the moments of their features alone.

        For benchmarks, as `PaperL1Regression.fit_moments`.

        Parameters
        ----------
        n_users : int
        second : array-like of shape (n_components, n_components)
            The mean of f f' over people, for the features f of ``features(n_features).rows``.
        cross : array-like of shape (n_components,)
            The mean of y f.
        target_second : float
            The mean of y^2.
        n_features : int
            The number of columns of a row.
        """
        public = self.features(n_features, n_users)
        return self._simulated(n_users, second, cross, target_second, public)

    def predict(self, X: Any) -> np.ndarray:
        """The fitted function at each row."""
        return self._features.rows(X) @ self.coef_

    def _set_model(
        self, total: Moments, public: FourierFeatures, device_noise: Noise | None
    ) -> Self:
        vector, target = self.vectors(public)
        width = len(total.cross)
        ridge = 1 / check_positive("C", self.C, "it is the weight of the loss against the ridge")
        floor = self._floor(vector, width, total.n)
        q = raise_eigenvalues(total.debiased(vector.variance) / total.n, floor)  # line 7
        self.coef_ = np.linalg.solve(q + ridge * np.eye(width), total.cross / total.n)  # line 8
        self._features = public
        self.sigma_, self.target_sigma_ = vector.sigma, target.sigma
        self.privacy_ = self._statement(
            [(vector, 1), (target, 1)],
            {
                "people": total.n,
                "columns": public.frequencies.shape[1],
                "random features": width,
                "kernel": f"{kernel_name(self.kernel)}, gamma {self.gamma:g}",
                "seed of the features": self.feature_seed,
                "C": self.C,
            },
            device_noise,
            composition=self.composition,
        )
        return self
