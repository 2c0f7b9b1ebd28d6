"""Algorithm 4: kernel ridge regression by random Fourier features."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from riata.errors import InvalidArgument
from riata.local.arguments import check_positive, check_whole
from riata.local.learners.moments import raise_eigenvalues
from riata.local.paper.base import finite_rows
from riata.local.paper.moment_learner import MomentLearner
from riata.local.paper.moments import Moments
from riata.mechanisms.noise import Noise
from riata.privacy.budget import check_number
from riata.public import public_normals

KERNELS = ("rbf", "laplacian")


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
    kernel : {"rbf", "laplacian"}
        exp(-gamma ||x - x'||_2^2) or exp(-gamma ||x - x'||_1).
    gamma : float
    seed : int
        Names the public frequencies.
    """

    def __init__(
        self, n_features: int, n_components: int, kernel: str, gamma: float, seed: int
    ) -> None:
        self.dimension = n_components
        shape = (n_components // 2, n_features)
        label = f"riata paper kernel {kernel} {shape} {seed}"
        normals = public_normals(shape, label)
        if kernel == "laplacian":  # a Cauchy law is a quotient of two normal ones
            self.frequencies = gamma * normals / public_normals(shape, label + " below")
        else:
            self.frequencies = math.sqrt(2 * gamma) * normals

    def rows(self, X: Any) -> np.ndarray:
        """The features of each row: line 3."""
        phases = finite_rows(X) @ self.frequencies.T
        scale = 1 / math.sqrt(len(self.frequencies))
        return np.hstack([np.cos(phases), np.sin(phases)]) * scale


class PaperKernelRidge(MomentLearner):
    """Algorithm 4 of Zheng, Mou and Wang (2017), with its errata applied.

    Each device sends a private vector of its random Fourier features and one of its target. The
    server takes the noise out of the Gram matrix, raises eigenvalues that are below the noise and
    solves a ridge regression.

    Parameters
    ----------
    epsilon, delta : float
        The budget of each device. delta must be positive.
    n_components : int, default=100
        The number of random features, even: d_p of the paper.
    kernel : {"rbf", "laplacian"}, default="rbf"
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

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        n_components: int = 100,
        kernel: str = "rbf",
        gamma: float = 1.0,
        C: float = 1.0,
        floor: float = 2.0,
        composition: str = "basic",
        feature_seed: int = 0,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.floor = floor
        self.composition = composition
        self.feature_seed = feature_seed
        self.random_state = random_state

    def features(self, n_features: int) -> FourierFeatures:
        """The public features of rows with so many columns: line 1."""
        components = check_whole("n_components", self.n_components, "a device sends so many", 2)
        if components % 2:
            raise InvalidArgument(
                f"n_components={components} must be even: features are pairs of a cosine and a "
                "sine, so that every row has length 1. Pass the next even number."
            )
        if self.kernel not in KERNELS:
            raise InvalidArgument(
                f"kernel={self.kernel!r} is not known: its Fourier transform must be sampled. "
                f"Use one of {list(KERNELS)}."
            )
        gamma = check_positive("gamma", self.gamma, "it is the kernel's inverse width")
        seed = check_whole("feature_seed", self.feature_seed, "it names the public features", 0)
        return FourierFeatures(n_features, components, self.kernel, gamma, seed)

    def _map(self, n_features: int, n_users: int | None) -> FourierFeatures:
        return self.features(n_features)

    def _server_map(self, width: int, n_features: int) -> FourierFeatures:
        if width != self.n_components:
            raise InvalidArgument(
                f"The reports have {width} coordinates and n_components={self.n_components}: "
                "devices and server must agree on it. Pass the number that the devices had."
            )
        return self.features(n_features)

    def _rows(self, X: Any, public: FourierFeatures) -> np.ndarray:
        return public.rows(X)

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
        public = self.features(n_features)
        return self._simulated(n_users, second, cross, target_second, public)

    def predict(self, X: Any) -> np.ndarray:
        """The fitted function at each row."""
        return self._features.rows(X) @ self.coef_

    def _set_model(
        self, total: Moments, public: FourierFeatures, device_noise: Noise | None
    ) -> Self:
        vector, target = self.vectors(public)
        width = len(total.cross)
        multiple = check_number("floor", self.floor)
        if not multiple >= 0:
            raise InvalidArgument(f"floor={self.floor!r} must not be negative: pass 0 or more.")
        ridge = 1 / check_positive("C", self.C, "it is the weight of the loss against the ridge")
        floor = multiple * vector.variance * math.sqrt(width / total.n)
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
                "kernel": f"{self.kernel}, gamma {self.gamma:g}, seed {self.feature_seed}",
                "C": self.C,
            },
            device_noise,
            composition=self.composition,
        )
        return self
