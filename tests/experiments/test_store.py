import multiprocessing
import signal

import numpy as np
import pytest

from pyfastr.experiments.claims import Claims
from pyfastr.experiments.store import Result, Store


def a_result(trial=0, status="ok", budget=10.0, **kwargs):
    return Result("table1", "p", trial, "lasso", status, 1.5, budget, **kwargs)


def test_what_is_kept_is_read_back(tmp_path):
    store = Store(tmp_path / "new")
    stored = a_result(metrics={"ce": 0.25}, params={"alpha": np.float64(0.5), "n": np.int64(2)})
    store.add(stored)
    assert store.results() == {("p", 0, "lasso"): stored}
    assert len(store.file.read_text().splitlines()) == 1


def test_the_last_result_of_a_key_counts(tmp_path):
    store = Store(tmp_path)
    store.add(a_result(status="timeout", budget=1.0))
    store.add(a_result())
    assert [r.status for r in store.results().values()] == ["ok"]


def test_a_line_that_a_kill_cut_short_is_no_result_and_does_no_harm(tmp_path):
    store = Store(tmp_path)
    store.add(a_result(0))
    store.add(a_result(1))
    text = store.file.read_text()
    store.file.write_text(text[:-20])
    assert [key[1] for key in store.results()] == [0]
    store.add(a_result(2))
    assert [key[1] for key in store.results()] == [0, 2]


def test_an_environment_is_kept_once_beside_the_results(tmp_path):
    store = Store(tmp_path)
    for _ in range(2):
        store.add_environment("abc", {"numpy": "2"})
    store.add(a_result())
    assert store.environments() == {"abc": {"numpy": "2"}}
    assert len(store.file.read_text().splitlines()) == 2
    assert len(store.results()) == 1


@pytest.mark.parametrize(
    ("status", "answers"), [("ok", True), ("failed", True), ("timeout", False), ("skipped", False)]
)
def test_more_time_asks_again_only_what_ran_out_of_it(status, answers):
    assert a_result(status=status, budget=10.0).answers(10.0)
    assert a_result(status=status, budget=10.0).answers(20.0) is answers


def _hold(folder, ready):
    with Claims(folder).claim("unit"):
        ready.send(True)
        signal.pause()


def test_a_claim_keeps_others_away_until_its_process_ends_however_it_ends(tmp_path):
    context = multiprocessing.get_context("fork")
    near, far = context.Pipe(duplex=False)
    process = context.Process(target=_hold, args=(tmp_path, far), daemon=True)
    process.start()
    claims = Claims(tmp_path)
    try:
        assert near.poll(120)
        with claims.claim("unit") as mine, claims.claim("another") as free:
            assert not mine
            assert free
    finally:
        process.kill()
        process.join()
        near.close()
        far.close()
    with claims.claim("unit") as mine:
        assert mine
