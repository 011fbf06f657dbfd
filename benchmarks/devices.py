"""What fits and sweeps cost where X is a tensor of torch, beside NumPy in the same run.

Fits take turns, and the fastest of each counts. What travels between device and host in a sweep is
counted by torch, as it is asked for it, on the processor too, where nothing has to move.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from _report import environment, print_table, size_name
from numpy.typing import NDArray
from torch.overrides import TorchFunctionMode

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import sklearn

from pyfastr import FasTRClassifier, FasTRRegressor, FasTRRegressorCV
from pyfastr.datasets import make_tensor_regression
from pyfastr.engines import Draw
from pyfastr.solver.models import Models
from pyfastr.solver.penalties import Penalty
from pyfastr.solver.problem import make_problem
from pyfastr.solver.sweep import cyclic_sweep
from pyfastr.sources import DeviceSource

Array = NDArray[Any]

SIZES = {"51x61x23": (360, (51, 61, 23)), "200x200x5": (500, (200, 200, 5))}
QUICK_SIZES = {"20x24x10": (60, (20, 24, 10))}
DTYPES = ("float32", "float64")
N_MODELS = (1, 32)
ESTIMATORS = {
    "FasTRRegressor": FasTRRegressor(threshold=0.05, n_init=8, random_state=0),
    "FasTRRegressorCV": FasTRRegressorCV(thresholds=[0.0, 0.1], cv=3, n_init=8, random_state=0),
    "FasTRClassifier, logistic": FasTRClassifier(loss="logistic", n_init=8, random_state=0),
}


class Travel(TorchFunctionMode):
    """Counts the bytes that NumPy hands to torch and takes back."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.returned = 0, 0

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if function is torch.Tensor.numpy:
            self.returned += args[0].numel() * args[0].element_size()
        if function is torch.asarray and isinstance(args[0], np.ndarray):
            self.sent += args[0].nbytes
        return function(*args, **(kwargs or {}))


def devices() -> list[str]:
    """Return the devices that torch has here."""
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def seconds_of(work: Callable[[], Any]) -> float:
    """Time a piece of work; a fit ends with numbers on the host, so nothing is left pending."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def fit_cells(name: str, X: Array, y: Array, repeats: int) -> list[str]:
    """Time fits of one estimator to X of NumPy and of torch on each device."""
    y = y > 0 if "Classifier" in name else y
    works = {"NumPy": partial(sklearn.clone(ESTIMATORS[name]).fit, X, y)}
    for device in devices():
        there = torch.asarray(X, device=device)
        works[device] = partial(sklearn.clone(ESTIMATORS[name]).fit, there, y)
    least = dict.fromkeys(works, np.inf)
    for turn in range(repeats + 1):
        for way, work in works.items():
            seconds = seconds_of(work)
            if turn > 0:  # the first turn warms up
                least[way] = min(least[way], seconds)
    ratios = [f"{least[device] / least['NumPy']:.2f}" for device in devices()]
    return [name, f"{least['NumPy']:.2f}", *ratios]


def travel_cells(X: Array, y: Array, n_models: int, *, drawn: bool) -> list[str]:
    """Count what travels in a sweep, after another one has sent what belongs to the samples."""
    source = DeviceSource(torch.asarray(X, device=devices()[-1]))
    problem = make_problem(source, y.astype(float), x_scale=1.0, fit_intercept=True)
    rng = np.random.default_rng(0)
    models = Models.random(n_models, 1, X.shape[1:], rng).astype(X.dtype)
    keys = rng.integers(2**63, size=n_models).astype(np.uint64)
    draw = (lambda _: Draw(keys)) if drawn else None
    models, _ = cyclic_sweep(problem, models, Penalty(1e-3), draw)
    with Travel() as travel:
        cyclic_sweep(problem, models, Penalty(1e-3), draw)
    weights = "drawn" if drawn else "none"
    kilobytes = [f"{n / 1e3:.1f}" for n in (travel.sent, travel.returned)]
    return [f"{n_models}", weights, *kilobytes, f"{X.nbytes / 1e6:.0f}"]


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--only", nargs="+", choices=tuple(SIZES), metavar="SIZE", help="such as 51x61x23")
    add("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    add("--repeats", type=int, default=3, help="of each timing")
    add("--quick", action="store_true", help="a small size, to try the script")
    return parser.parse_args()


def main() -> None:
    """Print the tables."""
    options = parse()
    sizes = QUICK_SIZES if options.quick else {k: SIZES[k] for k in options.only or SIZES}
    fits, travels = [], []
    for n_samples, shape in sizes.values():
        for dtype in options.dtypes:
            X, y = make_tensor_regression(
                n_samples, shape, noise=0.1, dtype=np.dtype(dtype), random_state=0
            )
            case = [size_name(shape, n_samples), dtype]
            with warnings.catch_warnings(), sklearn.config_context(array_api_dispatch=True):
                # How sure a search of few starts is does not matter here.
                warnings.simplefilter("ignore")
                fits += [case + fit_cells(name, X, y, options.repeats) for name in ESTIMATORS]
            travels += [
                case + travel_cells(X, y, n_models, drawn=drawn)
                for n_models in N_MODELS
                for drawn in (False, True)
            ]
    header = ["size (N)", "type", "fit", "NumPy s", *(f"torch {d} / NumPy" for d in devices())]
    print_table("Fits", header, fits)
    header = ["size (N)", "type", "models", "weights", "kB sent", "kB back", "MB of X"]
    print_table("What travels in a sweep", header, travels)
    print(f"\n{environment()}; torch {torch.__version__}, {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
