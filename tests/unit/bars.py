"""Draws every state of riata's bars on a terminal: `python bars.py WHAT SCHEMA FILE ...`."""

from __future__ import annotations

import json
import sys

from rich.progress import Progress

from riata import PrivateLasso, read
from riata.data.source import Source


def drawn_each_time(name):
    """Or what is seen would depend on time."""
    method = getattr(Progress, name)

    def called(self, *arguments, **options):
        found = method(self, *arguments, **options)
        self.refresh()
        return found

    return called


def main(what, schema, *paths):
    for name in ("add_task", "update", "advance"):
        setattr(Progress, name, drawn_each_time(name))
    Source.blocks.__kwdefaults__, Source.blocks.__defaults__ = {"progress": False}, (1_000,)
    for path in paths:
        show(what, read(path, json.loads(schema)))
        print("END", flush=True)


def show(what, source):
    if what == "blocks":
        for _ in source.blocks(progress=True):
            pass
    elif what == "small blocks":
        for _ in source.blocks(rows=300, progress=True):
            pass
    elif what == "load":
        source.load(progress=True)
    else:
        options = {"solver": "frank-wolfe", "steps": 3, "verbose": True, "random_state": 0}
        PrivateLasso(1.0, 1e-6, engine=what, **options).fit(source)


if __name__ == "__main__":
    main(*sys.argv[1:])
