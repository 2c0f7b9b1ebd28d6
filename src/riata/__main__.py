"""`python -m riata`: the command line, where no script is installed."""

from riata.cli import main

main()
