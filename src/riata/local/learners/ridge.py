"""Linear regression from noisy moments: a spectral filter whose strength the evidence sets.

With the noisy matrix A + E in the place of A, the equation A theta = b reads
b_hat = (A + E) theta + noise, whose noise has variance s^2 + t^2 |theta|^2 in each coordinate: s
from b, t from an entry of E. In the eigenvectors of the noisy matrix, with a prior
theta ~ N(0, w^2 I), the posterior mean divides by lambda + (s^2 / w^2 + c t^2 d) / lambda: small
eigenvalues are not trusted below t sqrt(d), and nothing is trusted where b is noise. One number,
w, is chosen by the likelihood of b; where w = 0 explains it as well, there is no signal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.local.learners.moments import Centered

#: How much of the noise of the eigenvalues counts: 0.5 was best for rows of decaying spectrum. A
#: few columns count as eight more, because the noise of a single variance is not averaged.
TRUST, MORE = 0.5, 8
#: Twice the gain in log likelihood that a signal must show: 3.5 standard errors.
EVIDENCE = 3.5**2
_WIDTHS = np.geomspace(1e-3, 1e3, 241)


@dataclass(frozen=True)
class Slopes:
    """Coefficients of the centred vectors, their posterior covariance, and what speaks for them.

    Attributes
    ----------
    theta : ndarray
    covariance : ndarray
    evidence : float
        Twice the gain in log likelihood over no signal at all.
    """

    theta: np.ndarray
    covariance: np.ndarray
    evidence: float

    @property
    def signal(self) -> bool:
        return bool(np.any(self.theta))


def ridge(moments: Centered, wanted: float = EVIDENCE) -> Slopes:
    """The posterior mean, or 0 where there is less evidence than is wanted."""
    size = len(moments.cross)
    values, vectors = np.linalg.eigh((moments.gram + moments.gram.T) / 2)
    values = np.maximum(values, 0.0)
    seen = vectors.T @ moments.cross
    floor = TRUST * moments.gram_noise**2 * (size + MORE)

    def variances(width: float) -> np.ndarray:
        return (values**2 + floor) * width**2 + moments.cross_noise**2

    def likelihood(width: float) -> float:
        spread = variances(width)
        return -float(np.sum(seen**2 / spread + np.log(spread)))

    widths = [likelihood(width) for width in _WIDTHS]
    best = int(np.argmax(widths))
    width = float(_WIDTHS[best])
    evidence = max(0.0, widths[best] - likelihood(0.0))
    if evidence < wanted:
        return Slopes(np.zeros(size), np.zeros((size, size)), evidence)
    spread = variances(width)
    theta = vectors @ (seen * values * width**2 / spread)
    left = width**2 * (1.0 - values**2 * width**2 / spread)
    return Slopes(theta, (vectors * left) @ vectors.T, evidence)
