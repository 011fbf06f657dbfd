"""The options of `pyfastr reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from pyfastr.cli.options import Json, parse_folder
from pyfastr.cli.voice import Voice

# Those of `pyfastr.experiments`, which is not imported for the sake of a help page.
METHODS = (
    *("fastr", "published", "lasso", "enet", "eeridge", "remurs", "sturm", "surf", "gltrm"),
    "ortrr",
)
EXPERIMENTS = ("table1", "table2", "figure1", "figure2", "table3")
# The paper's number of trials and a patient limit; for a first look, few and short ones. A scan
# cannot be made smaller, so it has more time.
_TRIALS, _QUICK_TRIALS = 20, 3
_BUDGET, _QUICK_BUDGET, _QUICK_SCAN_BUDGET = 600.0, 6.0, 60.0

Experiment = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        help=f"One of {', '.join(EXPERIMENTS)}, or all.",
        autocompletion=lambda: [*EXPERIMENTS, "all"],
    ),
]
Out = Annotated[
    Path,
    typer.Option(metavar="FOLDER", parser=parse_folder, help="Folder of results and report."),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", metavar="", help="Go on with the results in --out, or share them."),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        metavar="",
        help=f"Small sizes, {_QUICK_TRIALS} trials, {_QUICK_BUDGET:g} s a fit "
        f"({_QUICK_SCAN_BUDGET:g} s to scans).",
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME",
        help=f"Methods to run, some of {', '.join(METHODS)}.",
        show_default="all",
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Data sets of each problem.", show_default=str(_TRIALS)),
]
MaxSize = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Leave out samples of more entries than this."),
]
Budget = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        metavar="N",
        help="Seconds of one fit with its tuning.",
        show_default=f"{_BUDGET:g}",
    ),
]
DataHome = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        parser=parse_folder,
        help="Folder of data-science-P1.mat to -P9.mat, for table3.",
        show_default="~/pyfastr_data",
    ),
]
TrainingMetric = Annotated[
    bool,
    typer.Option("--training-metric", metavar="", help="Add what the paper seems to give as MSE."),
]


def reproduce(
    experiment: Experiment,
    out: Out = Path("reproduction"),
    resume: Resume = False,
    quick: Quick = False,
    methods: Methods = None,
    trials: Trials = None,
    max_size: MaxSize = None,
    budget: Budget = None,
    data_home: DataHome = None,
    training_metric: TrainingMetric = False,
    json: Json = False,
) -> None:
    """Run the paper's experiments again, every method on the same data.

    Results are kept as they come: go on with --resume, also from several processes.
    """
    from pyfastr.cli.run_reproduce import make_plan, open_store, run_and_report

    plan = make_plan(
        experiment,
        methods.split(",") if methods is not None else METHODS,
        quick=quick,
        max_size=max_size,
        data_home=data_home,
        n_trials=trials or (_QUICK_TRIALS if quick else _TRIALS),
        budget=budget or (_QUICK_BUDGET if quick else _BUDGET),
        scan_budget=_QUICK_SCAN_BUDGET if quick and not budget else None,
    )
    store = open_store(out, resume)
    run_and_report(plan, store, out, Voice(as_json=json), training_metric=training_metric)
