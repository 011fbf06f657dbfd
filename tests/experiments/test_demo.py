"""The demo shows what it says: the coefficient is found, by our choice alone."""

import pytest

from pyfastr.experiments.demo import run_demo


@pytest.mark.slow
def test_the_choice_finds_the_coefficient_where_the_other_methods_do_not():
    names = []
    ours, *others = run_demo(names.append).fits
    assert names == ["FasTRRegressorCV", "PublishedFasTR", "LassoCV"]
    assert ours.measures["CE"] < 0.01
    assert ours.model.starts_.sure
    assert min(other.measures["CE"] for other in others) > 0.9
