"""`python -m crewlet`: the same as the console script."""

from crewlet.cli.entry import main

main()
