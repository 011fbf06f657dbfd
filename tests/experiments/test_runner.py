from dataclasses import replace

import numpy as np
import pytest

from pyfastr.experiments.claims import Claims
from pyfastr.experiments.methods import METHODS
from pyfastr.experiments.problems import Recording, Simulation
from pyfastr.experiments.runner import run
from pyfastr.experiments.store import Store

# Seconds for a sleeper, and for a task that does nothing on a machine however busy.
SHORT, AMPLE = 0.5, 60.0


@pytest.fixture
def run_plan(tmp_path, watcher):
    """Run a plan in this folder; returns what is known and the results of this run."""

    def run_plan(plan):
        store = Store(tmp_path)
        watcher.results.clear()
        run(plan, store, Claims(tmp_path / "claims"), watcher)
        return store.results(), list(watcher.results)

    return run_plan


def test_every_method_and_the_oracle_have_a_result_in_every_trial(run_plan, lab, watcher):
    problems = [lab.small, lab.large]
    plan = lab.make_plan(lab.method("zeros"), problems=problems, n_trials=2, budget=AMPLE)
    found, _ = run_plan(plan)
    expected = {
        (problem.key, trial, key)
        for problem in (lab.small, lab.large)
        for trial in (0, 1)
        for key in ("zeros", "oracle")
    }
    assert set(found) == expected
    assert watcher.answered == (8, 8)


def test_the_metrics_of_a_zero_coefficient(run_plan, lab):
    found, _ = run_plan(lab.make_plan(lab.method("zeros"), budget=AMPLE))
    metrics = found[lab.small.key, 0, "zeros"].metrics
    data = lab.small.draw(0)
    assert metrics["ce"] == pytest.approx(1.0)
    assert metrics["mse"] == pytest.approx(np.mean(data.y_test**2))
    assert metrics["relative_mse"] == pytest.approx(np.mean(data.y_test**2) / np.var(data.y_test))
    assert metrics["training_metric"] == pytest.approx(np.sqrt(np.sum(data.y**2)) / 20)


def test_a_time_out_is_a_result_and_the_others_go_on(run_plan, lab):
    sleepy = lab.method("sleepy", lab.misbehaviour["sleepy"])
    found, new = run_plan(lab.make_plan(sleepy, lab.method("zeros"), budget=SHORT))
    result = found[lab.small.key, 0, "sleepy"]
    assert (result.status, result.reason) == ("timeout", f"not done after {SHORT:g} s")
    assert [r.method for r in new] == ["sleepy", "zeros", "oracle"]


def test_errors_and_crashes_are_results_and_the_others_go_on(run_plan, lab):
    names = ["greedy", "killed", "crashed"]
    methods = [lab.method(name, lab.misbehaviour[name]) for name in names]
    found, _ = run_plan(lab.make_plan(*methods, lab.method("zeros"), budget=AMPLE))
    statuses = {key[2]: (r.status, r.reason) for key, r in found.items()}
    assert statuses["greedy"] == ("failed", "MemoryError: no room")
    assert statuses["killed"][0] == "failed"
    assert statuses["crashed"] == ("failed", "crashed: SIGTERM")
    assert statuses["zeros"][0] == statuses["oracle"][0] == "ok"


def test_samples_that_cannot_be_drawn_are_results_too(run_plan, lab, monkeypatch):
    def draw(problem, trial):
        raise MemoryError("X is too large")

    monkeypatch.setattr(type(lab.small), "draw", draw)
    found, _ = run_plan(lab.make_plan(lab.method("zeros")))
    assert {r.reason for r in found.values()} == {"no samples: MemoryError: X is too large"}


def test_a_fit_that_is_not_finite_has_failed(run_plan, lab, monkeypatch):
    monkeypatch.setattr(type(lab.small), "score", lambda problem, model, data: {"ce": np.inf})
    found, _ = run_plan(lab.make_plan(lab.method("zeros"), budget=AMPLE))
    assert found[lab.small.key, 0, "zeros"].status == "failed"


def test_what_is_known_is_not_fitted_again(run_plan, lab):
    zeros, more = lab.method("zeros"), lab.method("more")
    run_plan(lab.make_plan(zeros, n_trials=1, budget=AMPLE))
    _, new = run_plan(lab.make_plan(zeros, more, n_trials=2, budget=AMPLE))
    assert {(r.trial, r.method) for r in new} == {
        *((0, "more"), (1, "zeros"), (1, "more"), (1, "oracle"))
    }


def test_two_time_outs_spare_later_trials_and_larger_problems(run_plan, lab):
    sleepy, zeros = lab.method("sleepy", lab.misbehaviour["sleepy"]), lab.method("zeros")
    options = {"problems": [lab.small, lab.large], "n_trials": 3}
    run_plan(lab.make_plan(zeros, **options, budget=AMPLE))
    plan = lab.make_plan(sleepy, zeros, **options, budget=SHORT)
    found, new = run_plan(plan)
    # The others are done already, and need no time again.
    assert {r.method for r in new} == {"sleepy"}
    statuses = [found[lab.small.key, trial, "sleepy"].status for trial in range(3)]
    assert statuses == ["timeout", "timeout", "skipped"]
    larger = [found[lab.large.key, trial, "sleepy"] for trial in range(3)]
    assert {r.status for r in larger} == {"skipped"}
    assert larger[0].reason == "2 time-outs at 4×3 (20)"
    assert not plan.why_hopeless(plan.units[-1], zeros, found)


def test_fastr_is_tried_on_larger_problems_whatever_small_ones_took(lab):
    plan = lab.make_plan(METHODS["fastr"], METHODS["lasso"], problems=[lab.small, lab.large])
    ended = lab.known(
        *(lab.result(lab.small, 0, key, status="timeout") for key in ("fastr", "lasso"))
    )
    small, large = plan.units
    assert plan.why_hopeless(large, METHODS["lasso"], ended)
    assert not plan.why_hopeless(large, METHODS["fastr"], ended)
    assert plan.why_hopeless(small, METHODS["fastr"], ended)


def test_scans_have_a_budget_of_their_own_and_no_simulation_speaks_for_them(lab):
    cube, scans, lasso = Simulation((3, 3, 3), 20), Recording(1), METHODS["lasso"]
    plan = lab.make_plan(lasso, problems=[cube, scans], budget=1.0)
    ended = lab.known(lab.result(cube, 0, "lasso", status="timeout", budget=1.0))
    small, large = plan.units
    assert plan.why_hopeless(small, lasso, ended)
    assert not plan.why_hopeless(large, lasso, ended)
    patient = replace(plan, scan_budget=60.0)
    assert [patient.budget_of(unit.problem) for unit in patient.units] == [1.0, 60.0]
    late = lab.known(lab.result(scans, 0, "lasso", status="timeout", budget=1.0))
    assert not plan.missing(large, late)
    assert patient.missing(large, late) == [lasso]


def test_a_run_with_nothing_to_fit_leaves_the_results_alone(run_plan, lab, tmp_path, monkeypatch):
    plan = lab.make_plan(lab.method("zeros"), budget=AMPLE)
    run_plan(plan)
    before = (tmp_path / "results.jsonl").read_bytes()
    monkeypatch.setattr("pyfastr.experiments.runner.environment", lambda: {"CPU": "another"})
    run_plan(plan)
    assert (tmp_path / "results.jsonl").read_bytes() == before


def test_a_larger_budget_asks_again_where_time_ran_out(run_plan, lab):
    sleepy, zeros = lab.method("sleepy", lab.misbehaviour["sleepy"]), lab.method("zeros")
    run_plan(lab.make_plan(zeros, n_trials=3, budget=AMPLE))
    run_plan(lab.make_plan(sleepy, zeros, n_trials=3, budget=SHORT))
    _, new = run_plan(lab.make_plan(sleepy, zeros, n_trials=3, budget=2 * SHORT))
    assert [(r.method, r.status) for r in new] == [
        *(("sleepy", "timeout"), ("sleepy", "timeout"), ("sleepy", "skipped"))
    ]
