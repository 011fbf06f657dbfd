"""The numbers printed in the paper, to stand beside those measured here.

The paper's MSE is no mean of squares on held-out data: it matches ‖y − ŷ‖₂ / N on the samples that
were fitted. Its figures are drawn, not printed, so they have no numbers here.
"""

from collections.abc import Sequence
from functools import cache
from typing import Literal

Metric = Literal["mse", "ce", "seconds", "auc"]

# The columns of the paper's tables; LR is the better one of lasso and elastic net.
PUBLISHED_METHODS: dict[str, Sequence[str]] = {
    "table1": ("FasTR", "Remurs", "LR", "SURF", "GLTRM"),
    "table2": ("FasTR", "Remurs", "LR", "SURF"),
    "table3": ("FasTR", "Remurs", "Lasso", "Elastic Net", "SURF"),
}
# What each method has a number of, in this order; a dash where the paper has none.
_METRICS: dict[str, Sequence[Metric]] = {
    "table1": ("mse", "ce"),
    "table2": ("mse",),
    "table3": ("seconds", "auc"),
}
_TABLES = {
    "table1": """
10×10 (10):       0.0427 0.7717   0.1157 0.8398  0.7095 0.9989         -      -   1.8169  3.1381
20×20 (40):       0.0305 0.5284   0.2393 0.8509  0.4235 0.9937         -      -   4.5746  5.715
30×30 (90):       0.0342 0.3483   1.3414 0.8449  0.4980 0.9927         -      -   7.9937  9.2854
100×100 (1000):   0.0628 0.3436   0.1804 0.8030  0.5149 0.9998         -      -  22.4912 29.7461
200×200 (4000):   0.056  0.2544   0.4596 0.7905  0.5434 0.9994         -      -  52.3116 62.9425
300×300 (9000):   0.0518 0.2349  10.978  0.8404  0.5140 0.9998         -      -  72.3897 87.5139
5×5×5 (100):      0.0047 0.1205   0.0610 0.8524  0.0324 0.4507    0.7933 0.8417        -       -
10×10×10 (100):   0.0127 0.1863   0.0925 0.9281  0.0586 0.2126    2.8068 0.9997        -       -
15×15×15 (100):   0.1219 0.6772   0.3757 0.8707  0.2544 0.6461   12.6857 0.9989        -       -
20×20×20 (100):   0.2158 0.8323   0.5301 0.8562  1.3930 1.0711    5.5318 0.9619        -       -
25×25×25 (100):   0.1385 0.8820   0.2472 0.8929  0.5221 1.1443    9.5182 0.8948        -       -
30×30×30 (100):   0.2514 0.8776   0.4386 0.8990  1.2765 1.0495   21.0606 0.9898        -       -
200×200×5 (1000): 0.3257 0.7334   0.5597 0.8877  1.3863 1.0010  175.2118 0.8436        -       -
300×300×5 (2250): 0.1810 0.6901   0.4867 0.9116       -      -  335.1932 0.9988        -       -
400×400×5 (4000): 0.2105 0.5467   0.4036 0.8843       -      -  107.6186 0.8733        -       -
""",
    "table2": """
100×100×5 (300):  0.2529  0.4795  1.0069  22.9196
100×100×5 (350):  0.2082  0.4451  1.0019  23.6516
100×100×5 (400):  0.2252  0.3692  0.8662  10.6082
100×100×5 (450):  0.3081  0.4902  1.2470  94.4651
100×100×5 (500):  0.1887  0.4896  0.8028  60.3166
100×100×5 (550):  0.2614  0.5480  1.0503  92.1064
100×100×5 (600):  0.1914  0.3370  0.7686  17.6773
""",
    "table3": """
#1:  0.3062 0.6786  23.9151 0.5929  2.2287 0.9388  2.6994 0.9566  0.1743 0.5042
#2:  0.3409 0.7692  19.2467 0.5572  2.6699 0.7552  2.6772 0.7575  0.1367 0.4785
#3:  0.3594 0.5314  21.7162 0.8642  2.5251 0.8109  2.5365 0.7786  0.1539 0.5286
#4:  0.3052 0.7778  33.0095 0.7071  2.4533 0.7237  2.4499 0.7376  0.1392 0.5857
#5:  0.3073 0.7681  26.8979 0.7272  2.6739 0.5602  2.7003 0.5413  0.1285 0.4755
#6:  0.3302 0.7222  10.0312 0.5972  2.3102 0.6554  2.365  0.6689  0.1707 0.5486
#7:  0.3453 0.6796  19.3765 0.5714  2.7856 0.6531  2.9838 0.679   0.1364 0.4444
#8:  0.2941 0.8     16.7164 0.5486  2.2362 0.6741  2.2854 0.7165  0.1811 0.5384
#9:  0.2992 0.6953  24.1116 0.6428  2.9229 0.5531  2.912  0.5509  0.196  0.5857
""",
}


def published_values(experiment: str, row: str, metric: Metric) -> dict[str, float]:
    """Look up what the paper prints in a row.

    Parameters
    ----------
    experiment : {"table1", "table2", "table3"}
    row : str
        Title of the problem.
    metric : {"mse", "ce", "seconds", "auc"}

    Returns
    -------
    dict of float
        By the paper's names of the methods; those without a number are missing.

    Examples
    --------
    >>> from pyfastr.experiments.published import published_values
    >>> published_values("table1", "300×300×5 (2250)", "ce")
    {'FasTR': 0.6901, 'Remurs': 0.9116, 'SURF': 0.9988}
    """
    numbers = _rows(experiment).get(row, {})
    return {method: value for (method, kind), value in numbers.items() if kind == metric}


@cache
def _rows(experiment: str) -> dict[str, dict[tuple[str, Metric], float]]:
    """Read the numbers of a table by row, and there by method and metric."""
    methods, metrics = PUBLISHED_METHODS[experiment], _METRICS[experiment]
    columns: list[tuple[str, Metric]] = [
        (method, metric) for method in methods for metric in metrics
    ]
    rows = {}
    for line in _TABLES[experiment].strip().splitlines():
        title, _, numbers = line.partition(":")
        cells = zip(columns, numbers.split(), strict=True)
        rows[title] = {column: float(cell) for column, cell in cells if cell != "-"}
    return rows
