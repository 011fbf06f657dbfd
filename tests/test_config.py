"""The memory budget: given as numbers, text or a variable, for a block or for good."""

import threading

import pytest

import pyfastr
from pyfastr.config import MemoryBudget, current_budget, physical_memory


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    monkeypatch.delenv("PYFASTR_MEMORY_BUDGET", raising=False)
    yield
    pyfastr.set_config(memory_budget="auto")


def budget():
    return pyfastr.get_config()["memory_budget"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2GB", 2e9),
        ("2gb", 2e9),
        (" 1.5 GiB ", 1.5 * 2**30),
        ("512MB", 512e6),
        ("64000kB", 64e6),
        ("3G", 3e9),
        ("2e9", 2e9),
        ("20000000B", 2e7),
        (123456789, 123456789),
        (2.5e8, 2.5e8),
    ],
)
def test_what_is_given_is_in_force(given, expected):
    with pyfastr.config_context(memory_budget=given):
        assert budget() == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("much", "memory_budget is 'much'; expected a number of bytes or text such as"),
        ("2 PB", "memory_budget is '2 PB'; expected"),
        ("-2GB", "memory_budget is '-2GB'; expected"),
        ("", "memory_budget is ''; expected"),
        (0, "memory_budget is 0, 0 bytes; expected at least 16MB"),
        (-5e9, "expected at least 16MB"),
        ("1kB", "memory_budget is '1kB', 1000 bytes; expected at least 16MB"),
        (float("nan"), "expected at least 16MB"),
        (float("inf"), "expected at least 16MB"),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(given, message):
    before = budget()
    with pytest.raises(ValueError, match=message):
        pyfastr.set_config(memory_budget=given)
    with pytest.raises(ValueError, match=message), pyfastr.config_context(memory_budget=given):
        pass
    assert budget() == before


@pytest.mark.parametrize("given", [True, [2], {"GB": 2}])
def test_other_types_are_refused(given):
    with pytest.raises(TypeError, match=r"memory_budget is .* of type .*; expected a number"):
        pyfastr.set_config(memory_budget=given)


def test_the_default_is_half_of_the_memory_and_the_variable_goes_before_it(monkeypatch):
    assert budget() == physical_memory() // 2
    monkeypatch.setenv("PYFASTR_MEMORY_BUDGET", "300MB")
    assert budget() == 300e6
    pyfastr.set_config(memory_budget="2GB")
    assert budget() == 2e9
    with pyfastr.config_context(memory_budget="auto"):
        assert budget() == 300e6
    pyfastr.set_config()
    assert budget() == 2e9
    pyfastr.set_config(memory_budget="auto")
    assert budget() == 300e6


def test_a_bad_variable_is_named(monkeypatch):
    monkeypatch.setenv("PYFASTR_MEMORY_BUDGET", "lots")
    with pytest.raises(ValueError, match="PYFASTR_MEMORY_BUDGET is 'lots'; expected"):
        pyfastr.get_config()


def test_contexts_nest_and_belong_to_one_thread():
    seen = []
    default = budget()
    with pyfastr.config_context(memory_budget="1GB"):
        with pyfastr.config_context(memory_budget="2GB"), pyfastr.config_context():
            assert budget() == 2e9
        assert budget() == 1e9
        other = threading.Thread(target=lambda: seen.append(budget()))
        other.start()
        other.join()
    assert seen == [default]
    assert budget() == default


def test_the_parts_add_up_to_the_budget():
    whole = MemoryBudget(10**9)
    parts = ("blocks", "stored", "subset", "kept", "batch", "foresight")
    assert sum(getattr(whole, part) for part in parts) == whole.total
    assert current_budget().total == budget()
