"""Runs that nobody can count by what they say."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_lock = threading.Lock()
_suppression = ExitStack()
_searches = 0


@contextmanager
def suppressed_output() -> Iterator[None]:
    """No warning and no log line of this process, in any thread, until the last search is over.

    How many runs a search has is secret, and each of them would warn or log again, engines in
    threads of their own. What public facts say is said before the first of them.
    """
    global _searches
    with _lock:
        if not _searches:
            _suppression.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            _suppression.callback(logging.disable, logging.root.manager.disable)
            logging.disable(logging.CRITICAL)
        _searches += 1
    try:
        yield
    finally:
        with _lock:
            _searches -= 1
            if not _searches:
                _suppression.close()
