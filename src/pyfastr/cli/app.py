"""The commands: what each one takes, and how its errors are told."""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pyfastr.cli.progress import display_for
from pyfastr.experiments.claims import Claims
from pyfastr.experiments.methods import METHODS, Method, known_methods
from pyfastr.experiments.plan import Plan
from pyfastr.experiments.report import write_report
from pyfastr.experiments.runner import run
from pyfastr.experiments.store import Store
from pyfastr.experiments.studies import NAMES, make_study

# The paper's number of trials and a patient limit; for a first look, few and short ones. A scan
# cannot be made smaller, so it has more time.
_TRIALS, _QUICK_TRIALS = 20, 3
_BUDGET, _QUICK_BUDGET, _QUICK_SCAN_BUDGET = 600.0, 6.0, 60.0

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def pyfastr() -> None:
    """Sparse unit-rank tensor regression."""


@app.command()
def reproduce(
    experiment: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}, or all.")],
    out: Annotated[Path, typer.Option(help="Folder of results and report.")] = Path("reproduction"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the results in --out, or share them.")
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=f"Small sizes, {_QUICK_TRIALS} trials, {_QUICK_BUDGET:g} s a fit "
            f"({_QUICK_SCAN_BUDGET:g} s to scans).",
        ),
    ] = False,
    methods: Annotated[
        str, typer.Option(help="Methods to run, with commas between them.")
    ] = ",".join(METHODS),
    trials: Annotated[
        int | None, typer.Option(min=1, help=f"Data sets of each problem.  [default: {_TRIALS}]")
    ] = None,
    max_size: Annotated[
        int | None, typer.Option(min=1, help="Leave out samples of more entries than this.")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0.1, help=f"Seconds of one fit with its tuning.  [default: {_BUDGET:g}]"),
    ] = None,
    data_home: Annotated[
        Path | None,
        typer.Option(
            help="Folder of data-science-P1.mat to -P9.mat, for table3.  [default: ~/pyfastr_data]"
        ),
    ] = None,
    training_metric: Annotated[
        bool, typer.Option("--training-metric", help="Add what the paper seems to give as MSE.")
    ] = False,
) -> None:
    """Run the paper's experiments again, with every method on the same data.

    Results are kept as they come: an interrupted run goes on with --resume, and several processes
    may share the work of one --out.
    """
    names = _checked_names(experiment)
    studies = [
        make_study(name, quick=quick, max_size=max_size, data_home=data_home) for name in names
    ]
    plan = Plan(
        [study for study in studies if study.problems],
        _checked_methods(methods),
        trials or (_QUICK_TRIALS if quick else _TRIALS),
        budget or (_QUICK_BUDGET if quick else _BUDGET),
        _QUICK_SCAN_BUDGET if quick and not budget else None,
    )
    if not plan.studies:
        raise typer.BadParameter(f"no problem of {experiment} has {max_size} entries or fewer.")
    store = _checked_store(out, resume)
    _run_and_report(plan, store, out, training_metric)


def _checked_names(experiment: str) -> list[str]:
    """Return the experiments that are meant, all of which can be carried to the end."""
    if experiment not in (*NAMES, "all"):
        raise typer.BadParameter(
            f"there is no experiment {experiment!r}; choose one of {', '.join(NAMES)}, or all."
        )
    names = list(NAMES) if experiment == "all" else [experiment]
    if any(name.startswith("figure") for name in names) and find_spec("matplotlib") is None:
        raise typer.BadParameter(
            "figures need matplotlib, which is not installed. Run: pip install 'pyfastr[plot]'"
        )
    return names


def _checked_methods(methods: str) -> list[Method]:
    """Return the methods named, in the order of the tables."""
    try:
        return known_methods([key.strip() for key in methods.split(",") if key.strip()])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--methods") from error


def _checked_store(out: Path, resume: bool) -> Store:
    """Open the folder of results; those of an earlier run are not taken up by accident."""
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"{out} is a file; give a folder.", param_hint="--out")
    store = Store(out)
    if store.file.exists() and not resume:
        raise typer.BadParameter(
            f"{out} has results of an earlier run. Add --resume to go on with them, or give "
            "another folder.",
            param_hint="--out",
        )
    return store


def _run_and_report(plan: Plan, store: Store, out: Path, training_metric: bool) -> None:
    """Do what is missing and write the report; an interruption is no error."""
    console = Console(stderr=True)
    try:
        with display_for(console) as display:
            run(plan, store, Claims(out / "claims"), display)
    except KeyboardInterrupt:
        n_answered, n_fits = plan.count(store.results())
        console.print(
            f"Interrupted: {n_answered} of {n_fits} results are kept in {out}. To go on:\n"
            f"  pyfastr {_command_to_resume()}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(130) from None
    page, *others = write_report(plan, store, out, training_metric=training_metric)
    typer.echo(f"Report: {page}")
    typer.echo(f"Also in {out}: {', '.join(file.name for file in others)}, {store.file.name}")


def _command_to_resume() -> str:
    """Return the arguments of this run, and --resume among them."""
    given = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join([*given, "--resume"])
