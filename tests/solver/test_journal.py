"""An interrupted sequence of loops goes on where it stood, and ends as if nothing had happened."""

from dataclasses import dataclass

import numpy as np
import pytest

from pyfastr.solver.journal import Held, Journal, State, journaling, once, remembered, steps
from pyfastr.solver.losses import LOGISTIC, SQUARED
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.polish import Step, polish
from pyfastr.solver.problem import make_problem
from pyfastr.solver.progress import watched_by
from pyfastr.solver.streams import Streams
from pyfastr.solver.sweep import run_sweeps
from pyfastr.sources import ArraySource


class Interruption(BaseException):
    """Stands for whatever ends a process."""


class Page:
    """What a journal writes: the last state counts."""

    def __init__(self):
        self.entries, self.n_writings = [], 0

    def write(self, entries):
        self.entries, self.n_writings = list(entries), self.n_writings + 1


@remembered
@dataclass
class Pair:
    left: np.ndarray
    right: list[float]


class Walk(State):
    """Adds random numbers up, and keeps the sums so far."""

    def __init__(self):
        self.sum, self.pairs = np.zeros(2), []

    def add(self, numbers):
        self.sum = self.sum + numbers
        self.pairs.append(Pair(self.sum, [float(len(self.pairs))]))


def walk(n_steps, before_step=lambda: None):
    """Take three walks one after another, the second of which ends early."""
    streams = Streams(np.random.default_rng(0), 2)
    found = []
    for number, limit in enumerate((np.inf, 4.0, np.inf)):
        own = Walk()
        drawn = once("draw", lambda: streams.normal(np.arange(2), ()), streams)
        ends = lambda own=own, limit=limit: abs(own.sum).max() > limit  # noqa: E731
        for _ in steps(f"walk {number}", n_steps, own, streams, over=ends):
            before_step()
            own.add(drawn + streams.normal(np.arange(2), ()))
        found.append((own.sum.tolist(), [(p.left.tolist(), p.right) for p in own.pairs]))
    return found, streams.normal(np.arange(2), ()).tolist()


class Fuse:
    """Counts, and interrupts at a number."""

    def __init__(self, last=None):
        self.n, self.last = 0, last

    def __call__(self, *_args):
        self.n += 1
        if self.n == self.last:
            raise Interruption


def test_without_a_journal_loops_take_their_steps_until_they_are_over():
    assert list(steps("count", 3, Held(0))) == [0, 1, 2]
    left = Held(2)
    for _ in steps("count", 5, left, over=lambda: left.value == 0):
        left.value -= 1
    assert left.value == 0
    assert once("make", lambda: 7) == 7


@pytest.mark.parametrize("last", range(1, 30))
def test_walks_end_alike_wherever_they_are_interrupted(last):
    whole = Fuse()
    expected = walk(12, whole)
    page, fuse = Page(), Fuse(last)
    with journaling(Journal(page.write)):
        try:
            walk(12, fuse)
        except Interruption:
            fuse = Fuse()
            with journaling(Journal(page.write, page.entries)):
                assert walk(12, fuse) == expected
            assert fuse.n == whole.n - last + 1
        else:
            assert whole.n < last


def test_a_journal_of_all_loops_takes_no_step():
    page, fuse = Page(), Fuse()
    with journaling(Journal(page.write)):
        expected = walk(5)
    with journaling(Journal(page.write, page.entries)):
        assert walk(5, fuse) == expected
    assert fuse.n == 0


def test_another_way_of_a_fit_makes_the_rest_of_a_journal_useless():
    page, fuse, whole = Page(), Fuse(), Fuse()
    with journaling(Journal(page.write)):
        walk(5)
    with journaling(Journal(page.write, page.entries)):
        found = walk(6, fuse)
    assert found == walk(6, whole)
    assert fuse.n == whole.n


def test_a_journal_writes_when_it_is_time_or_told_to_and_only_news():
    now, page = [0.0], Page()
    journal = Journal(page.write, interval=10.0, clock=lambda: now[0])
    count = Held(0)
    with journaling(journal):
        for number in steps("count", 100, count):
            count.value, now[0] = number, now[0] + 1.0
    assert page.n_writings == 10
    journal.write()
    journal.write()
    assert page.n_writings == 11
    assert page.entries[0].ended


def test_a_block_without_journal_is_not_followed():
    page = Page()
    with journaling(Journal(page.write)), journaling(None):
        walk(3)
    assert page.n_writings == 0


class Frail(ArraySource):
    """A source of four blocks that lights a fuse with every read."""

    def __init__(self, X, fuse):
        super().__init__(X, block_bytes=X.nbytes // 4)
        self.fuse = fuse

    def read(self, rows):
        self.fuse()
        return super().read(rows)


def draw(fuse, loss=SQUARED, mean=0.0, n_samples=60, shape=(5, 4, 3, 3)):
    """Draw a problem and models; what hardly varies beside its mean makes engines learn that."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(n_samples, *shape)) + mean, rng.normal(size=n_samples)
    y = y if loss is SQUARED else np.sign(y)
    problem = make_problem(Frail(X, fuse), y, x_scale=1.0, fit_intercept=True, loss=loss)
    return problem, Models.random(2, 1, shape, rng)


def arrays_of(models, *others):
    return [*models.components, models.scales, *others]


def swept(problem, models, order):
    penalty = Penalty(np.array([1e-3, 0.1]), 0.01)
    options = {"order": order, "max_iter": 20, "tol": 0.0}
    found, history, converged = run_sweeps(problem, models, penalty, **options)
    # What an engine keeps of the last sweep serves these fitted values.
    fitted = problem.engine.fitted(found)
    return arrays_of(found, np.array(history.loss), np.array(history.change), converged, fitted)


def polished(problem, models, _order):
    schedule = [Step(0.1), Step(0.03), *[Step(0.01)] * 5]
    found = polish(problem, models, schedule, SearchPolicy())
    return arrays_of(found.models, found.rss, found.objective)


@pytest.mark.parametrize("kind", ["plain", "far from zero", "logistic", "simultaneous", "polish"])
@pytest.mark.parametrize("share", [0.4, 0.55, 0.7, 0.85, 1.0])
def test_sweeps_and_steps_end_in_the_same_bits(kind, share):
    loss, mean = LOGISTIC if kind == "logistic" else SQUARED, 1e7 * (kind == "far from zero")
    order = "simultaneous" if kind == "simultaneous" else "cyclic"
    run = polished if kind == "polish" else swept

    def attempt(fuse, known=()):
        (problem, models), page = draw(fuse, loss, mean), Page()
        with journaling(Journal(page.write, known)):
            try:
                return run(problem, models, order), page
            except Interruption:
                return None, page

    whole = Fuse()
    expected, _ = attempt(whole)
    nothing, page = attempt(Fuse(int(share * whole.n)))
    assert nothing is None
    again = Fuse()
    found, _ = attempt(again, page.entries)
    assert again.n < whole.n
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, other)


def test_a_journal_does_not_change_what_is_told():
    def told(known):
        (problem, models), events, page = draw(Fuse()), [], Page()
        with watched_by(events.append), journaling(Journal(page.write, known)):
            swept(problem, models, "cyclic")
        return events, page.entries

    events, entries = told([])
    assert [event.done for event in events] == list(range(1, len(events) + 1))
    assert told(entries)[0] == []
