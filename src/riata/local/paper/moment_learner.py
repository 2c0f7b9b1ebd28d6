"""What Algorithms 3 and 4 share: two private vectors a person, and the sums of their products."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from riata.local.paper.base import (
    AT_ONCE,
    PaperLearner,
    check_rows,
    of_several,
    one_row,
)
from riata.local.paper.moments import Moments, Reports, check_moments, simulated_moments
from riata.local.paper.private_vector import PrivateVector, split_budget
from riata.mechanisms.noise import Noise
from riata.numeric import row_slices

#: A vector and a target share the budget of a device.
HALVES = ((0.5, 1), (0.5, 1))


class MomentLearner(PaperLearner):
    """Learns from Z' Z and Z' v. Subclasses say what public map makes a row a vector."""

    composition: str

    @abstractmethod
    def _map(self, n_features: int, n_users: int | None) -> Any:
        """The public map that devices apply to their rows."""

    @abstractmethod
    def _server_map(self, width: int, n_features: int) -> Any:
        """The same, as the server knows it from reports of so many numbers."""

    @abstractmethod
    def _rows(self, X: Any, public: Any) -> np.ndarray:
        """Rows after the map."""

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Targets, where [-1, 1] is what is sent of them."""
        return y

    def _reach(self, public: Any) -> float:
        """The length to which they are clipped."""
        return 1.0

    @abstractmethod
    def _set_model(self, total: Moments, public: Any, device_noise: Noise | None) -> Self:
        """The model from the sums; `device_noise` is that of devices which were simulated."""

    def vectors(self, public: Any) -> tuple[PrivateVector, PrivateVector]:
        """How a row after the map and a target are sent."""
        x, y = split_budget(HALVES, self.epsilon, self.delta, self.composition)
        return PrivateVector(x, self._reach(public)), PrivateVector(y)

    def report(self, x: Any, y: float, *, noise: Noise, n_users: int | None = None) -> Reports:
        """What the device of one person sends.

        Parameters
        ----------
        x : array-like of shape (n_features,)
        y : float
        noise : Noise
            The randomness of the device.
        n_users : int, optional
            The public number of people, where a parameter is to follow from it.
        """
        rows = one_row(x)
        sent = self._reports(rows, np.array([y]), self._map(rows.shape[1], n_users), noise)
        return Reports(sent.z[0], sent.v[0])

    def _reports(self, X: Any, y: np.ndarray, public: Any, noise: Noise) -> Reports:
        vector, target = self.vectors(public)
        z = vector.reports(self._rows(X, public), noise)
        return Reports(z, target.reports(self._targets(y)[:, None], noise)[:, 0])

    def learn(self, reports: Reports | list[Reports], *, n_features: int) -> Self:
        """What the server does with the reports of all people.

        Parameters
        ----------
        reports : Reports or list of Reports
            Of many people in rows, or one for each.
        n_features : int
            The number of columns that the rows had.
        """
        if isinstance(reports, list):
            reports = Reports(np.stack([r.z for r in reports]), np.stack([r.v for r in reports]))
        total = Moments.of(reports)
        return self._set_model(total, self._server_map(len(total.cross), n_features), None)

    def learn_groups(self, groups: Mapping[float, Reports], *, n_features: int) -> Self:
        """The same where people chose an epsilon of their own, for public reasons.

        Each group's moments are unbiased after its own variance is taken out, and count in
        proportion to the inverse of the variance that the noise leaves in them.

        Parameters
        ----------
        groups : mapping of float to Reports
            Reports by the epsilon that their devices had; all else is as here.
        """
        learners = self._at_each(groups)
        found = [Moments.of(reports) for reports in groups.values()]
        width = len(found[0].cross)
        public = self._server_map(width, n_features)
        gram, cross = np.zeros((width, width)), np.zeros(width)
        weight = cross_weight = 0.0
        for each, total in zip(learners.values(), found, strict=True):
            x, y = each.vectors(public)
            weight += total.n / x.variance**2
            cross_weight += total.n / (x.variance * y.variance)
            gram += total.debiased(x.variance) / x.variance**2
            cross += total.cross / (x.variance * y.variance)
        people = sum(total.n for total in found)
        # `_set_model` takes the variance of this learner's own epsilon out of the sums again.
        own = self.vectors(public)[0].variance * np.eye(width)
        pooled = Moments(people, people * (gram / weight + own), people * cross / cross_weight)
        self._set_model(pooled, public, None)
        self.privacy_ = of_several(self.privacy_, learners)
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Simulate every device, then the server.

        Parameters
        ----------
        X : array-like or sparse of shape (n_people, n_features)
        y : array-like of shape (n_people,)
        """
        X, y = check_rows(X, y)
        noise, public = self._noise(), self._map(X.shape[1], X.shape[0])
        total: Moments | None = None
        for few in row_slices(X.shape[0], max(X.shape[1], public.dimension), AT_ONCE):
            part = Moments.of(self._reports(X[few], y[few], public, noise))
            total = part if total is None else total + part
        assert total is not None
        return self._set_model(total, public, noise)

    def _simulated(
        self, n_users: int, second: Any, cross: Any, target_second: float, public: Any
    ) -> Self:
        """The model from sums that are drawn at once, for rows with these moments after the map."""
        noise, second_and_cross = self._noise(), check_moments(second, cross)
        vectors = self.vectors(public)
        total = simulated_moments(n_users, *second_and_cross, target_second, *vectors, noise)
        return self._set_model(total, public, noise)
