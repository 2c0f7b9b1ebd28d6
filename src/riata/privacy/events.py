"""What one use of a mechanism costs, as frozen data that composes into a tree.

An event says what is proven about a mechanism, not how the mechanism works. Once published, the
meaning of an event never changes: ledgers written years ago are read with it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

from riata.errors import InvalidArgument, LedgerError

#: More than what two roundings can make of the number 1.
_ROUNDED_UP = 1 + 2.0**-50


def _check(name: str, value: object, *, positive: bool = False) -> None:
    """A cost that is no ordinary number would poison every sum it enters."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidArgument(f"An event's {name} must be a number, got {type(value).__name__}.")
    number = float(value)
    if not (math.isfinite(number) and (number > 0 if positive else number >= 0)):
        kind = "positive" if positive else "non-negative"
        raise InvalidArgument(f"An event's {name} must be {kind} and finite, got {value!r}.")


@dataclass(frozen=True)
class Pure:
    """epsilon-differential privacy, nothing more."""

    epsilon: float

    def __post_init__(self) -> None:
        _check("epsilon", self.epsilon)


@dataclass(frozen=True)
class BoundedRange:
    """The privacy loss lies in an interval of length `epsilon` for every pair of neighbours.

    The exponential mechanism satisfies this (Durfee and Rogers 2019), which is stronger than
    epsilon-differential privacy: it costs epsilon^2 / 8 in zCDP and not epsilon^2 / 2.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _check("epsilon", self.epsilon)


@dataclass(frozen=True)
class LaplaceMax:
    """The arg max of utilities with Laplace noise, each moved by up to epsilon / 2 noise scales.

    epsilon-differentially private, and its Renyi divergences are smaller than those that follow
    from that alone.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _check("epsilon", self.epsilon)


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise whose standard deviation is `noise_multiplier` times the l2 sensitivity."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check("noise_multiplier", self.noise_multiplier, positive=True)


@dataclass(frozen=True)
class ZeroConcentrated:
    """rho-zero-concentrated differential privacy (Bun and Steinke 2016)."""

    rho: float

    def __post_init__(self) -> None:
        _check("rho", self.rho)


@dataclass(frozen=True)
class SampledGaussian:
    """Gaussian noise on a sum over a Poisson sample of the rows.

    Each row takes part with probability `rate`, in secret. The noise multiplier counts the l2
    sensitivity of the sum over all rows.
    """

    noise_multiplier: float
    rate: float

    def __post_init__(self) -> None:
        _check("noise_multiplier", self.noise_multiplier, positive=True)
        _check("rate", self.rate, positive=True)
        if self.rate > 1:
            raise InvalidArgument(f"An event's rate must be at most 1, got {self.rate!r}.")


@dataclass(frozen=True)
class ObjectivePerturbed:
    """The exact minimiser of an objective with a Gaussian linear term.

    Let T = mu^2 / 2 + mu * chi be the loss of the term: mu is one over the noise multiplier, which
    counts the l2 sensitivity of the objective's gradient, and chi the length of a standard normal
    vector in so many `directions`. Given all earlier releases, the privacy loss between neighbours
    is at most `stretch` + T, and at most `stretch_above` + max(T, `above`), in the increasing
    convex order: every increasing convex function of it has at most this expectation.

    Parameters
    ----------
    noise_multiplier : float
    stretch : float
        The largest change of the logarithm of the Jacobian determinant.
    directions : {1, 2}, default=1
    above, stretch_above : float, optional
        Where the term loses more than `above`, so much of the stretch counts at most.
    """

    noise_multiplier: float
    stretch: float
    directions: int = 1
    above: float = 0.0
    stretch_above: float | None = None

    def __post_init__(self) -> None:
        _check("noise_multiplier", self.noise_multiplier, positive=True)
        _check("stretch", self.stretch)
        _check("above", self.above)
        if type(self.directions) is not int or self.directions not in (1, 2):
            raise InvalidArgument(f"An event's directions must be 1 or 2, got {self.directions!r}.")
        if (self.stretch_above is None) != (self.above == 0):
            raise InvalidArgument("An event's above and stretch_above must come together.")
        if self.stretch_above is not None:
            _check("stretch_above", self.stretch_above)


@dataclass(frozen=True)
class Unprotected:
    """The value itself was released. No accountant gives this a finite cost."""


@dataclass(frozen=True)
class RandomlyRepeated:
    """The best of K independent runs, and nothing of the others, nor K.

    Each run draws one of the candidates uniformly, and what it releases is totally ordered. K has
    the truncated negative binomial distribution of `riata.privacy.accountants.repetition`, whatever
    the rows. Equal candidates are kept once: the cost depends on the worst.
    """

    candidates: tuple[Composed, ...]
    shape: float
    stop: float

    def __post_init__(self) -> None:
        _check("stop", self.stop, positive=True)
        _check("shape plus 1", self.shape + 1, positive=True)
        if self.stop > 1:
            raise InvalidArgument(f"An event's stop must be at most 1, got {self.stop!r}.")
        if not self.candidates:
            raise InvalidArgument("A repeated event needs at least one candidate.")
        for leaf in (leaf for each in self.candidates for leaf in leaves(each)):
            if isinstance(leaf, RandomlyRepeated | Unprotected):
                raise InvalidArgument(
                    f"A repeated event has no known cost with a run that contains {leaf!r}."
                )
        texts = sorted({to_json(each) for each in self.candidates})
        object.__setattr__(self, "candidates", tuple(from_json(text) for text in texts))


@dataclass(frozen=True)
class Composed:
    """Adaptive composition: each event with the number of times it happens."""

    parts: tuple[tuple[Event, int], ...]


Leaf = (
    Pure
    | BoundedRange
    | LaplaceMax
    | Gaussian
    | SampledGaussian
    | ObjectivePerturbed
    | ZeroConcentrated
    | RandomlyRepeated
    | Unprotected
)
Event = Leaf | Composed

_LEAVES: dict[str, type[Leaf]] = {
    "pure": Pure,
    "bounded-range": BoundedRange,
    "laplace-max": LaplaceMax,
    "gaussian": Gaussian,
    "sampled-gaussian": SampledGaussian,
    "objective-perturbed": ObjectivePerturbed,
    "zero-concentrated": ZeroConcentrated,
    "randomly-repeated": RandomlyRepeated,
    "unprotected": Unprotected,
}
_NAMES = {kind: name for name, kind in _LEAVES.items()}


def compose(*parts: tuple[Event, int]) -> Composed:
    """The composition of each event repeated as often as it says."""
    return Composed(tuple((event, count) for event, count in parts if count > 0))


def of_group(event: Event, rows: int) -> Event:
    """What an event costs between data sets that differ by so many rows, one after the other.

    The event is proven for data sets that differ by one. Proofs are in docs/privacy/people.md.
    """
    if rows == 1:
        return event
    if isinstance(event, Composed):
        return Composed(tuple((of_group(part, rows), count) for part, count in event.parts))
    if isinstance(event, Pure | BoundedRange | LaplaceMax):
        return type(event)(rows * event.epsilon * _ROUNDED_UP)
    if isinstance(event, Gaussian | SampledGaussian):  # of a sample, no more is proven
        return Gaussian(event.noise_multiplier / (rows * _ROUNDED_UP))
    if isinstance(event, ZeroConcentrated):
        return ZeroConcentrated(rows**2 * event.rho * _ROUNDED_UP)
    if isinstance(event, ObjectivePerturbed):
        more = rows * _ROUNDED_UP
        steep = None if event.stretch_above is None else event.stretch_above * more
        return ObjectivePerturbed(
            event.noise_multiplier / more, event.stretch * more, event.directions,
            event.above * more, steep,
        )  # fmt: skip
    if isinstance(event, RandomlyRepeated):
        candidates = tuple(compose((of_group(each, rows), 1)) for each in event.candidates)
        return RandomlyRepeated(candidates, event.shape, event.stop)
    return event


def leaves(event: Event) -> Counter[Leaf]:
    """The leaves of the tree with their multiplicity. Composition does not depend on the order."""
    if not isinstance(event, Composed):
        return Counter({event: 1})
    total: Counter[Leaf] = Counter()
    for part, count in event.parts:
        if not isinstance(part, Composed):
            total[part] += count
            continue
        for leaf, inner in leaves(part).items():
            total[leaf] += inner * count
    return total


def to_json(event: Event) -> str:
    """A canonical text for the ledger: equal costs give equal bytes."""
    rows = [
        {"event": _NAMES[type(leaf)], "count": count, **_fields(leaf)}
        for leaf, count in leaves(event).items()
    ]
    rows.sort(key=lambda row: json.dumps(row, sort_keys=True))
    return json.dumps(rows, sort_keys=True, separators=(",", ":"))


def _fields(leaf: Leaf) -> dict[str, Any]:
    if isinstance(leaf, ObjectivePerturbed):  # what is usual is left out, as it always was
        usual = {"directions": 1, "above": 0.0, "stretch_above": None}
        return {k: v for k, v in asdict(leaf).items() if k not in usual or v != usual[k]}
    if not isinstance(leaf, RandomlyRepeated):
        return asdict(leaf)
    candidates = [json.loads(to_json(each)) for each in leaf.candidates]
    return {"candidates": candidates, "shape": leaf.shape, "stop": leaf.stop}


def from_json(text: str) -> Composed:
    """The inverse of `to_json`. Anything it does not know is an error, never a free event."""
    try:
        parts: list[tuple[Event, int]] = []
        rows: list[dict[str, Any]] = json.loads(text)
        if not isinstance(rows, list):
            raise ValueError("rows")
        for row in rows:
            fields = dict(row)
            kind, count = _LEAVES[fields.pop("event")], fields.pop("count")
            if type(count) is not int or count < 1:
                raise ValueError("count")
            if kind is RandomlyRepeated:
                each = fields["candidates"]
                fields["candidates"] = tuple(from_json(json.dumps(rows)) for rows in each)
            parts.append((kind(**fields), count))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerError(
            "A recorded event cannot be read, so its cost is unknown and nothing more can be "
            "spent. Restore the ledger from a copy that this version of riata wrote."
        ) from error
    return compose(*parts)
