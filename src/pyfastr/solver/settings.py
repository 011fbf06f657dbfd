"""What is asked of the solver."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

from pyfastr.solver.models import Models
from pyfastr.solver.policy import SearchPolicy
from pyfastr.solver.proposals import Kind
from pyfastr.solver.sweep import Order

Array = NDArray[Any]
RefitSupport = bool | Literal["evidence"]


@dataclass(frozen=True)
class Settings:
    """What a user asks of the solver; the meaning of each is told in `FasTRRegressor`.

    `may_start_sparse` says whether models of a high threshold may begin from a sparse start
    instead; `known` are solutions of nearly the same problem, which spare a search if they agree.
    `brief` says that the tasks of a grid are many and only compared with each other: a search is
    then one round, of few starts for a short time where samples abound. `policy` says how to
    search.
    """

    threshold: float
    ridge: float
    n_terms: int = 1
    init: Kind | Sequence[Array] = "mixed"
    n_init: int | Literal["auto"] = "auto"
    order: Order = "cyclic"
    max_iter: int = 1000
    tol: float = 1e-3
    refit_support: RefitSupport = False
    may_start_sparse: bool = True
    known: Models | None = None
    brief: bool = False
    policy: SearchPolicy = field(default_factory=SearchPolicy)
