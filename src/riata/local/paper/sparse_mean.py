"""Algorithm 2: the mean of many columns from few projected ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone

from riata.arguments import check_positive, check_whole, is_auto
from riata.errors import InvalidArgument, RiataError
from riata.local.paper.base import (
    AT_ONCE,
    PaperLearner,
    check_rows,
    of_several,
    one_row,
)
from riata.local.paper.constrained import smallest_gauge
from riata.local.paper.error_bounds import mean_deviation, mean_error
from riata.local.paper.private_vector import PrivateVector, check_budget
from riata.local.paper.projection import (
    check_dimension,
    check_reach,
    describe_projection,
    is_identity,
    project_rows,
    public_projection,
)
from riata.mechanisms.noise import Noise
from riata.numeric import row_slices
from riata.privacy.budget import check_open_unit
from riata.projections import Projection
from riata.sets import L1Ball
from riata.sets.base import ConstraintSet

ZERO_IS_FEASIBLE = (
    "z = 0 satisfies the constraint of program (1), so its answer is 0 whatever the reports say."
)


@dataclass(eq=False, repr=False, kw_only=True)
class PaperSparseMean(PaperLearner):
    """Algorithm 2 of Zheng, Mou and Wang (2017), with its errata applied.

    Each device sends a private vector of its projected row. The server takes the median of means
    and finds the smallest z in l1 norm whose projection is near it. A reference: with the paper's
    tolerance z = 0 is feasible for every number of people below 10^16, and the answer is 0.

    Parameters
    ----------
    epsilon, delta : float
        The budget of each device. delta must be positive, and is about privacy alone.
    failure : float, default=0.05
        The probability that the median of means may fail: it sets the number of groups.
    l1_norm : float, default=1.0
        The bound Lambda on the l1 norm of the mean.
    constraint : ConstraintSet, optional
        Another low-complexity set K that holds the mean, such as ``GroupL1Ball`` or ``Simplex``:
        the smallest z is then the one of the smallest Minkowski norm, as in Lemma 5.
    dimension : int or "auto", default="auto"
        The number of projected coordinates. "auto" is Lambda epsilon sqrt(n), rounded up; for
        another set, its Gaussian width in the place of Lambda. With as many as there are columns
        nothing is projected.
    reach : float or "auto", default="auto"
        The length to which projected rows are clipped, as for `PaperL1Regression`.
    tolerance : float, "auto" or "proven", default=100.0
        The constant of program (1), 100 in the paper. "auto" is no constant but the l1 norm that
        the noise of the chosen group mean has, by the known distribution of the reports, and a
        tenth more; "proven" is what that exceeds with probability failure / 2 at most, for
        `error_bound`.
    groups : int or "paper", default="paper"
        Of how many means the median is taken: ceil(18 log(1 / failure)) in the paper. 1 is the mean
        of all people, with the least noise.
    projection_seed : int, default=0
        Names the public projection.
    random_state : int, optional
        Makes a fit reproducible, for tests. Such a model is marked as not private.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    zero_is_feasible_ : bool
        Whether z = 0 satisfies the constraint, so that it is the answer.
    n_groups_ : int
    sigma_ : float
        The standard deviation of the noise on each coordinate of a report; after `learn_groups`, of
        one with the root mean square of the epsilons.
    privacy_ : Statement

    Notes
    -----
    *Privacy.* Each person's report is (epsilon, delta)-locally private, whatever the row. Public
    are the number of people and columns, the projection and every parameter.

    *Differences from the paper.* See docs/algorithms/local_paper.md: the calibration, the clipping
    after the projection, and a probability of failure of its own.
    """

    algorithm = "l1-constrained mean (Zheng, Mou, Wang 2017, Algorithm 2)"

    epsilon: float
    delta: float
    failure: float = 0.05
    l1_norm: float = 1.0
    constraint: ConstraintSet | None = None
    dimension: int | str = "auto"
    reach: float | str = "auto"
    tolerance: float | str = 100.0
    groups: int | str = "paper"
    projection_seed: int = 0
    random_state: int | None = None

    def projection(self, n_features: int, n_users: int | None = None) -> Projection:
        """The public matrix G."""
        size, automatic = check_positive("l1_norm", self.l1_norm, "it bounds the mean"), None
        epsilon = check_budget(self.epsilon, self.delta).epsilon
        if n_users is not None:
            n_users = check_whole("n_users", n_users, "it is the number of people")
            if self.constraint is not None:
                size = self.constraint.sized(n_features).gaussian_width().value
            automatic = size * epsilon * math.sqrt(n_users)
        dimension = check_dimension(self.dimension, automatic, n_features)
        return public_projection(dimension, n_features, self.projection_seed)

    def vector(self, projection: Projection) -> PrivateVector:
        """How a projected row is sent."""
        reach = check_reach(self.reach, projection)
        return PrivateVector.calibrated(self.epsilon, self.delta, reach)

    def report(self, x: Any, *, noise: Noise, n_users: int | None = None) -> np.ndarray:
        """What the device of one person sends: G x, clipped, with noise."""
        rows = one_row(x)
        return self._reports(rows, self.projection(rows.shape[1], n_users), noise)[0]

    def _reports(self, X: Any, projection: Projection, noise: Noise) -> np.ndarray:
        return self.vector(projection).reports(project_rows(X, projection), noise)

    def learn(self, reports: Any, *, n_features: int) -> Self:
        """What the server does with the reports of all people, one in each row."""
        reports = np.asarray(reports, dtype=np.float64)
        if reports.ndim != 2 or reports.shape[1] > n_features:
            raise InvalidArgument(
                f"The reports have shape {reports.shape} and rows {n_features} columns: each "
                "person sends at most as many numbers. Pass one report in each row."
            )
        means = np.array([reports[group].mean(axis=0) for group in self._groups(len(reports))])
        return self._set_model(means, len(reports), n_features, None)

    def error_bound(self, n_users: int, n_features: int) -> float:
        """What ||mean_ - mean|| exceeds with probability `failure` at most: Theorem 2.

        For ``tolerance="proven"``, a mean in the set, and rows that no device shortens. Where there
        are several groups, with probability 3/2 of `failure`.
        """
        projection = self.projection(n_features, n_users)
        m, p = len(self._groups(n_users)), projection.dimension
        proven = clone(self).set_params(tolerance="proven")
        slack = proven._slack(self.vector(projection), n_users, n_features, (m, p))
        C = self.constraint or L1Ball(self.l1_norm)
        C = C.sized(n_features)
        if m > 1 and math.exp(-m / 18) > self.failure:
            return 2 * C.radius_in("l2")  # too few groups for Lemma 4
        if is_identity(projection):  # what is near in l1 is nearer in l2
            return min(2 * slack, 2 * C.radius_in("l2"))
        width = C.gaussian_width().value
        return mean_error(p, width, C.radius_in("l2"), slack, float(self.failure) / 2)

    def learn_groups(self, groups: Mapping[float, Any], *, n_features: int) -> Self:
        """What the server does where people chose an epsilon of their own, for public reasons.

        The j-th means of all groups are one mean, in proportion to the people over the variance.
        All devices must have had the same dimension and reach.

        Parameters
        ----------
        groups : mapping of float to array-like of shape (n, dimension)
            Reports by the epsilon that their devices had.
        n_features : int
        """
        learners = self._at_each(groups)
        found = {float(e): np.atleast_2d(np.asarray(r, np.float64)) for e, r in groups.items()}
        widths = {reports.shape[1] for reports in found.values()}
        if len(widths) != 1 or max(widths) > n_features:
            raise InvalidArgument(
                f"The reports have {sorted(widths)} coordinates and rows {n_features} columns: all "
                "devices send as many, and at most one for each column. Pass reports by epsilon."
            )
        projection = public_projection(widths.pop(), n_features, self.projection_seed)
        weights, sums = 0.0, np.zeros(1)
        for epsilon, reports in found.items():
            weight = len(reports) / learners[epsilon].vector(projection).variance
            means = [reports[group].mean(axis=0) for group in self._groups(len(reports))]
            weights, sums = weights + weight, sums + weight * np.array(means)
        people = sum(map(len, found.values()))
        typical = math.sqrt(sum(e**2 * len(r) for e, r in found.items()) / people)
        pooled = clone(self).set_params(epsilon=typical)
        pooled._set_model(sums / weights, people, n_features, None)
        for name in ("mean_", "zero_is_feasible_", "n_groups_", "sigma_"):
            setattr(self, name, getattr(pooled, name))
        self.privacy_ = of_several(pooled.privacy_, found)
        return self

    def fit(self, X: Any) -> Self:
        """Simulate every device, then the server.

        Parameters
        ----------
        X : array-like or sparse of shape (n_people, n_features)
        """
        X, _ = check_rows(X)
        n, n_features = X.shape
        noise, projection = self._noise(), self.projection(n_features, n)
        groups = self._groups(n)
        sums = np.zeros((len(groups), projection.dimension))
        for j, group in enumerate(groups):
            rows = X[group]
            for few in row_slices(rows.shape[0], n_features, AT_ONCE):
                sums[j] += self._reports(rows[few], projection, noise).sum(axis=0)
        sizes = np.array([group.stop - group.start for group in groups])
        return self._set_model(sums / sizes[:, None], n, n_features, noise)

    def _groups(self, n: int) -> list[slice]:
        """S_1, ..., S_m: people in m groups of the same size, up to one."""
        why = "the median of means may fail with this probability, commonly 0.01 to 0.1"
        failure = check_open_unit("failure", self.failure, why)
        m = math.ceil(18 * math.log(1 / failure))
        if not (isinstance(self.groups, str) and self.groups == "paper"):
            m = check_whole("groups", self.groups, "the median is taken of so many means")
        if n < m:
            raise InvalidArgument(
                f"{n} people are fewer than the {m} groups that failure={failure:g} asks for: "
                "each group needs a person. Pass a larger failure, or wait for more people."
            )
        ends = [j * n // m for j in range(m + 1)]
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    def _slack(
        self, vector: PrivateVector, n: int, n_features: int, shape: tuple[int, ...]
    ) -> float:
        """How far G z may be from u."""
        m, p = shape
        if is_auto(self.tolerance):
            return noise_in_l1(vector, n / m, p)
        if isinstance(self.tolerance, str) and self.tolerance == "proven":
            # Of m means more than half are near, but for exp(-m / 18) (Lemma 4).
            often, times = (self.failure / 2, 1) if m == 1 else (1 / 3, 3)
            return times * mean_deviation(vector, n // m, p, often)
        constant = check_positive("tolerance", self.tolerance, "it scales the constraint of (1)")
        slack = constant * p * math.log(n * n_features / self.failure) / float(self.epsilon)
        return slack * math.sqrt(m / n)

    def _set_model(
        self, means: np.ndarray, n: int, n_features: int, device_noise: Noise | None
    ) -> Self:
        m, p = means.shape
        projection = public_projection(p, n_features, self.projection_seed)
        vector = self.vector(projection)
        slack = self._slack(vector, n, n_features, means.shape)
        u = median_of_means(means)
        self.zero_is_feasible_ = bool(np.abs(u).sum() <= slack)
        self.mean_ = np.zeros(n_features)
        if not self.zero_is_feasible_:
            G = projection.matrix()
            if self.constraint is None or isinstance(self.constraint, L1Ball):
                self.mean_ = minimum_l1_solution(G, u, slack)
            else:
                self.mean_ = smallest_gauge(G, u, slack, self.constraint.sized(n_features))
        self.n_groups_, self.sigma_ = m, vector.sigma
        self.privacy_ = self._statement(
            [(vector, 1)],
            {
                "people": n,
                "columns": n_features,
                "coordinates sent": p,
                "projection": describe_projection(projection, self.projection_seed),
                "groups": m,
            },
            device_noise,
            (ZERO_IS_FEASIBLE,) if self.zero_is_feasible_ else (),
        )
        return self


def noise_in_l1(vector: PrivateVector, people: float, p: int) -> float:
    """The l1 norm that the mean of reports is expected to be off by, and a tenth more.

    Normal noise of each coordinate, and rows of the ball that were drawn at random.
    """
    spread = math.sqrt((vector.variance + vector.reach**2 / p) / people)
    return 1.1 * math.sqrt(2 / math.pi) * p * spread


def median_of_means(means: np.ndarray) -> np.ndarray:
    """The mean whose l1 ball around half of all means is smallest (Hsu and Sabato 2016)."""
    half = math.ceil(len(means) / 2)
    radii = [np.partition(np.abs(means - mu).sum(axis=1), half - 1)[half - 1] for mu in means]
    return means[int(np.argmin(radii))]


def minimum_l1_solution(G: np.ndarray, u: np.ndarray, slack: float) -> np.ndarray:
    """The z with the smallest l1 norm such that ||G z - u||_1 <= slack: program (1), linear."""
    p, d = G.shape
    eye = sparse.eye_array(p)
    # Unknowns: the positive and the negative part of z, and bounds t on |G z - u|.
    constraints = sparse.vstack(
        [
            sparse.hstack([G, -G, -eye]),
            sparse.hstack([-G, G, -eye]),
            sparse.csr_array(np.r_[np.zeros(2 * d), np.ones(p)][None, :]),
        ],
        format="csr",
    )
    costs = np.r_[np.ones(2 * d), np.zeros(p)]
    found = linprog(costs, A_ub=constraints, b_ub=np.r_[u, -u, slack], method="highs")
    if found.x is None:
        raise RiataError(
            f"Program (1) was not solved: {found.message} It has {p} equations in {d} unknowns. "
            "Pass a smaller dimension, or a larger tolerance."
        )
    return np.asarray(found.x[:d] - found.x[d : 2 * d])
