"""The simulated stand-in for CMU2008: its geometry, its noise, and how hard it is."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict

from pyfastr.datasets import load_cmu2008, make_cmu2008_like


@pytest.fixture(scope="module")
def trials():
    return make_cmu2008_like(random_state=0)


def test_it_has_the_fields_of_the_files_and_the_truth(trials, contents, tmp_path):
    loaded = load_cmu2008(contents.save(tmp_path / "file.mat"))
    assert set(trials) == {*loaded, "difference"}
    for name in ("data", "target", "epoch", "mask", "affine"):
        assert trials[name].dtype == loaded[name].dtype
        assert trials[name].shape == loaded[name].shape
    assert_array_equal(trials.affine, loaded.affine)
    assert trials.target_names == loaded.target_names


def test_it_says_that_it_is_simulated(trials):
    assert trials.DESCR.startswith("SIMULATED")
    assert trials.subject == "simulated"


def test_the_mask_has_as_many_voxels_as_a_participant(trials):
    assert 20_000 < trials.mask.sum() < 21_000
    assert not trials.data[:, ~trials.mask].any()
    assert not trials.difference[~trials.mask].any()


def test_every_epoch_has_both_classes_alike(trials):
    for epoch in range(1, 7):
        assert_array_equal(np.bincount(trials.target[trials.epoch == epoch]), [10, 10])
    tools = np.isin(trials.cond, ["tool", "furniture"])
    assert_array_equal(trials.target, np.where(tools, 0, 1))


@pytest.mark.parametrize("n_trials", [12, 13, 29])
def test_any_number_of_trials_has_six_epochs_with_both_classes(n_trials):
    few = make_cmu2008_like(n_trials, random_state=0)
    assert few.data.shape == (n_trials, 51, 61, 23)
    for epoch in range(1, 7):
        assert len(set(few.target[few.epoch == epoch])) == 2


def test_the_noise_is_smooth_and_of_unit_variance(trials):
    noise = trials.data - (trials.target - 0.5)[:, None, None, None] * trials.difference
    inside = noise[:, trials.mask]
    assert abs(inside.std() - 1) < 0.05
    both = trials.mask[1:] & trials.mask[:-1]
    neighbours = np.mean(noise[:, 1:][:, both] * noise[:, :-1][:, both])
    # exp(-1 / (4 * 1.28**2)), of a Gaussian filter of that width.
    assert abs(neighbours - 0.858) < 0.05


def test_a_linear_classifier_does_well_but_not_perfectly(trials):
    scores = cross_val_predict(
        RidgeClassifier(alpha=1000.0),
        trials.data[:, trials.mask],
        trials.target,
        groups=trials.epoch,
        cv=GroupKFold(6),
        method="decision_function",
    )
    assert 0.75 < roc_auc_score(trials.target, scores) < 0.97


def test_without_signal_the_classes_do_not_differ():
    assert not make_cmu2008_like(12, signal=0, random_state=0).difference.any()


def test_an_int_gives_the_same_data_each_time_and_another_int_others():
    first, again, other = (make_cmu2008_like(12, random_state=s).data for s in (1, 1, 2))
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_trials": 11}, "n_trials is 11; expected an int of at least 12"),
        ({"n_trials": 12.0}, r"n_trials is 12\.0; expected an int"),
        ({"signal": -1}, r"signal is -1; expected a number in \[0, inf\)"),
        ({"signal": float("nan")}, "signal is nan; expected"),
        ({"random_state": "seed"}, "random_state is 'seed'; expected an int"),
    ],
)
def test_errors_name_the_argument_what_was_given_and_what_is_expected(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_cmu2008_like(**({"n_trials": 12} | arguments))
