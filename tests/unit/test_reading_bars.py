"""Bars over rows that are read: everything they show follows from public numbers.

Files that differ in what is private are read on a terminal, where each state of a bar is drawn, and
must show the same.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.matrix(one_in=11)

PEOPLE, FEATURES = 1_700, [{"name": "x", "kind": "number", "bounds": [0, 1]}]
TARGET = {"name": "y", "bounds": [0, 1]}
OF_PEOPLE = {"person": "id", "people": PEOPLE, "features": FEATURES, "target": TARGET}
OF_ROWS = {"ignore": ["id"], "rows": 3_400, "features": FEATURES, "target": TARGET}


def shown(what, schema, *paths):
    """For each file the texts of the form 3/9 that a terminal showed, without repeats."""
    ours, theirs = pty.openpty()
    program = Path(__file__).with_name("bars.py")
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, program, what, json.dumps(schema), *map(str, paths)]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                read = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            seen += read
    os.close(ours)
    assert process.returncode == 0, seen.decode()
    *each, rest = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode()).split("END")
    assert len(each) == len(paths)
    assert "/" not in re.sub(r"\S*://\S*", "", rest)  # only what Dask says when it is closed
    return [list(dict.fromkeys(re.findall(r"(?<=\s)\d+/(?:\d+|\?)", text))) for text in each]


def write(path, ids):
    path.write_text("id,x,y\n" + "".join(f"{i},0.9,0.5\n" for i in ids))
    return path


def layouts():
    """Neighbours in one person: number 5 has one row, or many, in other places of the file."""
    others = [i for i in range(PEOPLE) if i != 5]
    return {
        "one row": range(PEOPLE),
        "many at the beginning": [5] * 1_100 + others,
        "many at the end": others + [5] * 1_100,
        "everywhere": [i for other in others for i in ((other, 5) if other % 3 else (other,))],
        "nobody's rows too": [""] * 1_200 + list(range(PEOPLE)),
    }


@pytest.mark.long
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("what", ["blocks", "small blocks", "load", "scan", "disk", "auto", "dask"])
def test_a_bar_over_people_shows_no_more_than_how_many_there_are(what, k, tmp_path):
    files = [write(tmp_path / f"{name}.csv", ids) for name, ids in layouts().items()]
    end = f"{k * PEOPLE}/{k * PEOPLE}"
    steps = [] if what in ("blocks", "small blocks", "load") else ["0/3", "1/3", "2/3", "3/3"]
    found = shown(what, {**OF_PEOPLE, "rows_of_a_person": k}, *files)
    assert found == [["0/?", end, *steps]] * len(files)


@pytest.mark.not_quick
@pytest.mark.parametrize("what", ["blocks", "small blocks", "load", "scan", "disk"])
def test_a_bar_over_a_public_number_of_rows_does_not_show_how_many_the_file_has(what, tmp_path):
    files = [write(tmp_path / f"{n}.csv", range(n)) for n in (1, 301, 1_700, 3_400, 4_001)]
    found = shown(what, OF_ROWS, *files)
    assert all(each == found[0] for each in found)
    size = 300 if what == "small blocks" else 1_000
    rows = [f"{done}/3400" for done in (*range(0, 3_400, size), 3_400)]
    assert found[0][: len(rows)] == rows
