"""What results say of themselves in a line and in a notebook."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from pyfastr.inference import (
    BootstrapResult,
    PermutationResult,
    SliceImportance,
    StabilityResult,
)

RESULTS = {
    "permutation": PermutationResult(0.5, np.array([0.1, 0.6, 0.3, 0.4])),
    "stability": StabilityResult([np.array([0.9, 0.2]), np.array([1.0])], 50, 0.5),
    "bootstrap": BootstrapResult(
        [np.array([[0.6], [0.8]])],
        [np.array([[-0.1], [0.7]])],
        [np.array([[0.7], [0.9]])],
        [np.zeros((20, 2, 1))],
        0.95,
    ),
    "importance": SliceImportance([np.array([[0.1, 0.3], [0, 0]])], np.ones((1, 2)), 0.9, (0,)),
}
LINES = {
    "permutation": "PermutationResult(score=0.5, p_value=0.4, n_permutations=4, "
    "permuted_mean=0.35, permuted_max=0.6)",
    "stability": "StabilityResult(n_subsamples=50, fraction=0.5, mode_0=1 of 2, mode_1=1 of 1)",
    "bootstrap": "BootstrapResult(confidence=0.95, mode_0=1 of 2)",
    "importance": "SliceImportance(score=0.9, mode_0=1, mode_0_top_slice=0 (0.2))",
}
SENTENCES = {
    "permutation": "1 of 4 permuted responses had",
    "stability": "at least 60 % of 50 subsamples",
    "bootstrap": "by 20 bootstrap samples",
    "importance": "over 2 repeats",
}


@pytest.mark.parametrize("kind", list(RESULTS))
def test_one_line(kind):
    assert repr(RESULTS[kind]) == LINES[kind]


@pytest.mark.parametrize("kind", list(RESULTS))
def test_a_table_for_notebooks_has_the_numbers_of_the_line(kind):
    page = ET.fromstring(RESULTS[kind]._repr_html_())
    cells = [cell.text for cell in page.iter("td")]
    assert all(text in repr(RESULTS[kind]) for text in cells)
    assert len(cells) == len(list(page.iter("th"))) > 1
    assert SENTENCES[kind] in page.find("p").text


def test_names_are_escaped():
    class Odd(PermutationResult):
        def _sentence(self):
            return "a < b & c"

    page = ET.fromstring(Odd(0.5, np.array([0.1]))._repr_html_())
    assert page.find("p").text == "a < b & c"
