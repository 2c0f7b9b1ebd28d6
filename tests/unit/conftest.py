"""What tests of the command line share."""

import io
import sys
from dataclasses import dataclass

import pytest

from riata.cli.main import main


@dataclass
class Done:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def riata_command(monkeypatch, capsys):
    """Runs `riata` with arguments; `said` is what a person at a terminal types."""

    def run(*arguments, said=None):
        monkeypatch.setattr(sys, "argv", ["riata", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO() if said is None else _Terminal(said))
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        assert "\x1b" not in told.out + told.err
        return Done(end.value.code or 0, told.out, told.err)

    return run
