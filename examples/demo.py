"""A three-dimensional problem of the paper, fitted and compared: a table, a picture, a report.

``make demo`` runs it. It needs matplotlib: ``pip install ".[plot]"``.
"""

import base64
import io
import time
import warnings
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from pyfastr import FasTRRegressorCV
from pyfastr.baselines import PublishedFasTR
from pyfastr.datasets import make_tensor_regression
from pyfastr.metrics import coefficient_error, support_precision, support_recall

Array = NDArray[Any]

SHAPE, N_TRAIN, N_TEST = (20, 20, 20), 100, 400
FOLDER = Path("demo")
# A diverging map and two hues that stay apart for colour-blind readers.
COLOURS, TRUE_COLOUR, FOUND_COLOUR = "RdBu_r", "#767676", "#0b5a9d"
HEADER = ("method", "seconds", "CE", "held-out R²", "precision", "recall", "starts that agreed")


@dataclass(frozen=True)
class Fitted:
    """A fitted method: its name, coefficient, row of the table, and what it chose."""

    name: str
    coef: Array
    cells: tuple[str, ...]
    choice: str


def simulate() -> tuple[Array, Array, Array, Array, Array]:
    """Draw the data: training samples, held-out samples, and the coefficient behind both."""
    X, y, W = make_tensor_regression(N_TRAIN + N_TEST, SHAPE, coef=True, random_state=0)
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:], W


def methods() -> dict[str, Any]:
    """Return what is compared. The lasso sees every sample as one long vector."""
    flatten = FunctionTransformer(lambda X: X.reshape(len(X), -1))
    return {
        "FasTRRegressorCV": FasTRRegressorCV(random_state=0),
        "PublishedFasTR": PublishedFasTR(random_state=0),
        "LassoCV": make_pipeline(flatten, LassoCV(cv=5)),
    }


def coefficient(model: Any) -> Array:
    """Return the coefficient in the shape of a sample."""
    return model[-1].coef_.reshape(SHAPE) if hasattr(model, "steps") else model.coef_


def agreement(model: Any) -> str:
    """Say how many starts ended in the solution, where there were several."""
    starts = getattr(model, "starts_", None)
    if starts is None:
        return "–"
    return f"{starts.n_hits} of {starts.n_polished}{', sure' if starts.sure else ''}"


def choice(name: str, model: Any) -> str:
    """Say what was chosen, and from how many points, by a method that tells."""
    if not hasattr(model, "best_params_"):
        return ""
    n_folds, n_points = model.scores_path_.shape[-1], len(model.cv_results_["params"])
    return (
        f"{name} chose threshold {model.threshold_:g} and ridge {model.ridge_:g} from {n_points} "
        f"pairs by {n_folds} folds, whose mean held-out R² is {model.best_score_:.4f}."
    )


def evaluate(
    name: str, model: Any, train: tuple[Array, Array], test: tuple[Array, Array], W: Array
) -> Fitted:
    """Fit one method and measure it against the truth and on the held-out samples."""
    begin = time.perf_counter()
    model.fit(*train)
    seconds = time.perf_counter() - begin
    coef = coefficient(model)
    values = (
        f"{seconds:.2f}",
        f"{coefficient_error(coef, W):.4f}",
        f"{model.score(*test):.4f}",
        f"{support_precision(coef, W):.3f}",
        f"{support_recall(coef, W):.3f}",
    )
    return Fitted(name, coef, (name, *values, agreement(model)), choice(name, model))


def print_table(fits: list[Fitted]) -> None:
    """Print names to the left and numbers to the right."""
    lines = [HEADER, *(fit.cells for fit in fits)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    for line in lines:
        first, *others = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join([first.strip().ljust(widths[0]), *others]))


def directions(W: Array) -> list[Array]:
    """Leading vector of each mode, of unit length; for a unit-rank W its factors."""
    found = []
    for mode in range(W.ndim):
        unfolded = np.moveaxis(W, mode, 0).reshape(W.shape[mode], -1)
        vector = np.linalg.svd(unfolded, full_matrices=False)[0][:, 0]
        found.append(vector * np.sign(vector[np.abs(vector).argmax()]))
    return found


def draw(fits: list[Fitted], W: Array) -> Figure:
    """Show every coefficient seen along mode 3 above the factors, true and found."""
    figure = Figure(figsize=(11, 6.8), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.1)
    above, below = figure.subfigures(2, 1, height_ratios=(1.0, 0.9), hspace=0.04)
    draw_coefficients(above, fits, W)
    draw_factors(below, fits[0], W)
    return figure


def draw_coefficients(figure: SubFigure, fits: list[Fitted], W: Array) -> None:
    """Show, for each pair of indices in modes 1 and 2, the largest entry along mode 3."""
    limit = float(np.abs(W).max())
    panels = [("Truth", W, "")] + [(f.name, f.coef, f"CE {f.cells[2]}") for f in fits]
    axes = figure.subplots(1, len(panels), sharey=True)
    for axis, (name, coef, error) in zip(axes, panels, strict=True):
        seen = largest_along_last(coef)
        image = axis.imshow(seen, cmap=COLOURS, vmin=-limit, vmax=limit)
        axis.set_title(f"{name}\n{error}", fontsize=11)
        axis.set_xlabel("mode 2")
        axis.set_xticks((0, 5, 10, 15))
        axis.spines[:].set_color("#bbbbbb")
        axis.tick_params(left=axis is axes[0])
    axes[0].set_ylabel("mode 1")
    axes[0].set_yticks((0, 5, 10, 15))
    figure.colorbar(image, ax=axes, label="coefficient", shrink=0.8, pad=0.01)
    title = "Coefficient: the entry of largest magnitude along mode 3"
    figure.suptitle(title, fontsize=13, x=0.01, ha="left")


def largest_along_last(coef: Array) -> Array:
    """Keep the entry of largest magnitude along the last mode, with its sign."""
    at = np.abs(coef).argmax(axis=-1)
    return np.take_along_axis(coef, at[..., None], axis=-1)[..., 0]


def draw_factors(figure: SubFigure, found: Fitted, W: Array) -> None:
    """Compare the factors of the truth and of the fit, entry by entry."""
    axes = figure.subplots(1, W.ndim, sharey=True)
    pairs = zip(directions(W), directions(found.coef), strict=True)
    for mode, (axis, (true, ours)) in enumerate(zip(axes, pairs, strict=True)):
        # A factor's sign is free: only that of the product is fixed.
        draw_factor(axis, true, ours * np.sign(true @ ours))
        axis.set_xlabel(f"index in mode {mode + 1}")
        axis.tick_params(left=axis is axes[0])
    axes[0].set_ylabel("factor, of unit length")
    axes[-1].legend(frameon=False, loc="best", fontsize=10)
    title = f"Factors of the truth and of {found.name}: a dot in its ring is a hit"
    figure.suptitle(title, fontsize=13, x=0.01, ha="left")


def draw_factor(axis: Axes, true: Array, found: Array) -> None:
    """Draw true entries as rings on stems, found ones as dots."""
    index = np.arange(len(true))
    axis.axhline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
    axis.vlines(index, 0, true, color=TRUE_COLOUR, linewidth=1.2)
    ring = {"facecolors": "white", "edgecolors": TRUE_COLOUR, "linewidths": 1.4}
    axis.scatter(index, true, s=62, label="true", zorder=2, **ring)
    axis.scatter(index, found, s=14, color=FOUND_COLOUR, label="found", zorder=3)
    axis.set_xticks((0, 5, 10, 15))
    axis.spines[["top", "right"]].set_visible(False)


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>pyfastr demo</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1d1d1f; background: #fff;
  max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }}
th, td {{ padding: .35rem .9rem; text-align: right; border-bottom: 1px solid #ddd; }}
th:first-child, td:first-child {{ text-align: left; }}
tbody tr:first-child {{ font-weight: 600; }}
img {{ max-width: 100%; height: auto; }}
</style>
</head>
<body>
<h1>pyfastr on a problem of the paper</h1>
<p>{task}</p>
<div class="wide">
<table>
<thead><tr>{header}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<p>CE is the error of the coefficient relative to its size: 0 is the truth, 1 is no better than
a coefficient of zeros. Precision is the share of the selected entries that are truly non-zero,
recall the share of the truly non-zero entries that are selected. {starts}</p>
<p>{choice}</p>
<img src="data:image/png;base64,{picture}" alt="{alt}">
</body>
</html>
"""
TASK = (
    f"{N_TRAIN} samples of shape {' × '.join(map(str, SHAPE))}, so "
    f"{int(np.prod(SHAPE))} unknown entries. The true coefficient is an outer product of three "
    f"vectors with a fifth of their entries zero. R² is on {N_TEST} further samples."
)
STARTS = (
    "The last column counts the starts of FasTRRegressorCV that were carried to the end and "
    "reached the solution it returned; “sure” means that every other solution fits far worse."
)
ALT = (
    "The true coefficient, seen along mode 3, beside those found by FasTRRegressorCV, the "
    "published algorithm and the lasso; below, the factors of the truth and of FasTRRegressorCV."
)


def page(fits: list[Fitted], png: bytes) -> str:
    """Return the report with table and picture inside."""
    rows = ["".join(f"<td>{escape(cell)}</td>" for cell in fit.cells) for fit in fits]
    return PAGE.format(
        task=escape(TASK),
        header="".join(f"<th>{escape(cell)}</th>" for cell in HEADER),
        rows="\n".join(f"<tr>{row}</tr>" for row in rows),
        starts=escape(STARTS),
        choice=escape(fits[0].choice),
        picture=base64.b64encode(png).decode(),
        alt=escape(ALT),
    )


def main() -> None:
    """Fit, print the table, write picture and report."""
    X, y, X_test, y_test, W = simulate()
    print(fill(TASK, 88) + "\n")
    with warnings.catch_warnings():
        # That a method which is compared did not converge shows in its error.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [
            evaluate(name, model, (X, y), (X_test, y_test), W) for name, model in methods().items()
        ]
    print_table(fits)
    print("\n" + fill(fits[0].choice, 88))
    FOLDER.mkdir(exist_ok=True)
    buffer = io.BytesIO()
    draw(fits, W).savefig(buffer, format="png", dpi=150)
    (FOLDER / "coefficient.png").write_bytes(buffer.getvalue())
    report = FOLDER / "report.html"
    report.write_text(page(fits, buffer.getvalue()), encoding="utf-8")
    print(f"\nThe picture is {FOLDER / 'coefficient.png'}. Open {report.resolve()} in a browser.")


if __name__ == "__main__":
    main()
