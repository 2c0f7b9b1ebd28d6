"""Linear regression from noisy moments: a spectral filter whose strength the evidence sets.

With the noisy matrix A + E in the place of A, the equation A theta = b reads
b_hat = (A + E) theta + noise, whose noise has variance s^2 + t^2 |theta|^2 in each coordinate: s
from b, t from an entry of E. In the eigenvectors of the noisy matrix, with a prior
theta ~ N(0, w^2 I), the posterior mean divides by lambda + (s^2 / w^2 + c t^2 d) / lambda: small
eigenvalues are not trusted below t sqrt(d), and nothing is trusted where b is noise. One number,
w, is chosen by the likelihood of b; where w = 0 explains it as well, there is no signal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from riata.local.learners.moments import Covariances

#: How much of the noise of the eigenvalues counts: little, where few people have answered. A few
#: columns count as four more, because the noise of a single variance is not averaged.
TRUST, MORE = 0.25, 4
#: Twice the gain in log likelihood that a signal must show: three standard errors.
EVIDENCE = 3.0**2
_WIDTHS = np.geomspace(1e-3, 1e3, 241)


@dataclass(frozen=True)
class Slopes:
    """Coefficients of the centred vectors, and what speaks for them.

    Attributes
    ----------
    theta : ndarray
    variances : ndarray
        Mean squares of the errors of theta, what shrinking takes away included.
    evidence : float
        Twice the gain in log likelihood over no signal at all.
    filter : SpectralFilter or None
        How theta came about; None where there is no signal, or other steps came after it.
    """

    theta: np.ndarray
    variances: np.ndarray
    evidence: float
    filter: SpectralFilter | None = None

    @property
    def signal(self) -> bool:
        return bool(np.any(self.theta))


@dataclass(frozen=True)
class SpectralFilter:
    """theta = V (gains * V'b), where V are the eigenvectors of the noisy matrix.

    These are not those of the matrix without noise. Where noise of the size t spreads the
    eigenvalues by r = t sqrt(d), an eigenvalue l became l + r^2 / l, and its eigenvector v has
    v'A v = l - r^2 / l and v'A A v = l^2 - r^2 left of it. Below 2 r eigenvectors are noise,
    and share what is left of the trace.

    Attributes
    ----------
    vectors, gains : ndarray
    vAv, vAAv : ndarray
        v'A v and v'A A v.
    width : float
        How large a coefficient is, by the likelihood of b where this is counted with.
    noise : float
        Of a coordinate of b.
    """

    vectors: np.ndarray
    gains: np.ndarray
    vAv: np.ndarray
    vAAv: np.ndarray
    width: float
    noise: float

    def squares(self, scale: float, wanted: float) -> np.ndarray:
        """Mean squares of scale * theta - wanted * truth in the direction of each eigenvector.

        For truths as large as `width`.
        """
        gains = scale * self.gains
        squares = gains**2 * (self.vAAv * self.width**2 + self.noise**2)
        squares += (wanted**2 - 2.0 * wanted * gains * self.vAv) * self.width**2
        return np.maximum(squares, 0.0)

    def variances(self, scale: float, wanted: float) -> np.ndarray:
        """The same for each coordinate."""
        return (self.vectors**2) @ self.squares(scale, wanted)

    @property
    def unexplained(self) -> float:
        """How much more the truth explains than theta does, as far as is known."""
        squares = self.width**2 * (1.0 - self.gains * self.vAv) ** 2
        return float(self.vAv @ squares)

    def apply(self, b: np.ndarray) -> np.ndarray:
        return self.vectors @ (self.gains * (self.vectors.T @ b))


def ridge(moments: Covariances, wanted: float = EVIDENCE) -> Slopes:
    """The posterior mean, or 0 where there is less evidence than is wanted."""
    size = len(moments.cross)
    values, vectors = np.linalg.eigh((moments.gram + moments.gram.T) / 2)
    values = np.maximum(values, 0.0)
    observed = (vectors.T @ moments.cross) ** 2
    noise = moments.cross_noise
    squares = values**2 + TRUST * moments.gram_noise**2 * (size + MORE)
    width, evidence = _most_likely_width(squares, observed, noise)
    if evidence < wanted:
        return Slopes(np.zeros(size), np.zeros(size), evidence)
    gains = values * _mean_gains(squares, observed, noise, (wanted - EVIDENCE) / 2.0)
    vAv, vAAv = _noiseless_forms(values, float(np.trace(moments.gram)), moments.gram_noise)
    likely, _ = _most_likely_width(vAAv, observed, noise)
    likely = max(width, likely)
    resolved = vAAv * likely**2 / (vAAv * likely**2 + noise**2)
    likely *= math.sqrt(
        1.0 + 1.0 / max(float(resolved @ resolved), 1.0)
    )  # a width from few directions
    spectral = SpectralFilter(vectors, gains, vAv, vAAv, likely, noise)
    return Slopes(spectral.apply(moments.cross), spectral.variances(1.0, 1.0), evidence, spectral)


def _noiseless_forms(
    values: np.ndarray, trace: float, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """v'A v and v'A A v for the eigenvectors of the noisy matrix; see `SpectralFilter`.

    An eigenvalue is spread by the noise between its own direction and those of smaller ones.
    """
    size = len(values)
    radius = noise * np.sqrt(np.arange(1, size + 1))  # eigenvalues ascend
    above = values > 2.0 * radius
    true = (values + np.sqrt(np.maximum(values**2 - 4.0 * radius**2, 0.0))) / 2.0
    part = np.where(above, 1.0 - (radius / np.where(above, true, 1.0)) ** 2, 0.0)
    vAv = part * true
    rest = max(trace - float(vAv.sum()), 0.0) / max(1, int(np.sum(~above)))
    vAv = np.where(above, vAv, rest)
    return vAv, vAv**2 + part * noise**2 * size


def _mean_gains(
    squares: np.ndarray, observed: np.ndarray, noise: float, doubt: float
) -> np.ndarray:
    """The mean of width^2 / (squares * width^2 + noise^2) over what the width may be.

    Widths are as likely beforehand as no signal at all, less `doubt` on a logarithmic scale.
    """
    widths = np.append(_WIDTHS, 0.0)[:, None]
    spread = squares * widths**2 + noise**2
    logs = -0.5 * np.sum(observed / spread + np.log(spread), axis=1)
    logs[-1] += doubt + math.log(len(_WIDTHS))
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum() @ (widths**2 / spread))


def _most_likely_width(
    squares: np.ndarray, observed: np.ndarray, noise: float
) -> tuple[float, float]:
    """The width for which `observed` has the variances squares * width^2 + noise^2.

    With its evidence: twice the gain in log likelihood over a width of 0.
    """

    def likelihood(width: float) -> float:
        spread = squares * width**2 + noise**2
        return -float(np.sum(observed / spread + np.log(spread)))

    found = [likelihood(width) for width in _WIDTHS]
    best = int(np.argmax(found))
    return float(_WIDTHS[best]), max(0.0, found[best] - likelihood(0.0))
