"""What a statistician would ask about a fit: what was measured, and what to make of it."""

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, overload

import numpy as np

from pyfastr.display import traits
from pyfastr.display.advice import advice
from pyfastr.display.fitted import fitted_part
from pyfastr.display.modes import modes_of
from pyfastr.display.remark import Advice

WIDTH = 88


class Diagnosis(Sequence[Advice]):
    """Remarks on a fit, the gravest first, and what they are based on.

    It is a sequence of :class:`~pyfastr.display.remark.Advice`, empty if nothing calls for
    attention, that prints itself.

    Parameters
    ----------
    title : str
    remarks : sequence of Advice
    measured : dict of str
        Names of what was measured, with the values in words.

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(12, (8, 8), random_state=0)
    >>> diagnosis = FasTRRegressor(ridge=0.1, random_state=0).fit(X, y).diagnose()
    >>> diagnosis[0].level
    'caution'
    >>> diagnosis.measured["samples"]
    '12, for 16 free parameters'
    """

    def __init__(self, title: str, remarks: Sequence[Advice], measured: dict[str, str]) -> None:
        self.title = title
        self.remarks = tuple(remarks)
        self.measured = measured

    def __len__(self) -> int:
        return len(self.remarks)

    @overload
    def __getitem__(self, index: int) -> Advice: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Advice]: ...

    def __getitem__(self, index: int | slice) -> Advice | Sequence[Advice]:
        return self.remarks[index]

    def __repr__(self) -> str:
        lines = [self.title, *(line for own in self.remarks for line in _lines(own))]
        if not self.remarks:
            lines.append("  All clear. Nothing in this fit calls for attention.")
        widest = max(map(len, self.measured))
        lines.append("Measured")
        for name, value in self.measured.items():
            lines += _wrapped(f"{name:<{widest}}  {value}", "  ", " " * (widest + 4))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the same for notebooks, in the style of the page."""
        remarks = "".join(
            f"<li><strong>{own.heading}.</strong> {escape(own.what)} {escape(own.do)}</li>"
            for own in self.remarks
        )
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(value)}</td></tr>'
            for name, value in self.measured.items()
        )
        told = f"<ul>{remarks}</ul>" if remarks else "<p>Nothing calls for attention.</p>"
        return f"<div><strong>{escape(self.title)}</strong>{told}<table>{rows}</table></div>"


def _lines(remark: Advice) -> Iterator[str]:
    """Yield a remark as indented lines."""
    yield from _wrapped(f"{remark.heading}. {remark.what}", "  ", "    ")
    if remark.do:
        yield from _wrapped(remark.do, "    → ", "      ")


def _wrapped(text: str, first: str, later: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=later)


def diagnose(model: Any) -> Diagnosis:
    """Say in plain words what to know of a fitted model before using it, and what to do.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of pyfastr, or a pipeline that ends in one.

    Returns
    -------
    Diagnosis
    """
    part = fitted_part(model)
    shape = traits.shape_text(part.coef_.shape)
    return Diagnosis(
        f"{type(part).__name__}, samples of {shape}", advice(model), dict(measured(model, part))
    )


def measured(model: Any, part: Any) -> Iterator[tuple[str, str]]:
    """Yield names and values of what remarks are based on.

    Parameters
    ----------
    model : estimator or Pipeline
    part : estimator
        The one with the coefficient.
    """
    n_samples, n_free = traits.n_samples(part), traits.n_free(part)
    if n_samples is not None:
        yield "samples", f"{n_samples:,}, for {traits.count(n_free, 'free parameter')}"
    yield from _of_choice(part)
    yield from _of_search(part)
    yield from _of_design(model, part)


def _of_choice(part: Any) -> Iterator[tuple[str, str]]:
    """Yield what the folds say."""
    if not traits.has_scores(part):
        return
    scores, held_out = traits.fold_scores(part), traits.held_out(part)
    if held_out is not None:
        sizes = np.unique(held_out.folds, return_counts=True)[1]
        held = f"{sizes.min()} to {sizes.max()}" if np.ptp(sizes) else str(sizes[0])
        yield "folds", f"{len(sizes)}, each scored on {held} held-out samples"
    if len(scores):
        spread = f", from {traits.number(scores.min())} to {traits.number(scores.max())}"
        yield traits.score_name(part), f"{traits.number(scores.mean())} on average{spread}"
    for name in ("threshold", "ridge"):
        grid = traits.grid_of(part, name)
        ends = f"{traits.number(grid[0])} to {traits.number(grid[-1])}"
        yield name, f"{traits.number(getattr(part, f'{name}_'))}, chosen from {ends}"


def _of_search(part: Any) -> Iterator[tuple[str, str]]:
    """Yield how the search and the sweeps went."""
    starts = getattr(part, "starts_", None)
    if starts is not None and starts.n_polished:
        sure = "sure" if starts.sure else "not sure"
        agreed = f"{starts.n_hits} of {starts.n_polished}"
        yield "starts", f"{agreed} that were carried to the end agree, {sure}"
    if hasattr(part, "n_iter_") and hasattr(part, "converged_"):
        how = "converged" if part.converged_ else "not converged"
        yield "sweeps", f"{part.n_iter_}, {how}"


def _of_design(model: Any, part: Any) -> Iterator[tuple[str, str]]:
    """Yield what the samples decide, and which slices look alike."""
    design = getattr(part, "design_", None)
    if design is None:
        return
    yield "effective parameters", f"{design.n_effective:.1f}, intercept and covariates included"
    top = int(np.argmax(design.leverage))
    mean = traits.mean_leverage(part)
    yield "leverage", f"{mean:.2f} on average, {design.leverage[top]:.2f} at most (sample {top})"
    for mode, pair, r in zip(modes_of(model), design.alike, design.correlation, strict=True):
        if pair[0] < 0:
            continue
        first, second = (mode.value(int(number)) for number in sorted(pair))
        yield mode.name, f"slices {first} and {second} are the most alike, correlation {r:.2f}"
