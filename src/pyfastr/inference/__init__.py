"""How sure a fitted model is, and what it rests on.

Permutation tests, stability selection, bootstrap intervals, importance of slices.

Permuted responses, subsamples and bootstrap samples are further columns of the solver's batch:
they share each pass over X.
"""

from pyfastr.inference.bootstrap import BootstrapResult, bootstrap_factors
from pyfastr.inference.importance import SliceImportance, slice_importance
from pyfastr.inference.permutation import PermutationResult, permutation_test
from pyfastr.inference.stability import StabilityResult, stability_selection

__all__ = [
    "BootstrapResult",
    "PermutationResult",
    "SliceImportance",
    "StabilityResult",
    "bootstrap_factors",
    "permutation_test",
    "slice_importance",
    "stability_selection",
]
