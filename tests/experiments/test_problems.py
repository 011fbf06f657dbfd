import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pyfastr import FasTRClassifier, FasTRClassifierCV
from pyfastr.experiments.methods import METHODS
from pyfastr.experiments.problems import Recording, Simulation
from pyfastr.experiments.runner import fit_and_score
from pyfastr.experiments.studies import NAMES, make_study


def test_a_trial_is_the_same_each_time_and_unlike_the_next():
    problem = Simulation((5, 4), 30)
    first, again, other = problem.draw(0), problem.draw(0), problem.draw(1)
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    assert (first.X.shape, first.X_test.shape) == ((30, 5, 4), (1000, 5, 4))
    residual = first.y_test - first.X_test.reshape(1000, -1) @ first.coef.ravel()
    assert np.std(residual) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize(
    ("shape", "n_samples", "dtype"),
    [
        ((100, 100, 5), 500, "float64"),
        ((200, 200, 5), 1000, "float32"),
        ((300, 300), 9000, "float32"),
        ((400, 400, 5), 4000, "float32"),
    ],
)
def test_the_largest_problems_fit_in_memory(shape, n_samples, dtype):
    problem = Simulation(shape, n_samples)
    assert problem.dtype == dtype
    held_out = problem.n_test * int(np.prod(shape))
    assert (problem.n_entries + held_out) * problem.dtype.itemsize < 14 * 2**30
    assert problem.n_test >= 200


def test_float32_reaches_the_samples(monkeypatch):
    monkeypatch.setattr("pyfastr.experiments.problems.FLOAT64_BYTES", 100)
    data = Simulation((5, 4), 30).draw(0)
    assert data.X.dtype == data.y.dtype == np.float32


def test_samples_below_the_free_parameters_do_not_identify_the_coefficient():
    # 10 + 10 - 2 + 1 for the coefficient, 1 for the intercept.
    assert Simulation((10, 10), 10).n_free == 20
    assert not Simulation((10, 10), 19).is_identifiable
    assert Simulation((10, 10), 20).is_identifiable
    assert Simulation((5, 5, 5), 100).n_free == 14


@pytest.fixture(autouse=True)
def no_scans(monkeypatch, tmp_path):
    """Keep files of CMU2008 that a developer may have out of the tests."""
    monkeypatch.setenv("PYFASTR_DATA", str(tmp_path / "empty"))


def test_the_studies_are_those_of_the_paper():
    sizes = {name: [p.title for p in make_study(name).problems] for name in NAMES}
    assert len(sizes["table1"]) == 15
    assert sizes["table1"][5] == "300×300 (9000)"
    assert sizes["table1"][-1] == "400×400×5 (4000)"
    assert [title.split()[0] for title in sizes["figure1"]] == [
        *("10×10", "20×20", "30×30", "100×100", "200×200"),
        *(f"{p}×{p}×{p}" for p in (5, 10, 15, 20, 25, 30)),
    ]
    assert sizes["table2"] == [f"100×100×5 ({n})" for n in range(300, 601, 50)]
    figure2 = make_study("figure2").problems
    assert [p.sparsity for p in figure2] == pytest.approx(np.arange(1, 10) / 10)
    assert {(p.n_samples, p.noise) for p in figure2} == {(500, 0.2)}
    assert sizes["table3"] == [f"simulated #{k}" for k in range(1, 10)]


@pytest.mark.parametrize("name", NAMES)
def test_quick_studies_are_smaller(name):
    def work(study):
        return sum(problem.n_entries for problem in study.problems)

    assert work(make_study(name, quick=True)) < work(make_study(name)) / 4


def test_table_3_takes_the_participants_that_are_there(tmp_path, monkeypatch):
    for k in (7, 2):
        (tmp_path / f"data-science-P{k}.mat").touch()
    monkeypatch.setenv("PYFASTR_DATA", str(tmp_path))
    assert make_study("table3").problems == make_study("table3", data_home=tmp_path).problems
    problems = make_study("table3", data_home=tmp_path).problems
    assert [p.title for p in problems] == ["#2", "#7"]
    assert not any(p.is_simulated for p in problems)


@pytest.fixture
def recording(contents, tmp_path):
    """A file of few voxels, in one of which animals and insects stand out."""
    alive = [trial["cond"] in ("animal", "insect") for trial in contents.trials]
    contents.values += 5
    contents.values[alive, 7] += 4
    return Recording(1, contents.save(tmp_path / "data-science-P1.mat"))


def test_scans_are_split_four_to_one_with_equal_shares_of_classes(recording, contents):
    data = recording.draw(0)
    assert (data.X.shape, data.X_test.shape) == ((96, 51, 61, 23), (24, 51, 61, 23))
    assert data.y.sum() == data.y_test.sum() == 0
    inside = contents.meta["coordToCol"] > 0
    np.testing.assert_allclose(data.X[:, inside].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(data.X[:, inside].std(axis=0), 1, rtol=1e-5)
    assert not np.allclose(data.X_test[:, inside].mean(axis=0), 0, atol=1e-6)
    assert not data.X[:, ~inside].any()


def test_without_a_file_the_scans_are_simulated_by_the_number_of_the_participant():
    first, again, other = (Recording(k).draw(0) for k in (3, 3, 4))
    assert first.X.shape == (96, 51, 61, 23)
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize("key", ["lasso", "eeridge"])
def test_classes_are_told_apart(recording, key):
    found = fit_and_score(recording, METHODS[key], recording.draw(0))
    assert found["metrics"]["auc"] > 0.8


def test_fastr_is_a_classifier_where_there_are_classes(recording):
    model = METHODS["fastr"].make(recording.draw(0))
    assert isinstance(model, FasTRClassifierCV)


def test_a_classifier_is_scored_by_its_decisions(recording):
    data = recording.draw(0)
    model = FasTRClassifier(n_init=1, random_state=0).fit(data.X, data.y)
    expected = roc_auc_score(data.y_test, model.decision_function(data.X_test))
    assert recording.score(model, data) == {"auc": expected}
