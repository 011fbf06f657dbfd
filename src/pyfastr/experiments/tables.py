"""The tables of the experiments, measured and printed numbers side by side."""

from collections.abc import Callable, Sequence
from statistics import median

from pyfastr.display.document import Strong, Table
from pyfastr.experiments.methods import ORACLE, Method
from pyfastr.experiments.problems import Problem, Simulation
from pyfastr.experiments.published import PUBLISHED_METHODS, Metric, published_values
from pyfastr.experiments.studies import Study
from pyfastr.experiments.summary import USEFUL_CE, Summary, format_number

# A coefficient with a smaller error counts as found.
FOUND_CE = 0.05
# An error within this factor of the lowest is as good.
_AS_GOOD = 1.05

_FREE = (
    "Free parameters are those of a unit-rank coefficient, p1 + … + pM − M + 1, and the intercept. "
    "CE is ‖Ŵ − W‖ / ‖W‖: 0 is the truth, 1 is no better than zeros."
)
_PUBLISHED = "Published numbers are copied from the paper, not measured."
_PUBLISHED_MSE = (
    "What the paper prints as MSE seems to be ‖y − ŷ‖₂ / N on the samples that were fitted, so it "
    "cannot be compared with a mean of squares on samples held out."
)


def metric_table(
    summary: Summary,
    study: Study,
    metric: str,
    title: str,
    *,
    printed: Metric | None = None,
    best: Callable[..., str] | None = min,
    notes: Sequence[str] = (),
) -> Table:
    """Tabulate one metric: a row for every problem, a column for every method.

    Parameters
    ----------
    summary : Summary
    study : Study
    metric : str
    title : str
    printed : {"mse", "ce", "seconds", "auc"} or None, default=None
        Which of the paper's numbers to put beside.
    best : {min, max} or None, default=min
        Which of the measured means is set in bold.
    notes : sequence of str
        Sentences to add below.

    Returns
    -------
    Table
    """
    methods = summary.plan.methods
    theirs = _printed_methods(study, printed)
    with_oracle = _has_oracle(study) and metric != "seconds"
    columns = [
        ("", [study.label_title]),
        ("measured", [method.title for method in methods]),
        ("", [ORACLE.title] if with_oracle else []),
        ("published", theirs),
    ]
    rows = []
    for problem in study.problems:
        row = [study.label(problem), *_measured_cells(summary, problem, metric, best)]
        if with_oracle:
            row.append(summary.of(problem, ORACLE).cell(metric))
        rows.append(row + _printed_cells(study, problem, printed, theirs))
    return Table(
        title,
        [name for _, names in columns for name in names],
        rows,
        [(group, len(names)) for group, names in columns if names],
        [*notes, *(_published_notes(printed) if theirs else [])],
    )


def _published_notes(printed: Metric | None) -> list[str]:
    return [_PUBLISHED, _PUBLISHED_MSE] if printed == "mse" else [_PUBLISHED]


def _has_oracle(study: Study) -> bool:
    """Whether the truth is known."""
    return any(isinstance(problem, Simulation) for problem in study.problems)


def _measured_cells(
    summary: Summary, problem: Problem, metric: str, best: Callable[..., str] | None
) -> list[str]:
    """Write the means, the best one in bold."""
    cells = {m.key: summary.of(problem, m).cell(metric) for m in summary.plan.methods}
    means = summary.means(problem, metric)
    if means and best is not None:
        winner = best(means, key=means.__getitem__)
        cells[winner] = Strong(cells[winner])
    return list(cells.values())


def _printed_methods(study: Study, printed: Metric | None) -> list[str]:
    """Return the paper's methods that have a number in one of the rows."""
    if printed is None:
        return []
    found = {m for p in study.problems for m in published_values(study.name, p.title, printed)}
    return [method for method in PUBLISHED_METHODS[study.name] if method in found]


def _printed_cells(
    study: Study, problem: Problem, printed: Metric | None, methods: Sequence[str]
) -> list[str]:
    if printed is None:
        return []
    values = published_values(study.name, problem.title, printed)
    return [f"{values[m]:g}" if m in values else "–" for m in methods]


def standing_table(summary: Summary, study: Study) -> Table | None:
    """Tell how close FasTR comes to the truth, and whether another method comes closer.

    Parameters
    ----------
    summary : Summary
    study : Study
        Of simulated problems.

    Returns
    -------
    Table or None
        None if FasTR was not run.
    """
    if summary.ours is None:
        return None
    problems = [problem for problem in study.problems if isinstance(problem, Simulation)]
    rows = [[study.label(problem), *_standing_cells(summary, problem)] for problem in problems]
    header = [study.label_title, "free parameters", "mean CE", "median", "largest"]
    header += [f"CE < {FOUND_CE:g}", "oracle", "lowest CE of the others", "FasTR is"]
    printed = [published_values("table1", p.title, "ce").get("FasTR") for p in problems]
    if any(value is not None for value in printed):
        header += ["published", "below it"]
        for row, value, problem in zip(rows, printed, problems, strict=True):
            row.extend(_against_paper(summary, problem, value))
    return Table("Where FasTR stands", header, rows, notes=_standing_notes(problems))


def _standing_cells(summary: Summary, problem: Simulation) -> list[str]:
    """Describe the errors of FasTR on one problem."""
    assert summary.ours is not None
    errors = summary.of(problem, summary.ours).values("ce")
    others = summary.means(problem, "ce")
    own = others.pop(summary.ours.key, None)
    titles = {method.key: method.title for method in summary.plan.methods}
    lowest = min(others, key=lambda key: others[key], default="")
    return [
        str(problem.n_free),
        summary.of(problem, summary.ours).cell("ce"),
        format_number(median(errors)) if errors else "–",
        format_number(max(errors)) if errors else "–",
        f"{sum(e < FOUND_CE for e in errors)} of {len(errors)}" if errors else "–",
        summary.of(problem, ORACLE).cell("ce"),
        f"{format_number(others[lowest])} ({titles[lowest]})" if others else "–",
        _verdict(problem, own, others.get(lowest)),
    ]


def _verdict(problem: Simulation, error: float | None, lowest: float | None) -> str:
    """Say in a few words how the error compares."""
    if not problem.is_identifiable:
        return "not to be judged: N too small"
    if error is None:
        return "without a result in some trial"
    if lowest is None:
        return "alone"
    if error <= lowest:
        return "lowest"
    return "within 5 % of the lowest" if error <= _AS_GOOD * lowest else "higher"


def _against_paper(summary: Summary, problem: Problem, printed: float | None) -> list[str]:
    assert summary.ours is not None
    error = summary.of(problem, summary.ours).mean("ce")
    if printed is None or error is None:
        return ["–", "–"]
    return [f"{printed:g}", "yes" if error < printed else "no"]


def _standing_notes(problems: Sequence[Simulation]) -> list[str]:
    notes = [_FREE]
    hopeless = [problem.title for problem in problems if not problem.is_identifiable]
    if hopeless:
        notes.append(
            f"{', '.join(hopeless)}: fewer samples than free parameters, so no method can "
            "identify W; errors in this row say nothing about a method."
        )
    return notes


def fastest_table(summary: Summary, study: Study) -> Table:
    """Name the fastest method that found the coefficient, for every problem.

    Parameters
    ----------
    summary : Summary
    study : Study

    Returns
    -------
    Table
    """
    rows = [[study.label(p), *_fastest_cells(summary, p)] for p in study.problems]
    note = (
        f"Only methods whose mean CE is below {USEFUL_CE:g} and that came to an end in every "
        "trial are compared. Seconds include all tuning."
    )
    title = f"Fastest method with a CE below {USEFUL_CE:g}"
    return Table(title, [study.label_title, "fastest", "seconds", "FasTR", ""], rows, notes=[note])


def _fastest_cells(summary: Summary, problem: Problem) -> list[str]:
    ours = summary.ours
    own = summary.of(problem, ours).cell("seconds") if ours else "not run"
    fastest = summary.fastest(problem)
    if fastest is None:
        return ["–", "–", own, f"no method has a CE below {USEFUL_CE:g}"]
    seconds = summary.of(problem, fastest).cell("seconds")
    return [fastest.title, seconds, own, _who_is_faster(fastest, ours)]


def _who_is_faster(fastest: Method, ours: Method | None) -> str:
    """Compare the fastest method with FasTR, if that was run."""
    if ours is None:
        return ""
    return "FasTR is the fastest" if fastest is ours else f"{fastest.title} is faster than FasTR"
