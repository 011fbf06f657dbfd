"""One remark on a fitted model."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Advice:
    """One remark on a fit.

    Attributes
    ----------
    level : {"problem", "caution", "note"}
        Do not use the model as it is; use it with care; good to know.
    what : str
        What was seen.
    do : str
        What to do about it; empty if there is nothing to do.
    """

    level: Literal["problem", "caution", "note"]
    what: str
    do: str = ""

    @property
    def heading(self) -> str:
        """The level as a word to begin with."""
        return self.level.capitalize()
