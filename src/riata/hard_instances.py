"""Data on which every private LASSO must fail: section 3 of Talwar, Thakurta and Zhang (2015).

Nothing here is private. The randomness makes instances and is public, and the proofs are in
docs/algorithms/lower_bound.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import hadamard
from scipy.special import beta, ndtr

from riata.errors import InvalidArgument
from riata.privacy.budget import Budget, check_number
from riata.public import public_normals
from riata.sets import L1Ball

#: The largest share of a gradient step's length that may be left when the optimum is computed.
_TOLERANCE = 1e-13

_MOST_STEPS = 100_000


class Consensus(NamedTuple):
    """The columns in which all code rows of a database agree, and the value they agree on."""

    columns: np.ndarray
    signs: np.ndarray


class Trace(NamedTuple):
    """Accusation scores: mean 0 and variance 1 for a row that the model does not depend on."""

    members: np.ndarray
    outsiders: np.ndarray


@dataclass(frozen=True)
class HardInstance:
    """Neighbouring databases that share one fingerprinting code: hard for every private LASSO.

    Database ``i`` holds the rows of a padded Tardos code except row ``i``, all with label 1, and
    `repeats` copies of an orthogonal block with label 0. To fit it well a model needs the signs
    of most consensus columns, and with them it gives away which rows of the code it has seen. The
    mean squared loss over the unit l1 ball is

        L(theta; D_i) = (w / n) * (mean_j (x_j . theta - 1)^2 + tau * p * ||theta||_2^2).

    Nothing large is made before it is asked for.

    Parameters
    ----------
    code_rows : int
        w, the rows of the code in each database. The code has one more.
    n_features : int
        p. A power of two wastes no rows.
    repeats : int, default=1
        Copies of the orthogonal block, whose size is the next power of two from p.
    code_share : float, default=0.2
        The probability that a column belongs to the code. The others are padding: all 1 or all
        -1.
    seed : int, default=0
        Which instance. Everybody who knows it can make the same one.

    Notes
    -----
    *Differences from the paper.* The constants are free: the printed ones need p > 10^10. Each
    column decides by itself whether it is padding, where the paper permutes fixed numbers of
    them, and biases have the whole arcsine distribution, where Tardos cuts its ends off; both make
    the proof exact. The lower bound is an average over instances, and must be: with the code fixed
    first, as printed, a model that ignores its data can know the signs.

    References
    ----------
    Talwar, Thakurta, Zhang (2015). Nearly-optimal private LASSO. Section 3.
    Dwork, Talwar, Thakurta, Zhang (2014). Analyze Gauss. Section 5.
    Tardos (2003). Optimal probabilistic fingerprint codes.

    Examples
    --------
    >>> from riata.hard_instances import HardInstance
    >>> instance = HardInstance.make(code_rows=6, n_features=64, tau=0.2)
    >>> X, y = instance.data(0)
    >>> X.shape
    (70, 64)
    """

    code_rows: int
    n_features: int
    repeats: int = 1
    code_share: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("code_rows", 1), ("n_features", 1), ("repeats", 1), ("seed", 0)):
            value = getattr(self, name)
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not whole or value < least:
                raise InvalidArgument(
                    f"{name}={value!r} must be a whole number of at least {least}: it counts the "
                    "pieces that an instance is made of. Pass a plain int."
                )
        if not 0 < check_number("code_share", self.code_share) <= 1:
            raise InvalidArgument(
                f"code_share={self.code_share!r} must be above 0 and at most 1: without columns "
                "of the code the rows are all the same. Pass a share such as 0.2."
            )

    @classmethod
    def make(
        cls,
        code_rows: int,
        n_features: int,
        tau: float = 0.2,
        code_share: float = 0.2,
        seed: int = 0,
    ) -> Self:
        """The instance whose `tau` is nearest to the one asked for.

        Parameters
        ----------
        code_rows, n_features : int
        tau : float, default=0.2
            The weight of the orthogonal block. The paper's is 0.001.
        code_share : float, default=0.2
        seed : int, default=0
        """
        if not 0 < check_number("tau", tau) < math.inf:
            raise InvalidArgument(
                f"tau={tau!r} must be a positive number: it is the size of the orthogonal block, "
                "k / (w p). Pass a number such as 0.2."
            )
        one = cls(code_rows, n_features, 1, code_share, seed)
        return replace(one, repeats=max(1, round(tau / one.tau)))

    @classmethod
    def hardest(cls, n_rows: int, epsilon: float, delta: float = 0.0, seed: int = 0) -> Self:
        """The instance of at most `n_rows` rows with the largest lower bound, from a grid.

        Parameters
        ----------
        n_rows : int
        epsilon, delta : float
            The budget that the models it is hard for are fitted with.
        seed : int, default=0
        """
        if check_number("n_rows", n_rows) < 16:
            raise InvalidArgument(
                f"n_rows={n_rows!r} must be at least 16: smaller data has no hard instance. "
                "Pass a larger number of rows."
            )
        return max(cls._of_size(int(n_rows), seed), key=lambda one: one.lower_bound(epsilon, delta))

    @classmethod
    def _of_size(cls, n_rows: int, seed: int) -> Iterator[Self]:
        widest = int(math.log2(n_rows))
        rows = sorted({round(2 ** (k / 4)) for k in range(4 * widest)})
        for p in (2**k for k in range(2, widest + 1)):
            for w in rows:
                repeats = (n_rows - w) // p
                if 1 <= repeats <= 2 * w:
                    for percent in range(4, 52, 4):
                        yield cls(w, p, repeats, percent / 100, seed)

    @property
    def n_rows(self) -> int:
        """n: the rows of each database."""
        return self.code_rows + self.orthogonal_rows

    @property
    def orthogonal_rows(self) -> int:
        """k: the rows of the orthogonal block with its copies."""
        return self.repeats * self._block

    @property
    def _block(self) -> int:
        return 1 << (self.n_features - 1).bit_length()

    @property
    def tau(self) -> float:
        """k / (w p): what ||theta||_2^2 weighs against one row of the code."""
        return self.orthogonal_rows / (self.code_rows * self.n_features)

    # The data.

    @cached_property
    def from_code(self) -> np.ndarray:
        """Which columns belong to the code. Known to who traces, not to who fits."""
        return self._uniforms("kinds", (self.n_features,)) < self.code_share

    @cached_property
    def biases(self) -> np.ndarray:
        """How often each column is 1: arcsine for the code, 0 or 1 for the padding."""
        angle = self._uniforms("biases", (self.n_features,)) * (math.pi / 2)
        return np.where(self.from_code, np.sin(angle) ** 2, angle > math.pi / 4)

    @cached_property
    def code(self) -> np.ndarray:
        """All w + 1 rows of the code."""
        return self._rows("code", self.code_rows + 1)

    def _rows(self, label: str, count: int) -> np.ndarray:
        draws = self._uniforms(label, (count, self.n_features))
        return np.where(draws < self.biases, 1.0, -1.0)

    def _uniforms(self, label: str, shape: tuple[int, ...]) -> np.ndarray:
        name = f"riata hard instance {self.seed} {self.code_rows} {self.n_features} {label}"
        return ndtr(public_normals(shape, name))

    @cached_property
    def orthogonal(self) -> np.ndarray:
        """The k x p block of 1 and -1 with orthogonal columns."""
        block = hadamard(self._block, dtype=np.int8)[:, : self.n_features]
        return np.tile(block, (self.repeats, 1)).astype(np.float64)

    def data(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels of database i, inside ``Bounds(x=1.0, y=1.0)``."""
        return self._database(self._code_of(i))

    def neighbours(self, i: int, j: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Databases i and j, with rows in an order in which they differ in the first row only."""
        self._check(i), self._check(j)
        if i == j:
            raise InvalidArgument(
                f"i={i!r} and j={j!r} are one database, and neighbours differ in a row. "
                "Pass two different numbers."
            )
        shared = np.delete(self.code, [i, j], axis=0)
        return tuple(self._database(np.vstack([self.code[[row]], shared])) for row in (j, i))

    def _database(self, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels = np.repeat([1.0, 0.0], [len(code), self.orthogonal_rows])
        return np.vstack([code, self.orthogonal]), labels

    def _code_of(self, i: int) -> np.ndarray:
        return np.delete(self.code, self._check(i), axis=0)

    def _check(self, i: int) -> int:
        whole = isinstance(i, (int, np.integer)) and not isinstance(i, bool)
        if not whole or not 0 <= i <= self.code_rows:
            raise InvalidArgument(
                f"i={i!r} names no database: one is made for each row of the code that can be "
                f"left out. Pass a whole number from 0 to {self.code_rows}."
            )
        return int(i)

    # What a model does on it.

    def consensus(self, i: int) -> Consensus:
        """The consensus columns of database i and their signs."""
        means = self._code_of(i).mean(axis=0)
        columns = np.flatnonzero(np.abs(means) == 1)
        return Consensus(columns, means[columns])

    def agreement(self, theta: np.ndarray, i: int) -> float:
        """The share of the consensus columns of database i whose sign theta has."""
        columns, signs = self.consensus(i)
        return float(np.mean(np.sign(self._model(theta)[columns]) == signs))

    def risk(self, theta: np.ndarray, i: int) -> float:
        """The mean squared loss of theta on database i, without making its orthogonal block."""
        theta = self._model(theta)
        residuals = self._code_of(i) @ theta - 1
        return float(residuals @ residuals + self.orthogonal_rows * (theta @ theta)) / self.n_rows

    def least_risk(self, agreement: float, i: int) -> float:
        """No model whose agreement is at most this has a smaller risk on database i.

        Lemma 3.3 of the paper for any tau, any number of consensus columns and any agreement.
        """
        means = self._code_of(i).mean(axis=0)
        agreed = np.abs(means) == 1
        share = (float(agreement) * agreed.sum() + (means[~agreed] ** 2).sum()) / self.n_features
        return self.code_rows / self.n_rows * self.tau / (self.tau + share)

    def minimiser(self, i: int) -> np.ndarray:
        """The model in the unit l1 ball with the smallest risk on database i. NOT PRIVATE."""
        x, k = self._code_of(i), self.orthogonal_rows
        residuals = np.linalg.solve(np.eye(len(x)) + x @ x.T / k, np.ones(len(x)))
        theta = x.T @ residuals / k
        return theta if np.abs(theta).sum() <= 1 else self._projected(x, theta)

    def _projected(self, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Accelerated projected gradient, until the duality gap certifies the model."""
        k, ball = self.orthogonal_rows, L1Ball(1.0)
        smooth = np.linalg.norm(x @ x.T, 2) + k
        momentum = (math.sqrt(smooth) - math.sqrt(k)) / (math.sqrt(smooth) + math.sqrt(k))
        ahead = theta = ball.project(theta)
        for _ in range(_MOST_STEPS):
            before = theta
            theta = ball.project(ahead - (x.T @ (x @ ahead - 1) + k * ahead) / smooth)
            ahead = theta + momentum * (theta - before)
            gradient = x.T @ (x @ theta - 1) + k * theta
            if theta @ gradient + np.abs(gradient).max() <= _TOLERANCE * len(x):
                break
        return theta

    def optimum(self, i: int) -> float:
        """The smallest risk over the unit l1 ball on database i."""
        return self.risk(self.minimiser(i), i)

    def excess_risk(self, theta: np.ndarray, i: int) -> float:
        return self.risk(theta, i) - self.optimum(i)

    def trace(self, theta: np.ndarray, i: int, outsiders: int = 1) -> Trace:
        """Tardos's accusation of each row, from the model alone.

        Parameters
        ----------
        theta : ndarray of shape (n_features,)
        i : int
            The database that the model is accused of having seen.
        outsiders : int, default=1
            How many rows that are not in it to score too: row i, then fresh rows of the code.
        """
        theta, code = self._model(theta), self.from_code & (np.abs(self.biases - 0.5) < 0.5)
        q, weights = self.biases[code], theta[code]
        length = np.linalg.norm(weights)
        weights = weights / length if length > 0 else weights

        def score(rows: np.ndarray) -> np.ndarray:
            return (rows[:, code] - (2 * q - 1)) / np.sqrt(4 * q * (1 - q)) @ weights

        fresh = self._rows("outsiders", max(0, outsiders - 1))
        return Trace(score(self._code_of(i)), score(np.vstack([self.code[[i]], fresh])))

    def _model(self, theta: np.ndarray) -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (self.n_features,):
            raise InvalidArgument(
                f"theta has the shape {theta.shape}, and the instance has {self.n_features} "
                "columns. Pass one coefficient for each column."
            )
        return theta

    # What no private model can do on it.

    @cached_property
    def _all_agree(self) -> float:
        """The probability that w rows agree in a column of the code: 2 E q^w."""
        return 2 * float(beta(self.code_rows + 0.5, 0.5)) / math.pi

    @property
    def consensus_share(self) -> float:
        """The expected share of consensus columns."""
        return 1 - self.code_share * (1 - self._all_agree)

    def lower_bound(self, epsilon: float, delta: float = 0.0) -> float:
        """What the excess risk of every private model is at least, in the mean over instances.

        For each (epsilon, delta)-differentially private algorithm, under replace-one adjacency,
        whose models lie in the unit l1 ball, there are seeds on which its expected excess risk is
        at least this large. 0 says nothing.
        """
        budget = Budget(epsilon, delta)
        w, p, share = self.code_rows, self.n_features, self.code_share
        m, tau = self.consensus_share, self.tau
        spread = share * ((1 + 1 / w) / 2 - self._all_agree)  # E of the means' squares, not in W
        lost = share * self._all_agree * m  # rho m^2
        strength = math.pi * w * math.sinh(min(budget.epsilon, 100.0)) / (2 * share * math.sqrt(p))
        slack = (1 + math.exp(-budget.epsilon)) * budget.delta * math.sqrt(p / share)
        hidden = max(0.0, 1 - m * math.pi * w / 2 * slack)
        reach = (m * strength + math.sqrt(max(spread, 0.0))) ** 2 + lost * strength**2
        least = hidden**2 * tau / (tau + reach)
        return max(0.0, w / self.n_rows * (least - self._easy))

    @property
    def _easy(self) -> float:
        """The mean loss, per row of the code, of a model that knows the consensus columns."""
        m, p, tau = self.consensus_share, self.n_features, self.tau
        square = m + (1 - m) / p + tau
        s = min(1.0, 1 / square)
        return 1 - 2 * s * m + s**2 * m * square
