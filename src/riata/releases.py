"""A record of every release, for auditors: what is public about it, and nothing else.

A record holds plain numbers, texts and copies of arrays. It refers to no query, engine or row, so
whoever keeps it keeps what was released and no more; and nothing that is done to it comes back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.mechanisms.base import Mechanism
from riata.privacy.events import Event
from riata.vectors import Vector


@dataclass(frozen=True, eq=False)
class Described:
    """A query, a mechanism or a part of one as plain data.

    Attributes
    ----------
    name : str
        The name of its class.
    parameters : mapping of str to object
        Numbers, texts, copies of arrays, vectors, tuples and further descriptions.
    """

    name: str
    parameters: Mapping[str, Any]

    def __getitem__(self, parameter: str) -> Any:
        return self.parameters[parameter]

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={_short(value)}" for key, value in self.parameters.items())
        return f"{self.name}({inside})"

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Release:
    """What a curator released: all of it is public, and charged.

    Attributes
    ----------
    number : int
        Its place among the releases of a run, from 0.
    part : int
        The part of the rows that it is about, of solvers that split them; otherwise 0.
    query : Described
        What was asked, with its public parameters.
    mechanism : Described
    event : Event
        What it costs.
    norm : str or None
        "l1", "l2" or "linf": the norm that the sensitivity is in. None for a mechanism that does
        not go by one number.
    sensitivity : float or None
        The largest change of the query between neighbours, which the noise is scaled to.
    value : int, ndarray, Vector or mapping
        What was released: the number of a candidate, numbers with noise, or a model; of a search
        the number of its best candidate, with its score, coefficients and intercept. Of exact
        answers nothing is known here.
    """

    number: int
    part: int
    query: Described
    mechanism: Described
    event: Event
    norm: str | None
    sensitivity: float | None
    value: Any = field(repr=False)


Observer = Callable[[Release], object]

_observers: ContextVar[tuple[Observer, ...]] = ContextVar("release observers", default=())


@contextmanager
def on_release(callback: Observer) -> Iterator[None]:
    """Call `callback` with a `Release` after every release of the fits in a `with` block.

    Parameters
    ----------
    callback : callable
        Takes a `Release`. It is called after the release was charged, drawn and, with a
        checkpoint, written down. What it returns is ignored; what it raises ends the fit.

    Notes
    -----
    *Privacy.* A record shows what is released and charged anyway, and public facts: never a row,
    nor an exact sum. Where rows are public (`adjacency="replace-label"`) answers about rows alone
    are exact, and records of them may show rows. A record is a copy, so a callback cannot change a
    fit. Of a `PrivateSearch` only the model that it returns is released, and so one record is made
    of a whole search.

    Blocks nest: each callback is called, the outermost first. They hold for the thread or the
    asyncio task that they are in, as `contextvars` do. A run that goes on from a checkpoint shows
    its earlier releases too, with the same numbers. A compiled path makes many selections at once,
    and has a record for each. With `random_state`, noise is known and nothing is protected.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateLasso
    >>> from riata.audit import on_release
    >>> seen = []
    >>> model = PrivateLasso(1.0, 1e-6, bounds=Bounds(x=1.0, y=1.0), solver="frank-wolfe", steps=2)
    >>> with on_release(seen.append):
    ...     _ = model.fit(np.ones((20, 3)), np.ones(20))
    >>> [release.mechanism.name for release in seen]
    ['ExponentialMechanism', 'GaussianMechanism', 'ExponentialMechanism', 'GaussianMechanism']
    """
    if not callable(callback):
        raise InvalidArgument(
            f"on_release needs a function of one Release, got {type(callback).__name__}. "
            "Pass a list's append, for example."
        )
    token = _observers.set((*_observers.get(), callback))
    try:
        yield
    finally:
        _observers.reset(token)


@contextmanager
def unobserved() -> Iterator[None]:
    """For runs whose releases are used inside and not released."""
    token = _observers.set(())
    try:
        yield
    finally:
        _observers.reset(token)


def notify(
    query: Any, mechanism: Mechanism, value: Any, *, part: int, numbers: Iterator[int]
) -> None:
    """Tell whoever observes of a release, or of each that it consists of."""
    observers = _observers.get()
    if not observers:
        return
    for asked, how, found in mechanism.components(query, value):
        record = Release(
            next(numbers), part, described(asked), described(how), how.event, how.norm,
            how.sensitivity(asked), plain(found),
        )  # fmt: skip
        for observer in observers:
            observer(record)


def notify_of_search(event: Event, n_candidates: int, best: Mapping[str, Any]) -> None:
    """Tell whoever observes of a search over candidates, which releases its best model only."""
    query = Described("Search", {"n_candidates": n_candidates})
    record = Release(0, 0, query, described(event), event, None, None, plain(best))
    for observer in _observers.get():
        observer(record)


def described(thing: Any) -> Described:
    """The parameters of a dataclass, or of anything else how it prints."""
    parameters = {
        each.name: plain(getattr(thing, each.name))
        for each in (dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ())
    }
    return Described(type(thing).__name__, parameters)


def plain(value: Any) -> Any:
    """A copy of a value that refers to nothing else."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        copy = value.copy()
        copy.setflags(write=False)
        return copy
    if isinstance(value, Vector):  # without where it came from
        return Vector(value.size, plain(value.support), plain(value.values), value.offset)
    if isinstance(value, tuple | list):
        return tuple(plain(each) for each in value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return described(value) if dataclasses.is_dataclass(value) else repr(value)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<array {'x'.join(map(str, value.shape))}>"
    if isinstance(value, Vector):
        return f"<vector {value.size}>"
    return repr(value)
