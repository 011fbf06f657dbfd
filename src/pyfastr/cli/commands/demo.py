"""The options of `pyfastr demo`."""

from pathlib import Path
from typing import Annotated

import typer

from pyfastr.cli.options import Force, Json, Quiet, parse_folder
from pyfastr.cli.voice import Voice


def demo(
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", parser=parse_folder, help="Folder of the report."),
    ] = Path("demo"),
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a problem of the paper beside other methods. Takes a minute."""
    from pyfastr.cli.run_demo import run_demo

    run_demo(out, Voice(as_json=json, quiet=quiet), force=force)
