"""A person at a terminal: types commands, and sees what they print."""

import io
import os
import shlex
import sys

import pytest

from riata.cli.main import main


def pytest_collection_modifyitems(items):
    for item in items:
        if "journeys" in item.nodeid:
            item.add_marker(pytest.mark.long)


class _Terminal(io.StringIO):
    def isatty(self):
        return True


class Person:
    """Follows the documentation in a folder with nothing but their files."""

    def __init__(self, folder, monkeypatch, capsys):
        self.folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys
        self.status, self.printed, self.screen = 0, "", ""

    def writes(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def types(self, line, answers=None):
        """Types a command, and answers what it asks."""
        self._monkeypatch.setattr(sys, "argv", shlex.split(line))
        stdin = io.StringIO() if answers is None else _Terminal(answers)
        self._monkeypatch.setattr(sys, "stdin", stdin)
        assert sys.argv[0] == "riata"
        with pytest.raises(SystemExit) as end:
            main()
        told = self._capsys.readouterr()
        self.status, self.printed = end.value.code or 0, told.out
        self.screen = " ".join((told.err + told.out).split())
        assert "Traceback" not in self.screen
        return self

    def sees(self, *texts):
        """What is on the screen, in this order."""
        at = 0
        for text in texts:
            found = self.screen.find(text, at)
            assert found >= 0, f"{text!r} is not on the screen after the others: {self.screen}"
            at = found
        return self

    def is_refused(self, status, *texts):
        assert self.status == status, self.screen
        return self.sees(*texts)

    def is_done(self, *texts):
        assert self.status == 0, self.screen
        return self.sees(*texts)


@pytest.fixture
def person(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    os.environ.pop("RIATA_DEBUG", None)
    return Person(tmp_path, monkeypatch, capsys)
