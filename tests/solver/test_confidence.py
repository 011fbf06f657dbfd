"""How sure a search is: what counts, and which way."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pyfastr.solver.confidence import MOST_SPARE, SURE, SearchFacts, confidence

NOISY = SearchFacts(
    n_hits=4,
    n_polished=4,
    unexplained=0.3,
    without_term=(1.0,),
    n_samples=60,
    n_free=20,
    shape=(10, 10),
    ridge=1e-5,
)


def of(**changes):
    return confidence(replace(NOISY, **changes))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n_hits", [1, 2, 3, 4]),
        ("unexplained", [1.0, 0.5, 0.3, 0.1, 1e-9]),
        ("n_samples", [20, 21, 40, 100, 1000]),
        ("ridge", [0.0, 1e-5, 1e-2, 1e-1, 1e3]),
    ],
)
def test_more_of_what_speaks_for_a_solution_never_makes_it_less_sure(name, values):
    chances = [of(**{name: value}) for value in values]
    assert all(0 < chance <= 1 for chance in chances)
    assert all(after >= before for before, after in pairwise(chances))
    assert chances[-1] > chances[0]


def test_one_start_alone_is_never_sure_however_well_it_fits():
    assert of(n_hits=1, n_polished=1, unexplained=1e-9, n_samples=2000) <= 0.5


@pytest.mark.parametrize("n_polished", [2, 16, 10_000])
def test_a_solution_seen_once_is_sure_only_far_beyond_what_noise_offers(n_polished):
    moderate = {"unexplained": 0.2, "n_samples": 60}
    assert 1.4 < replace(NOISY, **moderate).strength < 2.5
    assert of(n_hits=1, n_polished=n_polished, **moderate) < 0.65
    assert of(n_hits=2, n_polished=n_polished, **moderate) >= SURE
    assert of(n_hits=1, n_polished=n_polished, unexplained=1e-9) >= SURE


@pytest.mark.parametrize("unexplained", [0.5, 0.01, 1e-9])
@pytest.mark.parametrize("n_samples", [5, 19, 20])
def test_no_more_samples_than_parameters_are_never_sure_and_have_no_strength(
    unexplained, n_samples
):
    few = replace(NOISY, unexplained=unexplained, n_samples=n_samples)
    assert few.strength == 0
    assert confidence(few) < SURE


def test_noise_has_a_strength_of_one_if_samples_are_many():
    p, q, n_samples = 30, 20, 200_000
    explained = (np.sqrt(p) + np.sqrt(q)) ** 2 / n_samples
    noise = replace(
        NOISY, shape=(p, q), n_samples=n_samples, n_free=p + q, unexplained=1 - explained
    )
    assert noise.strength == pytest.approx(1, rel=1e-3)
    assert confidence(noise) < SURE


def test_any_number_of_samples_of_noise_is_not_sure():
    noise = {"unexplained": 1.0, "n_free": 20}
    assert of(**noise, n_samples=10**9) == of(**noise, n_samples=int(20 * (1 + MOST_SPARE)))
    assert of(**noise, n_samples=10**9) < SURE


def test_the_weakest_term_decides_and_terms_that_cancel_do_not_count():
    def strength(unexplained, *without):
        return replace(NOISY, unexplained=unexplained, without_term=without).strength

    assert strength(0.1, 0.6, 0.12) < strength(0.1, 0.6, 0.2) < strength(0.1, 0.6, 0.3)
    # Each is large, but together they explain hardly anything.
    assert strength(0.9, 50.0, 50.0) == strength(0.9, 0.99, 0.99) < 0.2
    # A term that changes nothing has no strength, and one that does harm none either.
    assert strength(0.1, 0.6, 0.1) == 0
    assert replace(NOISY, unexplained=0.1, without_term=(0.6, 0.05)).features[0] == 0
