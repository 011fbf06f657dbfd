"""What was chosen and why, in one line."""

from collections.abc import Sequence

import numpy as np

from pyfastr.estimators.candidates import Gain

ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh"}


def choice_sentence(
    n_terms: int,
    gains: Sequence[Gain],
    agreement: float,
    *,
    refitted: bool,
    n_points: int,
    is_asked: bool,
    simplest: bool,
) -> str:
    """Say how many terms a choice by folds has, what it was made of, and why.

    Parameters
    ----------
    n_terms : int
    gains : sequence of Gain
        Of further terms that were tried; empty if `n_terms` says how many there are.
    agreement : float
        Median cosine between the folds' coefficients; NaN of one fold.
    refitted : bool
        Whether the choice was fitted to all samples, rather than taken as a mean of `n_points`.
    n_points : int
    is_asked : bool
        Whether the user asked for that.
    simplest : bool
        Whether the simplest model within a standard error was wanted, whatever terms gain.
    """
    why = counted(n_terms)
    if simplest:
        why += ", the simplest choice within a standard error of the best"
    elif gains:
        why += f": {_told_of(gains)}"
    # Rounded towards what was decided: 0.95 is enough, and 0.949 is not.
    shown = agreement if refitted else np.floor(100 * agreement) / 100
    alike = f"median cosine {shown:.2f}"
    if np.isnan(agreement):
        return f"{why}; {'fitted to all samples' if refitted else 'the model of the only fold'}."
    if refitted:
        reason = "" if is_asked else ", as the folds' coefficients agree"
        return f"{why}; fitted to all samples{reason} ({alike})."
    points = f" at {n_points} points that scores cannot tell apart" if n_points > 1 else ""
    reason = "" if is_asked else ", as their coefficients differ"
    return f"{why}; the mean of the folds' models{points}{reason} ({alike})."


def counted(n_terms: int) -> str:
    """Write a number of terms.

    Examples
    --------
    >>> from pyfastr.estimators.choice_text import counted
    >>> counted(1), counted(3)
    ('1 term', '3 terms')
    """
    return f"{n_terms} term{'' if n_terms == 1 else 's'}"


def _told_of(gains: Sequence[Gain]) -> str:
    """Say what each further term was worth in held-out samples."""
    first = gains[0]
    verb, what = (
        ("lowers", "the held-out loss") if first.is_of_loss else ("raises", "the held-out score")
    )
    parts = list[str]()
    for own in gains:
        ordinal = ORDINALS.get(own.n_terms, f"{own.n_terms}th")
        article = "an" if own.n_terms in (8, 11, 18) else "a"
        term = f"the {ordinal}" if own.is_worth_it else f"{article} {ordinal}"
        told = f"{own.share:.2%}" if own.is_of_loss else f"{own.share:.3g}"
        if own.share <= 0 or told == "0.00%":
            parts.append(f"{term} does not" if parts else f"{term} does not {verb[:-1]} {what}")
            continue
        parts.append(f"{term} by {told}" if parts else f"{term} {verb} {what} by {told}")
        if not own.is_worth_it:
            parts[-1] += ", too little to count" if own.is_clear else ", which may be chance"
    return ", ".join(parts)
