"""How far a long inference has got."""

from pyfastr.solver.progress import tell

# So many lines are worth printing.
N_NOTES = 10


class Progress:
    """Repetitions that are done, of all.

    Parameters
    ----------
    stage : str
        What is repeated, in one word for a bar.
    what : str
        The same for a sentence.
    total : int
    """

    def __init__(self, stage: str, what: str, total: int) -> None:
        self._stage, self._what, self._total = stage, what, total
        self._done = 0

    def add(self, number: int) -> None:
        """Tell whoever watches that some more are done."""
        before, self._done = self._done, self._done + number
        noteworthy = N_NOTES * self._done // self._total > N_NOTES * before // self._total
        note = f"{self._done} of {self._total} {self._what}" if noteworthy else ""
        tell(self._stage, self._done, self._total, note)
