"""The command `version`."""

import sys

import typer

from sinkbench import __version__
from sinkbench.environment.machine import commit
from sinkbench.place import CHECKOUT

app = typer.Typer(rich_markup_mode=None)


@app.command()
def version() -> None:
    """As `--version` does. A "+" behind the commit: files of the checkout were changed since."""
    found = commit(CHECKOUT)
    sys.stdout.write(f"{__version__}{f' (commit {found})' if found else ''}\n")
