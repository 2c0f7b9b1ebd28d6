"""Everything that is fixed before the data is touched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

from riata.bounds import Bounds
from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.lower_bounds import LowerBound, lower_bound
from riata.mechanisms import Mechanism
from riata.preparation import Preparation
from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import Budget, check_open_unit
from riata.privacy.events import Composed, Event, compose, of_group
from riata.problem import Problem
from riata.projections import Projection
from riata.solvers.requirements import (
    Requirement,
    all_penalized,
    finite_epsilon,
    margin_loss,
    no_nuisance,
    one_margin,
)
from riata.solvers.solution import Callback, Solution, Step
from riata.solvers.tails import Tail
from riata.wording import listed, number_of, rounded, shape_of

#: With which probability a printed plan lets its second bound on the risk fail.
RARE = 0.05


@dataclass(frozen=True)
class ExtraRelease:
    """A mechanism that is used so many times outside the fits."""

    mechanism: Mechanism
    times: int

    @property
    def cost(self) -> tuple[Event, int]:
        return self.mechanism.event, self.times


@dataclass(frozen=True)
class Plan:
    """The steps, the noise and the cost of a fit, from public facts alone.

    Attributes
    ----------
    solver : str
    problem : Problem
    budget : Budget
        What was asked for.
    steps : int
    mechanisms : mapping of str to Mechanism
        Each kind of release by its role, made once a step unless `times` says otherwise.
    fits : int
        How many models share the budget: one, or one for each class.
    excess_risk : float
        A bound on the expected excess empirical risk of each model, with explicit constants. It
        holds for the worst data inside the bounds; usual data does far better. It does not count
        what a poor intercept costs.
    parts : int
        Into how many disjoint parts the rows are split. Each step reads its own part, so that the
        whole plan costs what one part costs.
    assumes : str
        What the bound on the risk takes for granted, if it does not hold for all data.
    compressed : Problem, optional
        The problem that the solver's releases are about, if it is not `problem` itself.
    adaptive_budget : Event, optional
        What one fit may spend as it decides while it runs, in place of `mechanisms`.
    uses : tuple of str
        What an adaptive budget is spent on, in words.
    because : str
        Why "auto" decided for this solver.
    times : mapping of str to int
        How often a fit makes the releases of a role, where it is not once a step.
    extra_releases : mapping of str to ExtraRelease
        Releases that are no part of a fit, by their role: class counts, calibration.
    projection : Projection, optional
        What rows inside the bounds of `problem` are multiplied by, to be rows of `compressed`.
    distance : float, optional
        A bound on the expected Euclidean distance to the best model, under what `assumes` says.
    tail : Tail, optional
        How rarely the excess risk is larger: see `risk_bound`.
    """

    solver: str
    problem: Problem
    budget: Budget
    steps: int
    mechanisms: Mapping[str, Mechanism]
    fits: int
    excess_risk: float
    parts: int = 1
    assumes: str = ""
    compressed: Problem | None = None
    projection: Projection | None = None
    adaptive_budget: Event | None = None
    uses: tuple[str, ...] = ()
    because: str = ""
    times: Mapping[str, int] = field(default_factory=dict)
    extra_releases: Mapping[str, ExtraRelease] = field(default_factory=dict)
    distance: float | None = None
    tail: Tail | None = None

    def __getitem__(self, role: str) -> Mechanism:
        return self.mechanisms[role]

    @property
    def event(self) -> Composed:
        """The cost of all releases, extra ones included, seen from one part of the rows."""
        extra = [each.cost for each in self.extra_releases.values()]
        if self.adaptive_budget is not None:
            return compose((self.adaptive_budget, self.fits), *extra)
        return compose(
            *((m.event, self._times(role) // self.parts) for role, m in self.mechanisms.items()),
            *extra,
        )

    @property
    def cost(self) -> Event:
        """The event as neighbours see it, who may differ by several rows."""
        return of_group(self.event, self.budget.rows_of_a_person)

    @property
    def adaptive(self) -> bool:
        """Whether the run decides what to spend on what."""
        return self.adaptive_budget is not None

    def _times(self, role: str) -> int:
        return self.times.get(role, self.steps) * self.fits

    def risk_bound(self, failure: float) -> float:
        """What the excess risk exceeds with probability at most `failure`.

        From the noise of the solver where that is known, and from `excess_risk` by Markov's
        inequality, whatever is smaller. Beside `assumes` it takes nothing for granted.

        Parameters
        ----------
        failure : float
            Between 0 and 1.
        """
        check_open_unit("failure", failure, "it is how rarely the risk may be larger")
        known = [self.excess_risk / failure, self.problem.worst_excess_risk]
        if self.tail is not None and (self.tail.with_intercept or not self.problem.fit_intercept):
            known.append(self.tail.bound(failure))
        return min(known)

    @property
    def lower_bound(self) -> LowerBound | None:
        """What no private algorithm undercuts on all data inside the bounds, if that is known."""
        return lower_bound(self.problem, self.budget)

    @property
    def preparation(self) -> Preparation:
        """From the rows as they are given to those that the solver asks about."""
        asked = None if self.compressed is None else self.compressed.bounds
        return Preparation(self.problem.bounds, self.projection, asked)

    def engine(self, build: Callable[[Any, Any, Bounds], Any], x: Any, y: Any) -> Any:
        """`build` called with the rows that the solver asks about, and their bounds."""
        ready = self.preparation
        return build(ready.project(x), y, ready.bounds)

    @property
    def spent(self) -> Spent:
        return spent(self.cost, self.budget.delta)

    @property
    def releases(self) -> tuple[str, ...]:
        extra = tuple(
            f"{role}: {each.mechanism.describe(each.times)}"
            for role, each in self.extra_releases.items()
        )
        if self.adaptive_budget is not None:
            return (*self.uses, *extra)
        lines = tuple(
            f"{role}: {m.describe(self._times(role))}" for role, m in self.mechanisms.items()
        )
        lines += extra
        split = f"the rows are split into {self.parts} parts, and each step reads its own"
        return (*lines, split) if self.parts > 1 else lines

    def summary(self) -> dict[str, Any]:
        """Public facts for the ledger."""
        return {
            "solver": self.solver,
            "loss": self.problem.loss.name,
            "set": str(self.problem.set),
            "n_rows": self.problem.n_rows,
            "n_features": self.problem.n_features,
            "steps": self.steps,
            "fits": self.fits,
            **({"unpenalized": list(p)} if (p := self.problem.unpenalized) else {}),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "releases": list(self.releases),
            **({"rows_of_a_person": rows} if (rows := self.budget.rows_of_a_person) > 1 else {}),
        }

    def rows(self) -> list[tuple[str, str]]:
        """The plan in words, line by line."""
        p = self.problem
        total = self.spent
        where = f"if {self.assumes}" if self.assumes else "on the worst data"
        uncounted = ", the intercept's part not counted" if p.fit_intercept else ""
        with_intercept = ", with intercept" if p.fit_intercept else ""
        return [
            ("data", rounded(f"{shape_of(p.n_rows, p.n_features)}, {p.bounds}")),
            ("model", rounded(f"{p.loss.name} loss over {p.set}") + with_intercept),
            *([("always", _columns(p.unpenalized))] if p.unpenalized else []),
            (
                "solver",
                f"{self.solver}, {number_of(self.steps, 'step')}"
                + f", {self.fits} fits" * (self.fits > 1),
            ),
            *([("because", self.because)] if self.because else []),
            *(("release", line) for line in self.releases),
            (
                "costs",
                f"epsilon {total.epsilon:.9g} at delta {total.delta:g} by {total.accountant}",
            ),
            ("expects", f"excess risk at most {self.excess_risk:.3g} {where}" + uncounted),
            *self._limits(),
        ]

    def _limits(self) -> list[tuple[str, str]]:
        """The same with high probability, the distance, and what no private model undercuts."""
        lines = []
        if self.tail is not None and (self.tail.with_intercept or not self.problem.fit_intercept):
            lines.append(("", f"at most {self.risk_bound(RARE):.3g} with probability {1 - RARE:g}"))
        if self.distance is not None:
            lines.append(("", f"a distance of at most {self.distance:.3g} to the best model"))
        below = self.lower_bound
        if below is not None and not self.assumes:
            factor = f"{self.excess_risk / below.value:,.3g}"
            least = f"no private model is below {below.value:.3g} on all data"
            lines.append(("limit", f"{least}: a factor of {factor}"))
        return lines

    def __str__(self) -> str:
        head = f"Plan for {self.budget}: nothing is charged and no row is read."
        return "\n".join([head, *(f"  {key:<8} {value}" for key, value in self.rows())])

    __repr__ = __str__


@dataclass(frozen=True)
class Solver(ABC):
    """One paper's algorithm. `plan` needs no data and costs nothing; `run` sees only releases.

    Parameters
    ----------
    steps : int or "auto", default="auto"
    """

    steps: int | str = "auto"

    name: ClassVar[str]

    #: False for the references without noise, which cannot be asked for by name.
    private: ClassVar[bool] = True

    #: Whether it fits the models of three classes or more together.
    joint: ClassVar[bool] = False

    #: Whether it fits the nuisance parameters of a loss beside the model.
    fits_nuisance: ClassVar[bool] = False

    #: Whether unpenalized columns stay in the model, and nothing pulls them to 0.
    keeps_unpenalized: ClassVar[bool] = False

    #: How large an automatic radius may be: "narrow" if noise grows with it, "wide" if it only
    #: catches wild models, "open" if the solver has a penalty of its own.
    radius_policy: ClassVar[str] = "narrow"

    #: Why its coefficients have no standard errors, for people; "" if they have, or nobody knows.
    errors_unknown: ClassVar[str] = ""

    #: What it asks of a problem and a budget; a private solver also asks for a finite epsilon.
    requirements: ClassVar[tuple[Requirement, ...]] = ()

    #: What it asks of the loss, if it needs more than the gradient of each row; otherwise None.
    row_losses: ClassVar[Requirement | None] = margin_loss

    def __post_init__(self) -> None:
        check_steps(self.steps)

    def check(self, problem: Problem, budget: Budget) -> None:
        """Raise `Incompatible` if this algorithm cannot solve the problem in the budget."""
        label = f'solver="{self.name}"' if self.private else f"{type(self).__name__}()"
        always = [finite_epsilon] if self.private else []
        always += [] if self.row_losses is None else [self.row_losses]
        always += [] if self.joint else [one_margin]
        always += [] if self.fits_nuisance else [no_nuisance]
        always += [] if self.keeps_unpenalized else [all_penalized]
        for requirement in (*always, *self.requirements):
            requirement.check(label, problem, budget)
        if problem.loss.gradient_bounds is not None:
            problem.loss.check(problem.set.start().dense(), problem.bounds)

    @abstractmethod
    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        """Steps and noise for `fits` models on the same rows that spend `budget` together."""

    @abstractmethod
    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """Fit one model through the curator."""

    def run_all(
        self,
        plan: Plan,
        problems: tuple[Problem, ...],
        curator: Curator,
        callback: Callback | None = None,
    ) -> tuple[Solution, ...]:
        """Every model of a fit: one for each problem, or for each class of the only one."""
        return tuple(self.run(plan, problem, curator, callback) for problem in problems)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Solvers of this class, for the matrices of the tests."""
        return (cls(),)


def _columns(places: tuple[int, ...]) -> str:
    which = listed([str(place) for place in places])
    return f"{number_of(len(places), 'unpenalized column')} in the model ({which})"


def count_steps(steps: int, callback: Callback | None) -> Iterator[int]:
    """1, 2, ..., steps, telling the callback after each."""
    for t in range(1, steps + 1):
        yield t
        if callback is not None:
            callback(Step(t, steps))


def check_steps(steps: object) -> int | None:
    """The number of steps, or None for "auto"."""
    if isinstance(steps, str) and steps == "auto":
        return None
    if isinstance(steps, bool) or not isinstance(steps, Real):
        raise InvalidArgument(f'steps={steps!r} must be a whole number or "auto".')
    number = float(steps)
    if not (number >= 1 and number.is_integer()):
        raise InvalidArgument(
            f"steps={steps!r} must be a whole number of at least 1: each step is one private look "
            'at the data. Use steps="auto" to have it chosen from public facts.'
        )
    return int(number)
