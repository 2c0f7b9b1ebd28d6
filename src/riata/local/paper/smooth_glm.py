"""Algorithms 5 and 6: smooth generalised linear models by Chebyshev expansion."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from riata.arguments import check_known, check_positive, check_whole
from riata.errors import InvalidArgument
from riata.local.paper.base import (
    AT_ONCE,
    PaperLearner,
    check_rows,
    finite_rows,
    of_several,
    one_row,
)
from riata.local.paper.chebyshev import LOSSES, GeneralisedLinear
from riata.local.paper.private_vector import PrivateVector, split_budget
from riata.local.paper.sigm import Sigm, sigm_steps
from riata.mechanisms.noise import Noise
from riata.numeric import row_slices
from riata.privacy.budget import check_number

#: Which copies a device sends.
COPIES = ("paper", "needed")


@dataclass(frozen=True, eq=False)
class Synopses:
    """What devices send in Algorithm 5: of one person, or of many in rows.

    Attributes
    ----------
    z0 : ndarray of shape (n, n_features)
        The private copy of x that gives a gradient its direction.
    zy : ndarray of shape (n, copies)
        Private copies of y, one for each power that needs it.
    z : ndarray of shape (n, copies, n_features)
        Private copies of x, k of them for the k-th power.
    """

    z0: np.ndarray
    zy: np.ndarray
    z: np.ndarray

    def __getitem__(self, people: int | slice) -> Synopses:
        return Synopses(self.z0[people], self.zy[people], self.z[people])

    def __len__(self) -> int:
        return len(self.z0)

    @classmethod
    def stacked(cls, reports: list[Synopses]) -> Synopses:
        return cls(*(np.stack([getattr(r, k) for r in reports]) for k in ("z0", "zy", "z")))


@dataclass(frozen=True)
class Expansion:
    """The polynomial that stands for the slope of the loss, and how its parts are sent.

    Attributes
    ----------
    c1, c2 : ndarray of shape (degree + 1,)
        Coefficients of the powers of x . w.
    radius : float
        r: coefficients of the model are r w, for w in the unit ball.
    x_powers, y_powers : tuple of int
        The powers with copies of x, and those with a copy of y.
    vectors : tuple of PrivateVector
        How z_0, a copy of y and another copy of x are sent.
    """

    c1: np.ndarray
    c2: np.ndarray
    radius: float
    x_powers: tuple[int, ...]
    y_powers: tuple[int, ...]
    vectors: tuple[PrivateVector, PrivateVector, PrivateVector]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many vectors of each kind a device sends."""
        return 1, len(self.y_powers), sum(self.x_powers)

    def gradients(self, w: np.ndarray, sent: Synopses) -> np.ndarray:
        """Unbiased estimates of r m(x . w, y) x, one for each person: lines 4 to 8."""
        inner = sent.z @ w
        slopes = np.full(len(sent), self.c2[0])
        first = 0
        for k in self.x_powers:
            t = inner[:, first : first + k].prod(axis=1)
            first += k
            slope = np.full(len(sent), self.c2[k])
            if k in self.y_powers:
                slope -= self.c1[k] * sent.zy[:, self.y_powers.index(k)]
            slopes += slope * t
        if 0 in self.y_powers:
            slopes -= self.c1[0] * sent.zy[:, self.y_powers.index(0)]
        return self.radius * slopes[:, None] * sent.z0

    def slope(self, t: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The polynomial itself, at x . w = t."""
        powers = np.power.outer(t, np.arange(len(self.c1)))
        return powers @ self.c2 - y * (powers @ self.c1)

    def gradient_sigma(self, n_features: int) -> float:
        """A bound on the standard deviation of a gradient, over the unit ball."""
        z0, zy, z = (vector.variance for vector in self.vectors)
        grid = np.linspace(-1, 1, 201)
        most = max(float(np.abs(self.slope(grid, np.full(201, y))).max()) for y in (-1.0, 1.0))
        squares = most**2
        for k in {0, *self.x_powers}:
            size = abs(self.c2[k]) + abs(self.c1[k])
            squares += (size**2 + self.c1[k] ** 2 * zy) * (1 + z) ** k
        return self.radius * math.sqrt(squares * (1 + n_features * z0))


class SampleSize(NamedTuple):
    """The degree, the deviation of one gradient, and the number of people for an excess loss."""

    degree: int
    sigma: float
    people: int


@dataclass(eq=False, repr=False, kw_only=True)
class PaperSmoothGLM(PaperLearner):
    """Algorithms 5 and 6 of Zheng, Mou and Wang (2017), with their errata applied.

    The slope of the loss is a polynomial in x . w. Each device sends fresh private copies of its
    row and target, so that products of them are unbiased for the powers; the server takes one
    inexact stochastic gradient step for each person. A reference: its variance grows like
    (p^2 sigma)^(2p) with the degree p.

    Parameters
    ----------
    epsilon, delta : float
        The budget of each device. delta must be positive.
    loss : {"logistic", "squared", "poisson"} or GeneralisedLinear, default="logistic"
        "logistic" takes targets -1 and 1, "squared" [-1, 1], "poisson" means in [0, 1]. Any other
        smooth loss -y h1(m) + h2(m) is a `GeneralisedLinear`, from h1 and h2 or their derivatives.
    degree : int, default=1
        The degree p of the expansion. Odd for the logistic loss, whose slope is odd.
    radius : float, default=1.0
        The largest Euclidean length of the coefficients: r of the paper.
    copies : {"paper", "needed"}, default="paper"
        "paper" sends copies for every power; "needed" only those whose coefficient is not 0, with
        the same parts of the budget shared by fewer.
    composition : {"basic", "exact"}, default="basic"
        As for `PaperL1Regression`.
    batch : int, default=1
        How many people share a step. The paper has 1; more is faster on a computer.
    power : float, default=1.0
        The speed of SIGM, from 1 to 2.
    random_state : int, optional
        Makes a fit reproducible, for tests. Such a model is marked as not private.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    sigma_ : tuple of float
        The noise on z_0, on copies of y and on other copies of x.
    gradient_sigma_ : float
        A bound on the standard deviation of one person's gradient.
    n_iter_ : int
    privacy_ : Statement

    Notes
    -----
    *Privacy.* Each person's synopsis is (epsilon, delta)-locally private, whatever the row: every
    copy is a private vector with a part of the budget, and the parts sum to 1.

    *Differences from the paper.* See docs/algorithms/local_paper.md: the calibration, a_0 / 2 in
    the expansion, r once, the copy of y that belongs to each power, and odd degrees.
    """

    algorithm = "smooth generalised linear model (Zheng, Mou, Wang 2017, Algorithms 5 and 6)"

    epsilon: float
    delta: float
    loss: str | GeneralisedLinear = "logistic"
    degree: int = 1
    radius: float = 1.0
    copies: str = "paper"
    composition: str = "basic"
    batch: int = 1
    power: float = 1.0
    random_state: int | None = None

    def _loss(self) -> GeneralisedLinear:
        if isinstance(self.loss, GeneralisedLinear):
            return self.loss
        if self.loss not in LOSSES:
            raise InvalidArgument(
                f"loss={self.loss!r} is not known: its slope must be expanded. "
                f"Use one of {list(LOSSES)}, or a GeneralisedLinear."
            )
        return LOSSES[self.loss]

    def sample_size(self, alpha: float, n_features: int) -> SampleSize:
        """What an excess loss of at most `alpha` takes: Lemmas 8, 9 and 10, with their constants.

        The degree is the smallest with which the oracle is inexact by at most alpha / 2 (both
        expansions are off by at most alpha / (16 radius)), sigma is the bound on the standard
        deviation of a gradient at this degree, and `sigm_risk` of one step for each person is the
        other half. Proven for people that are drawn independently, power 1 and batches of 1.
        """
        alpha = check_positive("alpha", alpha, "it is the excess of the loss")
        radius = check_positive("radius", self.radius, "it bounds the coefficients")
        columns = check_whole("n_features", n_features, "it is the number of columns")
        loss = self._loss()
        degree = loss.degree(radius, alpha / (16 * radius))
        sigma = clone(self).set_params(degree=degree).expansion().gradient_sigma(columns)
        smoothness = radius**2 * loss.smoothness(radius)
        return SampleSize(degree, sigma, sigm_steps(alpha / 2, smoothness, sigma))

    def expansion(self) -> Expansion:
        """The public polynomial, and the noise of each vector: line 1 of Algorithm 5."""
        loss = self._loss()
        degree = check_whole("degree", self.degree, "it is the degree of a polynomial")
        if loss.odd and degree % 2 == 0:
            raise InvalidArgument(
                f"degree={degree} must be odd for loss={self.loss!r}: the slope is an odd "
                "function, so an even power adds noise and nothing else. Pass one less or more."
            )
        check_known("copies", self.copies, COPIES, "it says which copies a device sends")
        radius = check_positive("radius", self.radius, "it bounds the coefficients")
        c1, c2 = loss.coefficients(radius, degree)
        y_powers = tuple(range(degree + 1))
        x_powers = tuple(range(1, degree + 1))
        if self.copies == "needed":
            y_powers = tuple(k for k in y_powers if c1[k] != 0)
            x_powers = tuple(k for k in x_powers if c1[k] != 0 or c2[k] != 0)
        y_powers, x_powers = y_powers or (0,), x_powers or (1,)
        n_y, n_x = len(y_powers), sum(x_powers)
        shares = [(1 / 4, 1), (1 / (4 * n_y), n_y), (1 / (2 * n_x), n_x)]
        z0, zy, z = map(
            PrivateVector, split_budget(shares, self.epsilon, self.delta, self.composition)
        )
        return Expansion(c1, c2, radius, x_powers, y_powers, (z0, zy, z))

    def report(self, x: Any, y: float, *, noise: Noise) -> Synopses:
        """What the device of one person sends: Algorithm 5."""
        return self._reports(one_row(x), np.array([y]), self.expansion(), noise)[0]

    def _reports(self, X: Any, y: np.ndarray, expansion: Expansion, noise: Noise) -> Synopses:
        X, n = finite_rows(X), len(y)
        y = np.clip(finite_rows(y), self._loss().least_target, 1.0)
        x_vector, y_vector, copy = expansion.vectors
        z0 = x_vector.reports(X, noise)
        zy = np.hstack([y_vector.reports(y[:, None], noise) for _ in expansion.y_powers])
        many = np.empty((n, expansion.counts[2], X.shape[1]))
        for j in range(expansion.counts[2]):
            many[:, j] = copy.reports(X, noise)
        return Synopses(z0, zy, many)

    def learn(self, reports: Synopses | list[Synopses]) -> Self:
        """What the server does with the synopses of all people: Algorithm 6."""
        if isinstance(reports, list):
            reports = Synopses.stacked(reports)
        expansion = self.expansion()
        self._check_copies(reports, expansion)
        return self._set_model(iter([reports]), reports.z0.shape[1], expansion, None)

    def _check_copies(self, reports: Synopses, expansion: Expansion) -> None:
        found = reports.z0.ndim, reports.zy.shape[-1], reports.z.shape[1:2]
        if found != (2, expansion.counts[1], expansion.counts[2:]):
            raise InvalidArgument(
                f"The reports have {found[1]} copies of y and {found[2]} of x: at "
                f"degree={self.degree} each person sends {expansion.counts[1]} and "
                f"{expansion.counts[2]}. Pass the degree and the copies that the devices had."
            )

    def learn_groups(self, groups: Mapping[float, Synopses]) -> Self:
        """The same where people chose an epsilon of their own, for public reasons.

        Every person's gradient is unbiased, whatever their noise. The steps are made for the root
        mean square of the deviations.

        Parameters
        ----------
        groups : mapping of float to Synopses
            Synopses by the epsilon that their devices had; all else is as here.
        """
        others = self._at_each(groups)
        squares = people = 0.0
        for other, sent in zip(others.values(), groups.values(), strict=True):
            other._check_copies(sent, other.expansion())
            sigma = other.expansion().gradient_sigma(sent.z0.shape[1])
            squares, people = squares + len(sent) * sigma**2, people + len(sent)
        loudest = others[max(others)]
        sizes = {sent.z0.shape[1] for sent in groups.values()}
        if len(sizes) != 1:
            raise InvalidArgument(f"Rows had {sorted(sizes)} columns: all must have as many.")
        self._set_model(
            iter(groups.values()), sizes.pop(), loudest.expansion(), None,
            math.sqrt(squares / people),
        )  # fmt: skip
        self.privacy_ = of_several(self.privacy_, others)
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Simulate every device, then the server.

        Parameters
        ----------
        X : array-like or sparse of shape (n_people, n_features)
        y : array-like of shape (n_people,)
        """
        X, y = check_rows(X, y)
        noise, expansion = self._noise(), self.expansion()
        several = check_whole("batch", self.batch, "it is a number of people")

        def blocks() -> Iterator[Synopses]:
            width = X.shape[1] * (1 + expansion.counts[2]) * several
            for part in row_slices(math.ceil(X.shape[0] / several), width, AT_ONCE):
                few = slice(part.start * several, part.stop * several)
                yield self._reports(X[few], y[few], expansion, noise)

        return self._set_model(blocks(), X.shape[1], expansion, noise)

    def _set_model(
        self,
        blocks: Iterator[Synopses],
        n_features: int,
        expansion: Expansion,
        device_noise: Noise | None,
        sigma: float | None = None,
    ) -> Self:
        several = check_whole("batch", self.batch, "it is a number of people")
        power = check_number("power", self.power)
        if not 1 <= power <= 2:
            raise InvalidArgument(f"power={self.power!r} must lie between 1 and 2.")
        smoothness = expansion.radius**2 * self._loss().smoothness(expansion.radius)
        sigma = expansion.gradient_sigma(n_features) if sigma is None else sigma
        method = Sigm(n_features, smoothness, sigma / math.sqrt(several), power)
        n = steps = 0
        for block in blocks:
            for start in range(0, len(block), several):
                few = block[start : start + several]
                method.step(expansion.gradients(method.point, few).mean(axis=0))
                steps += 1
            n += len(block)
        self.coef_ = expansion.radius * method.answer
        self.sigma_ = tuple(vector.sigma for vector in expansion.vectors)
        self.gradient_sigma_, self.n_iter_ = sigma, steps
        self.privacy_ = self._statement(
            list(zip(expansion.vectors, expansion.counts, strict=True)),
            {
                "people": n,
                "columns": n_features,
                "loss": self.loss if isinstance(self.loss, str) else "given",
                "degree": self.degree,
                "radius": self.radius,
            },
            device_noise,
            composition=self.composition,
        )
        return self
