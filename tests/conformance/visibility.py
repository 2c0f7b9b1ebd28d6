"""Everything that a person could see of a run, in a form that can be compared.

Two runs on neighbours may differ in what they release, and in nothing else. So the first run's
releases are written down, and given to the second one in place of its own, which are drawn all the
same: then all that follows from releases is equal, and what still differs follows from a row.
"""

import atexit
import copy
import functools
import io
import logging
import os
import sys
import tempfile
import types
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import fields, is_dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from scipy import sparse

import riata.estimators.local_base
from riata.curator import Curator
from riata.vectors import Vector

#: Loggers that speak of the compiler, which is warm or cold, and of nothing else.
_COMPILER = ("numba", "llvmlite")


class Releases:
    """The releases of a first run, which are those of all later ones too."""

    def __init__(self):
        self._script, self._seen, self._recording = [], [], True

    @contextmanager
    def attached(self):
        """Curators and devices release through this object."""
        self._seen, release, randomize = [], Curator.release, riata.estimators.local_base.randomize

        def from_curator(curator, query, mechanism, part=0, **how):
            scripted = copy.copy(mechanism)

            def instead(query, engine, noise):
                real = mechanism.release(query, engine, noise)
                facts = (type(query).__name__, type(engine).__name__, repr(mechanism.event), part)
                return self._instead(real, facts)

            object.__setattr__(scripted, "release", instead)
            return release(curator, query, scripted, part, **how)

        def from_devices(task, rows, targets, noise):
            return self._instead(randomize(task, rows, targets, noise), ("randomize", rows.shape))

        with (
            mock.patch.object(Curator, "release", from_curator),
            mock.patch.object(riata.estimators.local_base, "randomize", from_devices),
        ):
            yield self._seen
        self._recording = False

    def _instead(self, real, facts):
        place = len(self._seen)
        self._seen.append((facts, frozen(real, values=False)))
        if self._recording:
            self._script.append(real)
        known = self._script[place] if place < len(self._script) else real
        return copy.deepcopy(known)


def seen(run, releases=None):
    """What a person sees of `run()`, which is called with an empty folder of its own.

    Parameters
    ----------
    run : callable
        Returns what the person is left with.
    releases : Releases, optional

    Returns
    -------
    dict
        By kinds: an error, what was left, warnings, log lines, both streams, progress, files.
    """
    found, releases, folder = {}, releases or Releases(), _folder()
    with (
        _warnings() as found["warnings"],
        _log() as found["log lines"],
        _progress() as found["progress"],
        _streams() as found["streams"],
        releases.attached() as found["releases"],
    ):
        try:
            found["left"] = frozen(run(folder))
        except Exception as error:
            found["error"] = [f"{type(e).__name__}: {e} {e.args!r}" for e in _chain(error)]
    found["files"] = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        found["files"].append((str(path.relative_to(folder)), path.stat().st_size))
        path.unlink()
    return found


@functools.cache
def _folder():
    """One for all runs, empty before each: a new one takes as long as a fit."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def differences(first, second):
    """The kinds in which two runs differ, with both sides of the first place where they do."""
    return {
        kind: _narrowed(first.get(kind), second.get(kind))
        for kind in sorted({*first, *second})
        if first.get(kind) != second.get(kind)
    }


def _narrowed(first, second):
    sequences = isinstance(first, list | tuple) and isinstance(second, list | tuple)
    if not sequences or len(first) != len(second):
        return first, second
    for one, other in zip(first, second, strict=True):
        if one != other:
            return _narrowed(one, other)
    return first, second


def frozen(value, *, values=True):
    """A value as tuples of plain ones. Without `values`, only types, shapes and names."""
    return _frozen(value, values, {})


def _frozen(value, values, met):
    if isinstance(value, bool | int | float | complex | str | bytes | type(None)):
        same = repr(value) if values else ""
        return (type(value).__name__, same)
    if isinstance(
        value, type | types.FunctionType | types.MethodType | np.dtype | functools.partial
    ):
        return ("named", getattr(value, "__qualname__", str(value)))
    if id(value) in met:
        return ("met before", met[id(value)])
    met[id(value)] = len(met)
    inside = functools.partial(_frozen, values=values, met=met)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        held = tuple(map(inside, array.ravel())) if array.dtype == object else array.tobytes()
        return (type(value).__name__, array.dtype.str, array.shape, held if values else "")
    if sparse.issparse(value):
        arrays = (value.shape, value.dtype.str) + ((value.toarray().tobytes(),) if values else ())
        return (type(value).__name__, *arrays)
    if isinstance(value, dict):
        return ("dict", tuple((inside(key), inside(each)) for key, each in value.items()))
    if isinstance(value, list | tuple | set | frozenset):
        parts = map(inside, value)
        return (type(value).__name__, *(sorted(parts) if isinstance(value, set) else parts))
    if isinstance(value, Vector) and not values:
        return ("Vector", value.size)  # which entries are not 0 is a part of its value
    parts = dict(getattr(value, "__dict__", {}))
    if is_dataclass(value):
        parts |= {each.name: getattr(value, each.name, None) for each in fields(value)}
    return (type(value).__name__, tuple((name, inside(each)) for name, each in parts.items()))


def _chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@contextmanager
def _warnings():
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += [(each.category.__name__, str(each.message)) for each in caught]


@contextmanager
def _log():
    found, root = [], logging.getLogger()

    class Lines(logging.Handler):
        def emit(self, record):
            if not record.name.startswith(_COMPILER):
                found.append((record.name, record.levelname, record.getMessage()))

    handler, level = Lines(), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield found
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@contextmanager
def _progress():
    """Every total and every move of rich's progress bars, which draw nothing."""
    found = []

    class Progress:
        def __init__(self, *columns, **options):
            found.append("opened")

        def __enter__(self):
            return self

        def __exit__(self, *error):
            found.append("closed")

        def __getattr__(self, name):
            return lambda *arguments, **options: found.append((name, arguments, options))

    with mock.patch("rich.progress.Progress", Progress):
        yield found


@contextmanager
def _streams():
    """Standard output and standard error: Python's, and those of the process."""
    found, out, err = [], io.StringIO(), io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with tempfile.TemporaryFile() as file:
        kept = [os.dup(number) for number in (1, 2)]
        try:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            with redirect_stdout(out), redirect_stderr(err):
                yield found
        finally:
            for number, before in zip((1, 2), kept, strict=True):
                os.dup2(before, number)
                os.close(before)
        file.seek(0)
        found += [out.getvalue(), err.getvalue(), file.read().decode("utf-8", "replace")]
