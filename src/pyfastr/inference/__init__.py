"""How sure a fitted model is: permutation tests, stability selection, bootstrap intervals.

Permuted responses, subsamples and bootstrap samples are further columns of the solver's batch:
they share each pass over X.
"""

from pyfastr.inference.bootstrap import BootstrapResult, bootstrap_factors
from pyfastr.inference.permutation import PermutationResult, permutation_test
from pyfastr.inference.stability import StabilityResult, stability_selection

__all__ = [
    "BootstrapResult",
    "PermutationResult",
    "StabilityResult",
    "bootstrap_factors",
    "permutation_test",
    "stability_selection",
]
