import io
import re
from statistics import mean

import pytest

from pyfastr.display.document import Strong
from pyfastr.experiments.figures import draw_by_sparsity, draw_times_by_size, render
from pyfastr.experiments.methods import METHODS, ORACLE
from pyfastr.experiments.plan import Plan
from pyfastr.experiments.problems import Recording, Simulation
from pyfastr.experiments.published import published_values
from pyfastr.experiments.report import write_report
from pyfastr.experiments.store import Result, Store
from pyfastr.experiments.studies import Study
from pyfastr.experiments.summary import Summary, format_number
from pyfastr.experiments.tables import fastest_table, metric_table, standing_table

HOPELESS, FEASIBLE = Simulation((10, 10), 10), Simulation((5, 5, 5), 100)
FASTR, LASSO, SURF = METHODS["fastr"], METHODS["lasso"], METHODS["surf"]


def plan_of(*problems, methods=(FASTR, LASSO, SURF), name="table1", n_trials=2):
    return Plan([Study(name, "A study", problems)], list(methods), n_trials, 10.0)


def rows_of(table):
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


@pytest.fixture
def results(lab):
    """Two trials: the lasso is fast and wrong, SURF does not come to an end."""
    found = []
    for problem in (HOPELESS, FEASIBLE):
        for trial in range(2):
            found += [
                lab.result(problem, trial, "fastr", seconds=3.0 + trial, ce=0.01 + 0.02 * trial),
                lab.result(problem, trial, "lasso", seconds=0.25, ce=0.75 + trial, mse=40.0),
                lab.result(problem, trial, "surf", status="timeout", seconds=10.0),
                lab.result(problem, trial, "oracle", ce=0.005),
            ]
    return lab.known(*found)


def test_cells_are_the_means_of_the_lines(results):
    plan = plan_of(HOPELESS, FEASIBLE)
    summary = Summary(plan, results)
    for metric in ("ce", "mse", "relative_mse", "training_metric"):
        table = metric_table(summary, plan.studies[0], metric, "title")
        for problem, row in zip(plan.studies[0].problems, table.rows, strict=True):
            for method, cell in zip((FASTR, LASSO), row[1:3], strict=True):
                keys = [(problem.key, trial, method.key) for trial in range(2)]
                assert cell == format_number(mean(results[k].metrics[metric] for k in keys))
            assert row[3] == "> 10 s"
            oracle = [results[problem.key, trial, "oracle"].metrics[metric] for trial in range(2)]
            assert row[4] == format_number(mean(oracle))


def test_the_lowest_error_is_bold_and_no_time_is(results):
    plan = plan_of(HOPELESS, FEASIBLE)
    table = metric_table(Summary(plan, results), plan.studies[0], "ce", "title", printed="ce")
    for row in table.rows:
        assert [isinstance(cell, Strong) for cell in row[1:4]] == [True, False, False]
    times = metric_table(Summary(plan, results), plan.studies[0], "seconds", "title", best=None)
    assert not any(isinstance(cell, Strong) for row in times.rows for cell in row)


def test_published_values_stand_apart_and_are_labelled(results):
    plan = plan_of(HOPELESS, FEASIBLE)
    table = metric_table(Summary(plan, results), plan.studies[0], "ce", "title", printed="ce")
    assert table.groups == [*(("", 1), ("measured", 3), ("", 1), ("published", 5))]
    assert table.rows[0][5:] == ["0.7717", "0.8398", "0.9989", "–", "3.1381"]
    assert table.rows[1][5:] == ["0.1205", "0.8524", "0.4507", "0.8417", "–"]


@pytest.mark.parametrize(
    ("experiment", "row", "metric", "method", "value"),
    [
        ("table1", "10×10 (10)", "ce", "FasTR", 0.7717),
        ("table1", "300×300 (9000)", "mse", "Remurs", 10.978),
        ("table1", "30×30×30 (100)", "ce", "LR", 1.0495),
        ("table1", "400×400×5 (4000)", "mse", "SURF", 107.6186),
        ("table1", "200×200 (4000)", "ce", "GLTRM", 62.9425),
        ("table2", "100×100×5 (450)", "mse", "SURF", 94.4651),
        ("table3", "#1", "auc", "Elastic Net", 0.9566),
        ("table3", "#9", "seconds", "SURF", 0.196),
    ],
)
def test_published_values_are_those_of_the_paper(experiment, row, metric, method, value):
    assert published_values(experiment, row, metric)[method] == value


def test_what_the_paper_does_not_print_is_not_there():
    assert set(published_values("table1", "300×300×5 (2250)", "ce")) == {"FasTR", "Remurs", "SURF"}
    assert published_values("table1", "7×7 (5)", "ce") == {}


def test_the_standing_of_fastr_says_where_nothing_can_be_identified(results):
    plan = plan_of(HOPELESS, FEASIBLE)
    table = standing_table(Summary(plan, results), plan.studies[0])
    hopeless, feasible = rows_of(table)
    assert hopeless["FasTR is"] == "not to be judged: N too small"
    assert "10×10 (10): fewer samples than free parameters, so no method" in table.notes[1]
    assert feasible["FasTR is"] == "lowest"
    assert feasible["mean CE"] == "0.0200"
    assert feasible["CE < 0.05"] == "2 of 2"
    assert feasible["lowest CE of the others"] == "1.25 (Lasso)"
    assert (feasible["published"], feasible["below it"]) == ("0.1205", "yes")


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.1, "lowest"), (0.104, "within 5 % of the lowest"), (0.2, "higher")]
)
def test_a_lower_error_of_another_method_is_told(lab, ours, verdict):
    plan = plan_of(FEASIBLE, methods=(FASTR, LASSO), n_trials=1)
    found = lab.known(
        lab.result(FEASIBLE, 0, "fastr", ce=ours), lab.result(FEASIBLE, 0, "lasso", ce=0.1)
    )
    (row,) = rows_of(standing_table(Summary(plan, found), plan.studies[0]))
    assert row["FasTR is"] == verdict


def test_a_mean_of_some_trials_is_not_compared(lab):
    plan = plan_of(FEASIBLE, methods=(FASTR, LASSO), n_trials=2)
    ours = [lab.result(FEASIBLE, 0, "fastr"), lab.result(FEASIBLE, 1, "fastr", status="timeout")]
    found = lab.known(*ours, *(lab.result(FEASIBLE, t, "lasso", ce=0.9) for t in range(2)))
    (row,) = rows_of(standing_table(Summary(plan, found), plan.studies[0]))
    assert row["mean CE"] == "0.100 (1/2)"
    assert row["FasTR is"] == "without a result in some trial"


def test_a_run_without_fastr_has_no_standing(lab):
    plan = plan_of(FEASIBLE, methods=(LASSO,), n_trials=1)
    summary = Summary(plan, lab.known(lab.result(FEASIBLE, 0, "lasso", seconds=0.25)))
    assert standing_table(summary, plan.studies[0]) is None
    (row,) = fastest_table(summary, plan.studies[0]).rows
    assert row[1:] == ["Lasso", "0.250", "not run", ""]


def test_the_fastest_method_is_one_that_found_the_coefficient(lab, results):
    plan = plan_of(FEASIBLE, name="figure1")
    (row,) = fastest_table(Summary(plan, results), plan.studies[0]).rows
    # The lasso takes a tenth of the time, but its error is above 0.5.
    assert row[1:] == ["FasTR", "3.50", "3.50", "FasTR is the fastest"]
    good = [lab.result(FEASIBLE, t, "lasso", seconds=0.25, ce=0.4) for t in range(2)]
    (row,) = fastest_table(Summary(plan, {**results, **lab.known(*good)}), plan.studies[0]).rows
    assert row[1:] == ["Lasso", "0.250", "3.50", "Lasso is faster than FasTR"]


def test_trials_without_an_end_are_told(lab):
    plan = plan_of(FEASIBLE, methods=(LASSO,), n_trials=3)
    found = lab.known(
        lab.result(FEASIBLE, 0, "lasso", ce=0.2),
        lab.result(FEASIBLE, 1, "lasso", status="failed", reason="MemoryError: no room"),
        lab.result(FEASIBLE, 2, "lasso", ce=0.4),
    )
    summary = Summary(plan, found)
    assert summary.of(FEASIBLE, LASSO).cell("ce") == "0.300 (2/3)"
    assert summary.fastest(FEASIBLE) is None
    assert [r.reason for _, _, r in summary.without_metrics()] == ["MemoryError: no room"]


def lines_of(panel):
    """Points of the lines with a name, by name."""
    named = [line for line in panel.lines if not line.get_label().startswith("_")]
    return {line.get_label(): line.get_xydata().tolist() for line in named}


def test_figure_1_draws_the_mean_seconds_by_size_in_a_panel_for_each_order(results):
    plan = plan_of(HOPELESS, FEASIBLE, name="figure1")
    drawing = draw_times_by_size(Summary(plan, results), plan.studies[0])
    matrices, cubes = drawing.axes
    expected = {"FasTR": [[0, 3.5]], "Lasso": [[0, 0.25]], "SURF": []}
    assert lines_of(matrices) == lines_of(cubes) == expected
    assert [label.get_text() for label in cubes.get_xticklabels()] == ["5×5×5"]
    hollow = [line for line in cubes.lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xydata().tolist() for line in hollow] == [[], [], [[0.05, 10.0]]]
    legend = [text.get_text() for text in drawing.legends[0].get_texts()]
    assert legend == ["FasTR", "Lasso", "SURF"]


def test_figure_2_draws_time_and_error_by_sparsity(lab):
    problems = [Simulation((5, 4), 40, sparsity=share, noise=0.2) for share in (0.2, 0.6)]
    plan = plan_of(*problems, methods=(FASTR,), name="figure2", n_trials=1)
    found = lab.known(
        lab.result(problems[0], 0, "fastr", seconds=2.0, relative_mse=0.5),
        lab.result(problems[1], 0, "fastr", seconds=4.0, relative_mse=0.25),
    )
    time, error = draw_by_sparsity(Summary(plan, found), plan.studies[0]).axes
    assert lines_of(time) == {"FasTR": [[0, 2.0], [1, 4.0]]}
    assert lines_of(error) == {"FasTR": [[0, 0.5], [1, 0.25]]}
    assert [label.get_text() for label in error.get_xticklabels()] == ["20%", "60%"]


def test_a_figure_is_rendered_the_same_way_each_time(results):
    plan = plan_of(FEASIBLE, name="figure1")
    figures = [
        render(draw_times_by_size(Summary(plan, results), plan.studies[0]), "f", "F", "alt", [])
        for _ in range(2)
    ]
    assert figures[0].svg == figures[1].svg
    assert figures[0].png.startswith(b"\x89PNG")
    assert io.BytesIO(figures[0].svg).read(5) == b"<?xml"


def written(tmp_path, plan, results, **options):
    """Write a report of these results; returns the text of its files by name."""
    store = Store(tmp_path)
    store.add_environment("abc", {"numpy": "9.9", "CPU": "a processor"})
    for entry in results.values():
        store.add(entry)
    files = write_report(plan, store, tmp_path, **options)
    texts = (".md", ".tex", ".html")
    return {f.name: f.read_text(encoding="utf-8") for f in files if f.suffix in texts}


def test_the_report_has_tables_figures_and_environment_in_one_file(tmp_path, results):
    studies = [Study(n, n.title(), (HOPELESS, FEASIBLE)) for n in ("table1", "figure1")]
    plan = Plan(studies, [FASTR, LASSO, SURF], 2, 10.0)
    files = written(tmp_path, plan, results)
    page = files["report.html"]
    assert "9.9" in page
    assert "a processor" in page
    assert "random_state=10000 + t" in page
    assert "Published numbers are copied from the paper" in page
    assert "not done" not in page
    assert page.count("data:image/svg+xml;base64,") == 1
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert {f.name for f in tmp_path.iterdir()} == {
        *("results.jsonl", "report.html", "report.md", "table1.md", "table1.tex"),
        *("figure1.md", "figure1.tex", "figure1.svg", "figure1.png"),
    }
    assert "FasTR is the fastest" in files["figure1.md"]


def test_markdown_and_latex_have_the_numbers(tmp_path, results):
    files = written(tmp_path, plan_of(HOPELESS, FEASIBLE), results)
    row = "| 5×5×5 (100) | **0.0200** | 1.25 | > 10 s | 0.0050 | 0.1205 | 0.8524 | 0.4507 |"
    assert row in files["table1.md"]
    assert row in files["report.md"]
    latex = (
        r"5$\times$5$\times$5 (100) & \textbf{0.0200} & 1.25 & $>$ 10 s & 0.0050 & 0.1205 & 0.8524"
    )
    assert latex in files["table1.tex"]
    assert r"\multicolumn{5}{c}{published}" in files["table1.tex"]


def test_the_training_metric_is_a_table_on_demand(tmp_path, results):
    plan = plan_of(FEASIBLE)
    title = "the paper's training metric"
    assert title not in written(tmp_path, plan, results)["table1.md"]
    assert title in written(tmp_path, plan, results, training_metric=True)["table1.md"]


def test_simulated_scans_are_labelled(tmp_path):
    problems = (Recording(1), Recording(2))
    found = {
        (p.key, 0, "lasso"): Result(
            *("table3", p.key, 0, "lasso", "ok", 2.0, 10.0), metrics={"auc": 0.7}
        )
        for p in problems
    }
    plan = Plan([Study("table3", "Table 3", problems)], [LASSO], 1, 10.0)
    text = written(tmp_path, plan, found)["table3.md"]
    assert "SIMULATED: no file of CMU2008 was found" in text
    assert "| simulated #1 | **0.700** |" in text
    assert "0.9566" not in text


def test_real_scans_stand_beside_the_numbers_of_the_paper(tmp_path):
    problem = Recording(1, tmp_path / "data-science-P1.mat")
    key = (problem.key, 0, "lasso")
    entry = Result("table3", problem.key, 0, "lasso", "ok", 2.0, 10.0, metrics={"auc": 0.7})
    plan = Plan([Study("table3", "Table 3", (problem,))], [LASSO], 1, 10.0)
    text = written(tmp_path, plan, {key: entry})["table3.md"]
    assert "SIMULATED" not in text
    assert "| #1 | **0.700** | 0.6786 | 0.5929 | 0.9388 | 0.9566 | 0.5042 |" in text


def test_failures_have_their_reason_in_the_report(tmp_path, lab):
    plan = plan_of(FEASIBLE, methods=(LASSO,), n_trials=1)
    found = lab.known(
        lab.result(FEASIBLE, 0, "lasso", status="failed", reason="MemoryError: <no> room"),
        lab.result(FEASIBLE, 0, ORACLE.key),
    )
    files = written(tmp_path, plan, found)
    assert "MemoryError: &lt;no&gt; room" in files["report.html"]
    assert "| 5×5×5 (100) | failed |" in files["table1.md"]
