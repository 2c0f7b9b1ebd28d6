"""Runs that nobody can count by what they say."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

#: Packages whose log lines may come with a run.
_PACKAGES = ("asyncio", "dask", "distributed", "numba", "riata", "tornado")


@contextmanager
def silence() -> Iterator[None]:
    """No warning of the process and no log line of an engine, in any thread.

    How many runs a search has is secret, and each of them would warn or log again. What a warning
    could say from public facts is said before the first of them.
    """
    names = [name for name in logging.root.manager.loggerDict if name.startswith(_PACKAGES)]
    heard = [log for log in map(logging.getLogger, {*_PACKAGES, *names}) if not log.disabled]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for log in heard:
                log.disabled = True
            yield
        finally:
            for log in heard:
                log.disabled = False
