"""The options of `pyfastr fit`."""

from pathlib import Path
from typing import Annotated

import typer

from pyfastr.cli.errors import InputError
from pyfastr.cli.options import (
    DATA_HELP,
    DATA_PANEL,
    OUTPUT_PANEL,
    Axis,
    Force,
    Json,
    Loss,
    Quiet,
    SamplesAxis,
)
from pyfastr.cli.voice import Voice

_MODEL = "Model"

Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A value for each sample: .npy, table.csv:column (or .tsv), or just a name in "
        "the file of DATA.",
    ),
]
Covariates = Annotated[
    str | None,
    typer.Option(
        metavar="FILE:col1,col2",
        help="Columns with a coefficient of their own, without penalty.",
        rich_help_panel=DATA_PANEL,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="FILE:column",
        help="Samples with the same value stay in one fold.",
        rich_help_panel=DATA_PANEL,
    ),
]
Mask = Annotated[
    Path | None,
    typer.Option(
        metavar="IMAGE",
        help="Mask of images.",
        show_default="computed",
        rich_help_panel=DATA_PANEL,
    ),
]
Classify = Annotated[
    bool,
    typer.Option("--classify", metavar="", help="Tell two classes apart.", rich_help_panel=_MODEL),
]
LossOption = Annotated[
    Loss,
    typer.Option(help="logistic for --classify, poisson for counts.", rich_help_panel=_MODEL),
]
Cv = Annotated[
    bool,
    typer.Option(
        "--cv/--no-cv",
        metavar="",
        help="Choose the parameters by folds and score them there, or fit once.",
        rich_help_panel=_MODEL,
    ),
]
NTerms = Annotated[
    str | None,
    typer.Option(
        metavar="1,2,...",
        help="Numbers of unit-rank terms to choose from; one value fixes it.",
        show_default="as many as folds show to pay; 1 with --no-cv",
        rich_help_panel=_MODEL,
    ),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="0,0.1,...",
        help="Relative thresholds to choose from, from 0 to below 1; one value fixes it.",
        rich_help_panel=_MODEL,
    ),
]
Ridge = Annotated[
    str | None,
    typer.Option(
        metavar="0.01,1,...",
        help="Relative ridges to choose from, from 0 on; one value fixes it.",
        rich_help_panel=_MODEL,
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="Centre and scale X, by all samples: each element, all as one (global), or each "
        "slice of some modes (mode:0,1).",
        rich_help_panel=_MODEL,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="N",
        help="Number of folds.",
        show_default="5",
        rich_help_panel=_MODEL,
    ),
]
Seed = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Seed of folds and starts.", rich_help_panel=_MODEL),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Where to write how far the fit is, every two minutes: after an interruption the same "
        "command goes on from there. Removed at the end.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Model file, .fastr.", rich_help_panel=OUTPUT_PANEL
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Report to write, .html.", rich_help_panel=OUTPUT_PANEL),
]
CoefImg = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Coefficient image to write, .nii or .nii.gz.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]


def fit(
    data: Data,
    target: Target,
    *,
    covariates: Covariates = None,
    groups: Groups = None,
    mask: Mask = None,
    samples_axis: Axis = SamplesAxis.first,
    classify: Classify = False,
    loss: LossOption = Loss.squared,
    cv: Cv = True,
    n_terms: NTerms = None,
    threshold: Threshold = None,
    ridge: Ridge = None,
    scale: Scale = "none",
    folds: Folds = None,
    seed: Seed = 0,
    output: Output,
    report: Report = None,
    coef_img: CoefImg = None,
    checkpoint: Checkpoint = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model, choosing its parameters by cross-validation.

    One command from a folder of images and a table to a model, a coefficient image and a report:

        pyfastr fit scans/ people.csv:score -o model.fastr --coef-img coef.nii.gz --report fit.html
    """
    from pyfastr.cli.choices import Choices
    from pyfastr.cli.run_fit import FitFiles, run_fit

    if folds is not None and not cv:
        raise InputError("--folds is of --cv; leave it out with --no-cv.")
    voice = Voice(as_json=json, quiet=quiet)
    choices = Choices.parse(
        n_terms,
        threshold,
        ridge,
        cv=cv,
        classify=classify,
        loss=loss.value,
        folds=folds or 5,
        seed=seed,
        scale=scale,
        verbose=voice.verbose,
        checkpoint=checkpoint,
    )
    run_fit(
        data,
        target,
        FitFiles(output, report, coef_img),
        choices,
        voice,
        covariates=covariates,
        groups=groups,
        mask=mask,
        axis=samples_axis,
        force=force,
    )
