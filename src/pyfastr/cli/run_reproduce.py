"""The work of `pyfastr reproduce`: a plan, a folder of results, a report."""

import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import typer
from rich.console import Console

from pyfastr.cli.errors import INTERRUPTED, InputError, as_input_error
from pyfastr.cli.outputs import check_writable, naming
from pyfastr.cli.progress import display_for
from pyfastr.cli.voice import Voice
from pyfastr.experiments.claims import Claims
from pyfastr.experiments.methods import Method, known_methods
from pyfastr.experiments.plan import Plan
from pyfastr.experiments.report import write_report
from pyfastr.experiments.runner import run
from pyfastr.experiments.store import Store
from pyfastr.experiments.studies import NAMES, make_study


def make_plan(
    experiment: str,
    methods: Sequence[str],
    *,
    quick: bool,
    max_size: int | None,
    data_home: Path | None,
    n_trials: int,
    budget: float,
    scan_budget: float | None,
) -> Plan:
    """Collect what is to be run, all of which can be carried to the end.

    Parameters
    ----------
    experiment : str
        One of `NAMES`, or "all".
    methods : sequence of str
    quick : bool
    max_size : int or None
    data_home : Path or None
    n_trials : int
    budget, scan_budget : float
        Seconds of a fit, and of one of scans.

    Returns
    -------
    Plan
    """
    studies = [
        make_study(name, quick=quick, max_size=max_size, data_home=data_home)
        for name in _checked_names(experiment)
    ]
    studies = [study for study in studies if study.problems]
    if not studies:
        raise InputError(f"no problem of {experiment} has {max_size} entries or fewer.")
    return Plan(studies, _checked_methods(methods), n_trials, budget, scan_budget)


def open_store(out: Path, resume: bool) -> Store:
    """Open the folder of results; those of an earlier run are not taken up by accident.

    Parameters
    ----------
    out : Path
    resume : bool

    Returns
    -------
    Store
    """
    with naming("--out", out):
        if out.exists() and not out.is_dir():
            raise InputError(f"--out is {out}, a file; give the name of a folder.")
        store = Store(out)
        (out / "claims").mkdir(exist_ok=True)
        # A folder that was there may take no new file, which the first result would tell too late.
        check_writable(out)
    if store.file.exists() and not resume:
        raise InputError(
            f"--out is {out}, which has results of an earlier run. Add --resume to go on with "
            "them, or give another folder."
        )
    return store


def run_and_report(
    plan: Plan, store: Store, out: Path, voice: Voice, *, training_metric: bool
) -> None:
    """Do what is missing and write the report; an interruption is no error.

    Parameters
    ----------
    plan : Plan
    store : Store
    out : Path
    voice : Voice
    training_metric : bool
    """
    console = Console(stderr=True)
    try:
        with display_for(console) as display:
            run(plan, store, Claims(out / "claims"), display)
    except KeyboardInterrupt:
        _say_how_to_resume(console, plan, store, out)
        raise typer.Exit(INTERRUPTED) from None
    page, *others = write_report(plan, store, out, training_metric=training_metric)
    if not voice.as_json:
        typer.echo(f"Report: {page}")
        typer.echo(f"Also in {out}: {', '.join(file.name for file in others)}, {store.file.name}")
    n_answered, n_fits = plan.count(store.results())
    voice.document(
        {
            "command": "reproduce",
            "experiments": [study.name for study in plan.studies],
            "results": {"answered": n_answered, "fits": n_fits, "file": store.file},
            "files": [page, *others],
        }
    )


def _say_how_to_resume(console: Console, plan: Plan, store: Store, out: Path) -> None:
    """Tell how much is kept, and by which command it goes on."""
    n_answered, n_fits = plan.count(store.results())
    console.print(
        f"Interrupted: {n_answered} of {n_fits} results are kept in {out}. To go on:\n"
        f"  pyfastr {_command_to_resume()}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _command_to_resume() -> str:
    """Return the arguments of this run, and --resume among them."""
    given = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join([*given, "--resume"])


def _checked_names(experiment: str) -> list[str]:
    """Return the experiments that are meant, all of which can be drawn."""
    if experiment not in (*NAMES, "all"):
        raise InputError(
            f"there is no experiment {experiment!r}; choose one of {', '.join(NAMES)}, or all."
        )
    names = list(NAMES) if experiment == "all" else [experiment]
    if any(name.startswith("figure") for name in names) and find_spec("matplotlib") is None:
        raise InputError(
            "figures need matplotlib, which is not installed. Run: pip install 'pyfastr[plot]'"
        )
    return names


def _checked_methods(methods: Sequence[str]) -> list[Method]:
    """Return the methods named, in the order of the tables."""
    with as_input_error(ValueError, what="--methods"):
        return known_methods([key.strip() for key in methods if key.strip()])
