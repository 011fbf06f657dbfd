import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.utils import Bunch

from pyfastr import FasTRClassifier, FasTRClassifierCV
from pyfastr.experiments.methods import METHODS
from pyfastr.experiments.problems import FLOAT64_BYTES, Recording, Simulation
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
        ((300, 300), 9000, "float64"),
        ((300, 300, 5), 2250, "float64"),
        ((400, 400, 5), 4000, "float32"),
    ],
)
def test_the_largest_problems_fit_in_memory(shape, n_samples, dtype):
    problem = Simulation(shape, n_samples)
    assert problem.dtype == dtype
    held_out = problem.n_test * int(np.prod(shape))
    assert (problem.n_entries + held_out) * problem.dtype.itemsize < 1.2 * FLOAT64_BYTES
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
def scans(monkeypatch):
    """Stand-ins for the loader and for simulated scans, tiny ones."""
    rng = np.random.default_rng(0)
    target = np.repeat(["animals", "tools"], 30)
    data = rng.normal(size=(60, 4, 3, 2)) + 5
    data[30:, 0, 0, 0] += 4
    bunch = Bunch(data=data, target=target)
    calls = []
    for name in ("load_cmu2008", "make_cmu2008_like"):
        monkeypatch.setattr(
            f"pyfastr.experiments.problems.{name}",
            lambda *args, name=name, **kwargs: calls.append((name, args, kwargs)) or bunch,
            raising=False,
        )
    return calls


def test_scans_are_split_four_to_one_with_equal_shares_of_classes(scans):
    data = Recording(3).draw(0)
    assert (len(data.X), len(data.X_test)) == (48, 12)
    assert data.y.sum() == data.y_test.sum() == 0
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(data.X.std(axis=0), 1)
    assert not np.allclose(data.X_test.mean(axis=0), 0)
    assert scans == [("make_cmu2008_like", (), {"random_state": 3})]


def test_a_file_is_loaded_where_there_is_one(scans, tmp_path):
    Recording(3, tmp_path / "file.mat").draw(0)
    assert scans == [("load_cmu2008", (tmp_path / "file.mat",), {})]


@pytest.mark.parametrize("key", ["lasso", "eeridge"])
def test_classes_are_told_apart(scans, key):
    problem = Recording(1)
    found = fit_and_score(problem, METHODS[key], problem.draw(0))
    assert found["metrics"]["auc"] > 0.8


def test_fastr_is_a_classifier_where_there_are_classes(scans):
    model = METHODS["fastr"].make(Recording(1).draw(0))
    assert isinstance(model, FasTRClassifierCV)


def test_a_classifier_is_scored_by_its_decisions(scans):
    data = Recording(1).draw(0)
    model = FasTRClassifier(random_state=0).fit(data.X, data.y)
    expected = roc_auc_score(data.y_test, model.decision_function(data.X_test))
    assert Recording(1).score(model, data) == {"auc": expected}
