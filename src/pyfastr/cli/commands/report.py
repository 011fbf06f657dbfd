"""The options of `pyfastr report`."""

from pathlib import Path
from typing import Annotated

import typer

from pyfastr.cli.errors import InputError
from pyfastr.cli.options import (
    DATA_PANEL,
    OUTPUT_PANEL,
    Axis,
    Force,
    Json,
    Model,
    Quiet,
    SamplesAxis,
)
from pyfastr.cli.voice import Voice


def report(
    model: Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Report to write, .html.",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Further samples to score the model on, as in fit.",
            rich_help_panel=DATA_PANEL,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="TARGET", help="Their target, as in fit.", rich_help_panel=DATA_PANEL),
    ] = None,
    covariates: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:col1,col2",
            help="Their covariates, as in fit.",
            rich_help_panel=DATA_PANEL,
        ),
    ] = None,
    background: Annotated[
        Path | None,
        typer.Option(
            metavar="IMAGE",
            help="Anatomical image under the coefficient; for models of images.",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    samples_axis: Axis = SamplesAxis.first,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report of a model: one HTML file that needs no network."""
    from pyfastr.cli.run_report import run_report

    if (data is None) != (target is None):
        raise InputError("--data and --target go together; give both or neither.")
    if covariates is not None and data is None:
        raise InputError("--covariates are those of --data; give it too.")
    run_report(
        model,
        output,
        Voice(as_json=json, quiet=quiet),
        data=data,
        target=target,
        covariates=covariates,
        background=background,
        axis=samples_axis,
        force=force,
    )
