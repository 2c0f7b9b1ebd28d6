"""What is stated about rows; what is not stated differs from simulated fit to simulated fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.problem import Problem
from riata.simulation.guess import Guess
from riata.wording import number_of

#: The R2 of the best model if it is not stated, and its AUC.
R2, AUC = 0.5, 0.8

# The ranges below were set by hand on two dozen sets of benchmarks/arena.py --forecast, first of
# all spam, headlines, tweets, Adult and hotel prices, and checked on ten others: docs/forecast.md.

#: What varies if it is not stated. So many columns at least are relevant, of rows that are not
#: sparse and of those that are, and all at most; two columns of a group have up to this
#: correlation; this share of entries is not 0; and entries are drawn in these ways.
FEWEST, MOST_CORRELATED, DENSITIES = (3, 20), 0.8, (0.1, 0.9)
ENTRIES = ("uniform", "normal", "binary")

#: Rows of bounded length have entries in all of so many columns, and in so many of more.
FULL_ROWS, NONZEROS = 128, 20

#: Points that fill a cube of four dimensions evenly: multiples of powers of this number (the root
#: of x^5 = x + 1), without their whole parts.
_ROOT = 1.1673039782614187


@dataclass(frozen=True)
class PartialGuess:
    """Those facts of a `Guess` that somebody states.

    Parameters
    ----------
    stated : mapping of str to object
        By their names; what is None counts as not stated.
    """

    stated: Mapping[str, Any]

    def __post_init__(self) -> None:
        known = {each.name for each in fields(Guess)} - {"nonnegative"}  # the bounds say so
        if unknown := sorted(set(self.stated) - known):
            raise InvalidArgument(f"A guess has no {unknown[0]!r}. See forecast for what it has.")
        kept = {name: value for name, value in self.stated.items() if value is not None}
        object.__setattr__(self, "stated", kept)
        Guess(**kept)

    def complete(self, problem: Problem, number: int) -> Guess:
        """The guess of one simulated fit: points of a lattice stand for what is not stated."""
        point = [math.modf(0.5 + (number + 1) * _ROOT**-k)[0] for k in (1, 2, 3, 4)]
        p, bounds = problem.n_features, problem.bounds
        default: dict[str, Any] = {
            "signal": AUC if problem.loss.classifies else R2, "nonzeros": nonzeros(bounds, p)
        }  # fmt: skip
        sparse = has_sparse_rows(bounds, p, self.stated.get("nonzeros", default["nonzeros"]))
        fewest = min(FEWEST[sparse], p)
        default["relevant"] = round(fewest * (p / fewest) ** point[0])
        default["correlation"] = MOST_CORRELATED * point[1] ** (1 if sparse else 2)
        default["alignment"] = min(1.0, 2 * point[2])
        place, within = divmod(point[3] * len(ENTRIES), 1.0)
        default["design"] = ENTRIES[int(place)]
        if sparse_counts(bounds, p, self.stated):
            default["design"], default["density"] = "binary", self.stated["nonzeros"] / p
        elif "design" not in self.stated:
            low, high = DENSITIES
            low = 0.5 if bounds.favours_gradients else low  # rows that are not sparse
            default["density"] = low * (high / low) ** within
        guess = Guess(**(default | dict(self.stated)))
        return replace(guess, relevant=min(guess.relevant, p), nonnegative=bounds.nonnegative)

    def rows(self, problem: Problem) -> list[tuple[str, str]]:
        """What is assumed, and what differs between simulated fits, in words."""
        guess, p, metric = self.complete(problem, 0), problem.n_features, "R2"
        if problem.loss.classifies:
            metric, target = "AUC", f"{guess.positives:.0%} in the second class"
        else:
            target = f"y's deviation {guess.spread:.3g} of its bound"
        sparse = has_sparse_rows(problem.bounds, p, guess.nonzeros)
        among = "all columns" if guess.group is None else f"groups of {guess.group}"
        entries = f"{guess.design} entries"
        if guess.design == "binary" and not sparse:
            entries += f" with density {guess.density:g}"
        facts = {
            "relevant": (
                number_of(guess.relevant, "column matters", "columns matter"),
                f"{min(FEWEST[sparse], p)} to {p:,} columns matter",
            ),
            "design": (entries, "" if sparse else f"{', '.join(ENTRIES[:-1])} or {ENTRIES[-1]} "
                       "entries"),
            "correlation": (
                f"correlation {guess.correlation:g} in {among}" if guess.correlation else "",
                f"correlation up to {MOST_CORRELATED:g}",
            ),
            "alignment": (
                f"alignment {guess.alignment:g}" if guess.correlation else "",
                "how much they share of the signal" if self._correlates else "",
            ),
        }  # fmt: skip
        stated = [said for name, (said, _) in facts.items() if name in self.stated]
        varied = [said for name, (_, said) in facts.items() if name not in self.stated]
        if sparse:
            stated.append(f"rows with {number_of(guess.nonzeros, 'entry', 'entries')}")
        stated += [f"best {metric} {guess.signal:g}", target]
        words = {
            "guess": ", ".join(filter(None, stated)),
            "varied": ", ".join(filter(None, varied)),
        }
        return [(name, said) for name, said in words.items() if said]

    @property
    def _correlates(self) -> bool:
        return self.stated.get("correlation") != 0


def nonzeros(bounds: Bounds, n_columns: int) -> int:
    """How many entries of a row are not 0 if nobody says, for rows of bounded length."""
    if bounds.nonzeros is not None:
        return min(bounds.nonzeros, n_columns)
    few = n_columns <= FULL_ROWS and not bounds.nonnegative
    return n_columns if few else min(NONZEROS, n_columns)


def sparse_counts(bounds: Bounds, n_columns: int, stated: Mapping[str, Any]) -> bool:
    """Whether few entries are said not to be 0, of rows without a bound on their length."""
    few = 2 * stated.get("nonzeros", n_columns) < n_columns
    return few and not bounds.favours_gradients and "design" not in stated


def has_sparse_rows(bounds: Bounds, n_columns: int, entries: int) -> bool:
    """Whether rows are of bounded length, with entries in less than half of the columns."""
    return bounds.favours_gradients and 2 * entries < n_columns
