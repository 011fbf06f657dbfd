"""From results to files: Markdown, LaTeX, figures, and one page of HTML."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pyfastr.display.document import Document, Figure, Section, Table
from pyfastr.display.html import document_to_html
from pyfastr.display.latex import section_to_latex
from pyfastr.display.markdown import document_to_markdown, section_to_markdown
from pyfastr.estimators.atomic import replacing
from pyfastr.experiments.figures import draw_by_sparsity, draw_times_by_size, render
from pyfastr.experiments.methods import MAX_ITER, N_FOLDS, TOL
from pyfastr.experiments.plan import PATIENCE, Plan
from pyfastr.experiments.problems import METHOD_SEED, Problem, Recording, Simulation
from pyfastr.experiments.published import PUBLISHED_METHODS, Metric
from pyfastr.experiments.store import Store
from pyfastr.experiments.studies import Study
from pyfastr.experiments.summary import Summary
from pyfastr.experiments.tables import fastest_table, metric_table, standing_table

_MSE_NOTE = "MSE is the mean of squares on samples that were held out."
_SECONDS = "Seconds of a fit with all its tuning"
_TRAINING = "‖y − ŷ‖₂ / N on the samples fitted, the paper's training metric"
_SEEDS = (
    "The data of trial t (from 0 on) are drawn with random_state=t; folds and starts with "
    f"random_state={METHOD_SEED} + t."
)
_TASK = (
    "Tools against animals in the scans of each participant, 51×61×23 voxels, by regression on "
    "±1; in each trial a fifth of the scans is held out at random, classes in equal shares, epochs "
    "not kept apart. Voxels are centred and scaled by the scans to fit."
)
_STAND_IN = (
    "SIMULATED: no file of CMU2008 was found, so these are not scans of people but a stand-in of "
    "the same geometry, and the paper's numbers do not belong to them."
)
_REASON_LENGTH = 160


def write_report(
    plan: Plan, store: Store, folder: Path, *, training_metric: bool = False
) -> list[Path]:
    """Write all files of a plan whose results are known.

    Parameters
    ----------
    plan : Plan
    store : Store
    folder : Path
    training_metric : bool, default=False
        Whether to add a table of what the paper seems to give as MSE.

    Returns
    -------
    list of Path
        What was written, the page first.
    """
    summary = Summary(plan, store.results())
    sections = [_study_section(summary, study, training_metric) for study in plan.studies]
    sections += [_methods_section(plan), environment_section(store.environments())]
    if failures := _failures_section(summary):
        sections.append(failures)
    document = Document("The experiments of the FasTR paper, run again", _protocol(plan), sections)
    files = {
        "report.html": document_to_html(document).encode(),
        "report.md": document_to_markdown(document).encode(),
    }
    for section in sections[: len(plan.studies)]:
        files |= _section_files(section)
    return [_write(folder / name, content) for name, content in files.items()]


def _section_files(section: Section) -> dict[str, bytes]:
    """Return the files of one experiment by name."""
    files = {f"{section.name}.md": section_to_markdown(section).encode()}
    if latex := section_to_latex(section):
        files[f"{section.name}.tex"] = latex.encode()
    for part in section.parts:
        if isinstance(part, Figure):
            files |= {f"{part.name}.svg": part.svg, f"{part.name}.png": part.png}
    return files


def _write(file: Path, content: bytes) -> Path:
    """Write a file so that nobody sees half of it: another process may write it too."""
    with replacing(file) as whole:
        whole.write(content)
    return file


def _protocol(plan: Plan) -> list[str]:
    """Say how the numbers came about, and how to read them."""
    budgets = sorted({plan.budget_of(problem) for s in plan.studies for problem in s.problems})
    shortest, limits = budgets[0], " or ".join(f"{budget:g} s" for budget in budgets)
    how = (
        f"Every number is a mean over {plan.n_trials} trials, in each of which all methods see the "
        f"same samples. Tuning parameters are chosen by {N_FOLDS}-fold cross-validation (FasTR: or "
        f"by evidence, see Methods), with at most {MAX_ITER} iterations; methods that stop by the "
        f"relative change of the coefficient, as in the paper, stop at {TOL:g}, others by their "
        "own rule. Times are those of a fit with all its tuning, in a process of its own that is "
        f"ended after {limits}."
    )
    cells = (
        "In the tables, “(2/3)” says that two of three trials came to an end and make the mean, "
        f"“> {shortest:g} s” that none did, as those that were begun were ended at that limit, "
        f"“skipped” that the method was ended in {min(PATIENCE, plan.n_trials)} trials of this or "
        "a smaller problem, and bold print the best mean of those that ended in every trial."
    )
    return [how, cells, _SEEDS]


def _study_section(summary: Summary, study: Study, training_metric: bool) -> Section:
    """Collect the text, tables and figures of an experiment."""
    if study.name == "table3":
        return _recordings_section(summary, study)
    parts: list[Table | Figure | None] = []
    if study.name.startswith("figure"):
        parts += [_figure(summary, study), fastest_table(summary, study)]
    parts.append(standing_table(summary, study))
    parts += _simulation_tables(summary, study, training_metric)
    kept = [part for part in parts if part is not None]
    return Section(study.name, study.title, _simulation_text(study), kept)


def _simulation_tables(summary: Summary, study: Study, training_metric: bool) -> list[Table]:
    """Tabulate every metric of a simulated experiment, beside what the paper prints of it."""
    ce: Metric | None = "ce" if study.name == "table1" else None
    mse: Metric | None = "mse" if study.name in PUBLISHED_METHODS else None
    tabulate = partial(metric_table, summary, study)
    tables = [
        tabulate("ce", "Error of the coefficient (CE)", printed=ce),
        tabulate("relative_mse", "Held-out MSE over the variance of y", notes=[_MSE_NOTE]),
        tabulate("mse", "Held-out MSE", printed=mse, notes=[_MSE_NOTE]),
        tabulate("seconds", _SECONDS, best=None),
    ]
    if training_metric:
        tables.append(tabulate("training_metric", _TRAINING, printed=mse, best=None))
    return tables


def _figure(summary: Summary, study: Study) -> Figure:
    """Draw the figure of an experiment."""
    draw = draw_times_by_size if study.name == "figure1" else draw_by_sparsity
    notes = ["Hollow marks at the dashed line are fits that were ended at the limit."]
    if study.name == "figure1":
        notes.append(
            "The paper's own figure has no numbers to copy; its text says that lasso and elastic "
            "net take more than 90 s at 200×200, and all other methods at most 4 s."
        )
    title = "Means by method"
    alt = f"{study.title}, a line for each method; the numbers are in the tables below."
    return render(draw(summary, study), study.name, title, alt, notes)


def _simulation_text(study: Study) -> list[str]:
    """Describe the data of an experiment."""
    problems = [problem for problem in study.problems if isinstance(problem, Simulation)]
    noises = sorted({problem.noise for problem in problems})
    shares = sorted({problem.sparsity for problem in problems})
    simulation = (
        "The paper's simulation: X and the components of W are standard normal, with "
        f"{_percentages(shares)} of the entries of each component set to zero and noise of "
        f"standard deviation {', '.join(f'{noise:g}' for noise in noises)}."
    )
    rounded = [problem.title for problem in problems if problem.dtype.itemsize == 4]
    if not rounded:
        return [simulation]
    return [simulation, f"In float32, to save memory and time: {', '.join(rounded)}."]


def _percentages(shares: list[float]) -> str:
    ends = [f"{share:.0%}" for share in (shares[0], shares[-1])]
    return " to ".join(dict.fromkeys(ends))


def _recordings_section(summary: Summary, study: Study) -> Section:
    """Collect what there is on CMU2008."""
    is_simulated = any(_is_simulated(problem) for problem in study.problems)
    tabulate = partial(metric_table, summary, study)
    tables = [
        tabulate("auc", "Area under the ROC curve", printed="auc", best=max),
        tabulate("seconds", _SECONDS, printed="seconds", best=None),
    ]
    text = [_TASK, *([_STAND_IN] if is_simulated else [])]
    return Section(study.name, study.title, text, tables)


def _is_simulated(problem: Problem) -> bool:
    return isinstance(problem, Recording) and problem.is_simulated


def _methods_section(plan: Plan) -> Section:
    """Say what each method chooses from."""
    rows = [[method.title, method.key, method.tuning] for method in plan.methods]
    table = Table("What is chosen, and how", ["method", "key", "chosen"], rows, is_prose=True)
    return Section("methods", "Methods", [], [table])


def environment_section(environments: Mapping[str, Mapping[str, str]]) -> Section:
    """List versions and machines.

    Parameters
    ----------
    environments : mapping
        Facts by name of the environment.

    Returns
    -------
    Section
    """
    names = list(dict.fromkeys(fact for facts in environments.values() for fact in facts))
    rows = [[name, *(facts.get(name, "–") for facts in environments.values())] for name in names]
    table = Table("Versions and machine", ["", *environments], rows, is_prose=True)
    return Section("environment", "Environment", [], [table])


def _failures_section(summary: Summary) -> Section | None:
    """List what has no numbers and why, if there is anything."""
    rows = [
        [problem.title, method.title, result.status, _shortened(result.reason)]
        for problem, method, result in summary.without_metrics()
    ]
    if not rows:
        return None
    table = Table(
        "First of each kind", ["problem", "method", "status", "reason"], rows, is_prose=True
    )
    return Section("failures", "Fits without a result", [], [table])


def _shortened(reason: str) -> str:
    return reason if len(reason) <= _REASON_LENGTH else reason[:_REASON_LENGTH] + " …"
