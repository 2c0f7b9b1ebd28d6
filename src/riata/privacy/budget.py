"""How much privacy may be spent, and between which data sets it is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from riata.errors import InvalidArgument
from riata.wording import did_you_mean

#: A finite epsilon beyond these is a mistake, and accounting for it would lose its digits.
_SMALLEST_EPSILON, _LARGEST_EPSILON = 1e-9, 1e12

REPLACE_ONE = "replace-one"
ADD_REMOVE = "add-remove"

#: One row's target. Everything else about the rows is public (docs/privacy/label_privacy.md).
REPLACE_LABEL = "replace-label"

#: All rows of one person, of which a fit sees so many. A fit counts rows, one by one, and what one
#: costs is turned into what a person costs (docs/privacy/people.md).
REPLACE_PERSON = "replace-person"

#: How many one-row contributions to a sum differ between neighbours: replacing a row takes one
#: away and puts another in; adding or removing a row does only one of the two. A row with another
#: target is another row.
CHANGED_CONTRIBUTIONS = {REPLACE_ONE: 2, ADD_REMOVE: 1, REPLACE_LABEL: 2}

ADJACENCY_IN_WORDS = {
    REPLACE_ONE: "neighbouring data sets differ by the replacement of one row",
    ADD_REMOVE: (
        "neighbouring data sets differ by the presence of one row's contribution; "
        "the declared number of rows is public"
    ),
    REPLACE_LABEL: (
        "neighbouring data sets differ by the replacement of one row's target; everything else "
        "about the rows is public and NOT protected"
    ),
    REPLACE_PERSON: (
        "neighbouring data sets differ by the replacement of one person, with all of their rows"
    ),
    "local": (
        "each person's reports are randomised on the person's own device, and the guarantee holds "
        "between any two answers of one person"
    ),
}


#: The delta of a fit whose user names none: never above 1e-6, and ten times below 1 / n_rows.
LARGEST_DEFAULT_DELTA = 1e-6
ROWS_A_DEFAULT_DELTA = 10


def default_delta(n_rows: int) -> float:
    """A delta from the public number of rows."""
    return min(LARGEST_DEFAULT_DELTA, 1 / (ROWS_A_DEFAULT_DELTA * n_rows))


def check_adjacency(adjacency: str) -> str:
    if adjacency not in CHANGED_CONTRIBUTIONS:
        raise InvalidArgument(
            f"adjacency={adjacency!r} is not known: it decides which data sets count as "
            f"neighbours, and so how much noise is needed."
            f"{did_you_mean(adjacency, CHANGED_CONTRIBUTIONS)} "
            f"Use one of {sorted(CHANGED_CONTRIBUTIONS)}."
        )
    return adjacency


#: Above this the guarantee holds and protects little: Statements, reports and commands say so.
WEAK_EPSILON = 10.0


def check_number(name: str, value: object) -> float:
    """`value` as a float, or an error that names the parameter."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidArgument(
            f"{name} must be a number, got {type(value).__name__}. Pass a plain number."
        )
    return float(value)


def check_open_unit(name: str, value: object, why: str = "") -> float:
    """A number strictly between 0 and 1, or an error that says why it must be."""
    number = check_number(name, value)
    if not 0 < number < 1:
        raise InvalidArgument(f"{name}={value!r} must lie between 0 and 1{why and f': {why}'}.")
    return number


#: Bounds, radii, vertices and scales of losses lie in this range, so that products of a few of them
#: neither vanish nor overflow: a sensitivity of 0 would mean no noise.
SMALLEST_SCALE, LARGEST_SCALE = 1e-60, 1e60


def check_scale(name: str, value: object, why: str) -> float:
    """A positive number of a size that arithmetic can bear, or an error that says why."""
    number = check_number(name, value)
    if not SMALLEST_SCALE <= number <= LARGEST_SCALE:
        raise InvalidArgument(
            f"{name}={value!r} must lie between {SMALLEST_SCALE:g} and {LARGEST_SCALE:g}: {why}"
        )
    return number


@dataclass(frozen=True)
class Budget:
    """A limit on the privacy loss.

    Parameters
    ----------
    epsilon : float
        Positive. ``float("inf")`` means that nothing is protected, and every Statement says so.
    delta : float, default=0.0
        In [0, 1). Zero asks for pure differential privacy.
    adjacency : {"replace-one", "add-remove", "replace-label", "replace-person"}, \
        default="replace-one"
        Which data sets count as neighbours.
    rows_of_a_person : int, default=1
        With "replace-person": how many rows of one person a fit sees.
    """

    epsilon: float
    delta: float = 0.0
    adjacency: str = REPLACE_ONE
    rows_of_a_person: int = 1

    def __post_init__(self) -> None:
        epsilon = check_number("epsilon", self.epsilon)
        delta = check_number("delta", self.delta)
        if math.isnan(epsilon) or epsilon <= 0:
            raise InvalidArgument(
                f"epsilon={self.epsilon!r} must be positive: it bounds the privacy loss, and no "
                "mechanism gives an answer at zero loss. Common choices lie between 0.1 and 10."
            )
        if epsilon < _SMALLEST_EPSILON or _LARGEST_EPSILON < epsilon < math.inf:
            raise InvalidArgument(
                f"epsilon={self.epsilon!r} is out of range: below {_SMALLEST_EPSILON:g} nothing "
                f"can be learned, and above {_LARGEST_EPSILON:g} nothing is protected. Choose one "
                'between 0.1 and 10, or float("inf") to say that nothing is protected.'
            )
        if not 0 <= delta < 1:
            raise InvalidArgument(
                f"delta={self.delta!r} must lie in [0, 1): it is the probability that the bound "
                "epsilon fails. Use a value well below 1 / n_rows, such as 1e-6, or 0 for pure "
                "differential privacy."
            )
        if self.adjacency != REPLACE_PERSON:
            check_adjacency(self.adjacency)
        self._check_rows()
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    def _check_rows(self) -> None:
        rows = self.rows_of_a_person
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise InvalidArgument(
                f"rows_of_a_person={rows!r} must be a whole number of at least 1: it is how many "
                "rows of one person a fit sees."
            )
        if rows > 1 and self.adjacency != REPLACE_PERSON:
            raise InvalidArgument(
                f"rows_of_a_person={rows} has no meaning with adjacency={self.adjacency!r}, which "
                'counts rows. Use adjacency="replace-person".'
            )

    @property
    def row_epsilon(self) -> float:
        """What is left of epsilon for each row of a person."""
        return self.epsilon / self.rows_of_a_person

    def __str__(self) -> str:
        rows = f" of {self.rows_of_a_person} rows" * (self.rows_of_a_person > 1)
        return f"epsilon={self.epsilon:g}, delta={self.delta:g}, {self.adjacency}{rows}"
