"""The options of `pyfastr predict`."""

from pathlib import Path
from typing import Annotated

import typer

from pyfastr.cli.options import (
    DATA_HELP,
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


def predict(
    model: Model,
    data: Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Table of predictions, .csv or .tsv.",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ],
    covariates: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:col1,col2",
            help="The columns that the model was fitted with; FILE is enough if they have the "
            "same names.",
            rich_help_panel=DATA_PANEL,
        ),
    ] = None,
    samples_axis: Axis = SamplesAxis.first,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict new samples by a model: a table with a row for each."""
    from pyfastr.cli.run_predict import run_predict

    run_predict(
        model,
        data,
        output,
        Voice(as_json=json, quiet=quiet),
        covariates=covariates,
        axis=samples_axis,
        force=force,
    )
