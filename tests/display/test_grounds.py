"""What is written must be readable on light and on dark ground."""

import numpy as np
import pytest
from matplotlib import colors
from matplotlib import pyplot as plt
from matplotlib.text import Text

from pyfastr.display import (
    CoefficientDisplay,
    ConvergenceDisplay,
    FactorsDisplay,
    ImportanceDisplay,
    PathDisplay,
    PermutationDisplay,
    PredictionDisplay,
    RocDisplay,
    SelectionDisplay,
    StabilityDisplay,
    StartsDisplay,
    style,
)

RNG = np.random.default_rng(0)
PICTURES = {
    "vector": lambda m: CoefficientDisplay.from_estimator(m["fitted"][1]),
    "matrix": lambda m: CoefficientDisplay.from_estimator(m["fitted"][2], hatch=True),
    "slices": lambda m: CoefficientDisplay.from_estimator(m["fitted"][3]),
    "factors": lambda m: FactorsDisplay.from_estimator(m["chosen"]),
    "terms": lambda m: FactorsDisplay([RNG.normal(size=(4, 3))]).plot(),
    "choice": lambda m: SelectionDisplay.from_estimator(m["chosen"]),
    "average": lambda m: SelectionDisplay.from_estimator(m["averaged"]),
    "starts": lambda m: StartsDisplay.from_estimator(m["fitted"][3]),
    "sweeps": lambda m: ConvergenceDisplay.from_estimator(m["fitted"][3]),
    "prediction": lambda m: PredictionDisplay.from_estimator(m["chosen"], by_fold=True),
    "roc": lambda m: RocDisplay.from_estimator(m["classifier"]),
    "stability": lambda m: StabilityDisplay([RNG.uniform(size=5)]).plot(),
    "importance": lambda m: ImportanceDisplay([RNG.uniform(size=5)], [np.full(5, 0.1)]).plot(),
    "permutation": lambda m: PermutationDisplay(0.5, RNG.normal(size=30), 0.1).plot(),
    "path": lambda m: PathDisplay([0, 0.1], [RNG.normal(size=(2, 5, 1))]).plot(),
}


@pytest.fixture(scope="module")
def models(fitted, chosen, averaged, classifier):
    return {"fitted": fitted, "chosen": chosen, "averaged": averaged, "classifier": classifier}


def contrast(first, second):
    low, high = sorted([style.luminance(first), style.luminance(second)])
    return (high + 0.05) / (low + 0.05)


def painted(figure):
    """Colours of lines and marks that are drawn in full."""
    for panel in figure.axes:
        for line in panel.get_lines():
            yield colors.to_rgba(line.get_color())
        for collection in panel.collections:
            yield from collection.get_edgecolor()


@pytest.mark.parametrize("ground", ["default", "dark_background"])
@pytest.mark.parametrize("name", PICTURES)
def test_words_and_lines_stand_out_and_none_is_cut_off(name, ground, models):
    with plt.style.context([ground, {"figure.dpi": 60}]):
        figure = PICTURES[name](models).figure_
        figure.canvas.draw()
        back = figure.get_facecolor()
        words = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
        assert words
        assert min(contrast(text.get_color(), back) for text in words) > 7
        strong = [colour for colour in painted(figure) if colour[3] > 0.9]
        assert all(contrast(colour, back) > 1.8 for colour in strong)
        for panel in figure.axes:
            box = panel.get_tightbbox()
            assert min(box.x0, box.y0) >= 0
            assert box.x1 <= figure.bbox.width
            assert box.y1 <= figure.bbox.height
