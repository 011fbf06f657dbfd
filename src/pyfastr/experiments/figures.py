"""The figures of the experiments."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyfastr.display import style
from pyfastr.display.document import Figure
from pyfastr.estimators.extras import require
from pyfastr.experiments.methods import OURS, Method
from pyfastr.experiments.problems import Problem
from pyfastr.experiments.studies import Study
from pyfastr.experiments.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_WIDTH, _HEIGHT = 11.0, 4.8
_DODGE = 0.05


def draw_times_by_size(summary: Summary, study: Study) -> "Drawing":
    """Draw Figure 1: seconds by size, for two modes and for three.

    Parameters
    ----------
    summary : Summary
    study : Study

    Returns
    -------
    matplotlib.figure.Figure
    """
    orders = sorted({len(problem.shape) for problem in study.problems})
    drawing = _new_drawing()
    panels = drawing.subplots(1, len(orders), squeeze=False)[0]
    for panel, order in zip(panels, orders, strict=True):
        problems = [problem for problem in study.problems if len(problem.shape) == order]
        _draw_metric(panel, summary, problems, "seconds")
        names = ["×".join(map(str, problem.shape)) for problem in problems]
        panel.set_xticks(range(len(names)), names, rotation=30, horizontalalignment="right")
        panel.set_title(f"{order} modes")
        panel.set_xlabel("shape of a sample")
    _add_legend(drawing, panels)
    return drawing


def draw_by_sparsity(summary: Summary, study: Study) -> "Drawing":
    """Draw Figure 2: seconds and held-out error by the share of zeros.

    Parameters
    ----------
    summary : Summary
    study : Study

    Returns
    -------
    matplotlib.figure.Figure
    """
    drawing = _new_drawing()
    panels = drawing.subplots(1, 2)
    names = [study.label(problem) for problem in study.problems]
    for panel, metric in zip(panels, ("seconds", "relative_mse"), strict=True):
        _draw_metric(panel, summary, study.problems, metric)
        panel.set_xticks(range(len(names)), names)
        panel.set_xlabel("share of zeros in each component")
    panels[0].set_title("Time")
    panels[1].set_title("Held-out MSE over the variance of y")
    _add_legend(drawing, panels)
    return drawing


def render(drawing: "Drawing", name: str, title: str, alt: str, notes: Sequence[str]) -> Figure:
    """Write a drawing as vectors and pixels.

    Parameters
    ----------
    drawing : matplotlib.figure.Figure
    name, title, alt : str
    notes : sequence of str

    Returns
    -------
    Figure
    """
    import matplotlib as mpl

    svg, png = io.BytesIO(), io.BytesIO()
    # The same results give the same bytes, so that a figure under version control changes only
    # when they do.
    with mpl.rc_context({"svg.hashsalt": name}):
        drawing.savefig(svg, format="svg", metadata={"Date": None})
    drawing.savefig(png, format="png", dpi=150)
    return Figure(name, title, alt, svg.getvalue(), png.getvalue(), notes)


def _new_drawing() -> "Drawing":
    drawing: Drawing = require("matplotlib.figure", "plot", "Drawing figures").Figure(
        figsize=(_WIDTH, _HEIGHT), layout="constrained"
    )
    return drawing


def _draw_metric(panel: "Axes", summary: Summary, problems: Sequence[Problem], metric: str) -> None:
    """Draw a line for every method; time-outs as hollow marks at the limit."""
    for method in summary.plan.methods:
        _draw_means(panel, summary, problems, metric, method)
    if metric == "seconds":
        panel.axhline(summary.plan.budget, color="#999999", linestyle="--", linewidth=1)
        for method in summary.plan.methods:
            _draw_time_outs(panel, summary, problems, method)
        panel.set_ylabel("seconds, tuning included")
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.grid(axis="y", color="#e5e5e5")
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _draw_means(
    panel: "Axes", summary: Summary, problems: Sequence[Problem], metric: str, method: Method
) -> None:
    """Draw the means of a method as a line."""
    means = [summary.of(problem, method).mean(metric) for problem in problems]
    known = [(at, value) for at, value in enumerate(means) if value is not None]
    at, values = zip(*known, strict=True) if known else ((), ())
    width = 2.6 if method.key == OURS else 1.2
    panel.plot(at, values, label=method.title, linewidth=width, **_style(summary, method))


def _draw_time_outs(
    panel: "Axes", summary: Summary, problems: Sequence[Problem], method: Method
) -> None:
    """Draw a hollow mark at the limit where trials were ended there."""
    ended = [at for at, problem in enumerate(problems) if _is_ended(summary, problem, method)]
    # Side by side: many methods may end there.
    shift = _DODGE * (summary.plan.methods.index(method) - (len(summary.plan.methods) - 1) / 2)
    hollow = {**_style(summary, method), "markerfacecolor": "white", "linestyle": ""}
    panel.plot([at + shift for at in ended], [summary.plan.budget] * len(ended), **hollow)


def _style(summary: Summary, method: Method) -> dict[str, Any]:
    """Return the colour and the mark of a method."""
    index = summary.plan.methods.index(method)
    colour = style.TEN[index % len(style.TEN)]
    return {"color": colour, "marker": style.marker(index), "markersize": 6}


def _is_ended(summary: Summary, problem: Problem, method: Method) -> bool:
    """Whether a trial ran into the limit."""
    return any(result.status == "timeout" for result in summary.of(problem, method).results)


def _add_legend(drawing: "Drawing", panels: Sequence["Axes"]) -> None:
    """Name the methods once, beside the panels."""
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside right center", frameon=False)
