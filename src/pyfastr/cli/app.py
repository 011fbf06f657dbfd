"""The `pyfastr` command: what holds for all commands."""

from typing import Annotated

import typer

from pyfastr import __version__
from pyfastr.cli.commands.demo import demo
from pyfastr.cli.commands.fit import fit
from pyfastr.cli.commands.info import info
from pyfastr.cli.commands.predict import predict
from pyfastr.cli.commands.report import report
from pyfastr.cli.commands.reproduce import reproduce
from pyfastr.cli.commands.simulate import simulate
from pyfastr.cli.errors import PlainGroup

_EPILOG = (
    "Exit codes: 0 done, 1 unexpected failure, 2 bad input or usage, 129 hung up, 130 "
    "interrupted, 143 terminated. PYFASTR_TRACEBACK=1 in the environment shows the traceback of an "
    "error."
)

app = typer.Typer(
    cls=PlainGroup,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pyfastr {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def pyfastr(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            help="Show the version.",
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Sparse tensor regression: images or arrays in, a model and a report out."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _command in (fit, predict, report, info, simulate, reproduce, demo):
    app.command()(_command)
