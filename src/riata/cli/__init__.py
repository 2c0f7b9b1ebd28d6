"""The command line: thin, every command is a function of the library."""

from riata.cli.main import main

__all__ = ["main"]
