"""What models with parameters beside their coefficients share: they have no intercept."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.estimators.base import BoundedModel
from riata.estimators.regressor import automatic_radius, l1_ball
from riata.fitting import AutomaticRadius, Fitted
from riata.losses import NuisanceLoss
from riata.sets import ConstraintSet


@dataclass(eq=False, repr=False, kw_only=True)
class NuisanceModel(BoundedModel):
    """A linear model whose loss has parameters of its own in place of an intercept."""

    radius: float | str = "auto"

    has_intercept: ClassVar[bool] = False

    #: What takes the place of the intercept, in words.
    instead_of_intercept: ClassVar[str]

    @abstractmethod
    def _set_nuisance(self, loss: NuisanceLoss, offset: float) -> None:
        """Set the attributes of the parameters; `offset` is part of all margins of the fit."""

    @abstractmethod
    def summary_facts(self) -> tuple[tuple[str, str], ...]:
        """The parameters in words."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if not self.fit_intercept:
            raise InvalidArgument(
                f"fit_intercept={self.fit_intercept!r}: {type(self).__name__} has no intercept to "
                f"leave out, because {self.instead_of_intercept} take its place. Leave it out."
            )

    def _set(self, bounds: Bounds) -> ConstraintSet | AutomaticRadius:
        return l1_ball(self.radius, automatic_radius(bounds, logarithms=True))

    def _set_attributes(self, fitted: Fitted) -> None:
        super()._set_attributes(fitted)
        (solution,) = fitted.solutions
        assert isinstance(solution.loss, NuisanceLoss)
        self.intercept_, self.intercept_error_ = np.float64(0.0), np.float64(math.nan)
        self._set_nuisance(solution.loss, solution.theta.offset)
