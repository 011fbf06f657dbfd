"""From the options of a fit to an estimator."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyfastr.cli.errors import InputError
from pyfastr.cli.options import parse_list
from pyfastr.cli.samples import Samples


@dataclass(frozen=True)
class Choices:
    """What was asked for on the command line.

    Attributes
    ----------
    cv, classify : bool
    loss : str
    n_terms : list of int
    thresholds, ridges : list of float
        Empty where the estimator is to have its own way.
    folds, seed : int
    scale : str
        "none", "element", "global", or "mode:0,1".
    verbose : int
    checkpoint : Path or None
    """

    cv: bool
    classify: bool
    loss: str
    n_terms: list[int]
    thresholds: list[float]
    ridges: list[float]
    folds: int
    seed: int
    scale: str
    verbose: int
    checkpoint: Path | None = None

    @classmethod
    def parse(
        cls, n_terms: str | None, threshold: str | None, ridge: str | None, **others: Any
    ) -> "Choices":
        """Read the lists among the options.

        Parameters
        ----------
        n_terms, threshold, ridge : str or None
            Values with commas between them.
        **others : dict
            The other attributes.

        Returns
        -------
        Choices
        """
        choices = cls(
            n_terms=parse_list(n_terms, "--n-terms", int, lambda n: n >= 1, "an int from 1 on"),
            thresholds=parse_list(
                threshold, "--threshold", float, lambda t: 0 <= t < 1, "a number from 0 to below 1"
            ),
            ridges=parse_list(
                ridge, "--ridge", float, lambda r: 0 <= r < float("inf"), "a number from 0 on"
            ),
            **others,
        )
        choices._check_single_values()
        choices._check_loss()
        return choices

    def _check_loss(self) -> None:
        """Refuse a loss of another kind of target."""
        if self.loss == "logistic" and not self.classify:
            raise InputError("--loss is logistic, which is of classes; add --classify.")
        if self.loss == "poisson" and self.classify:
            raise InputError("--loss is poisson, which is of counts; leave --classify out.")

    def _check_single_values(self) -> None:
        """Refuse several values that nothing would choose from."""
        options: list[tuple[str, Sequence[float]]] = [
            ("--n-terms", self.n_terms),
            ("--threshold", self.thresholds),
            ("--ridge", self.ridges),
        ]
        for option, values in options:
            if not self.cv and len(values) > 1:
                given = ",".join(f"{value:g}" for value in values)
                raise InputError(f"{option} is {given}, but --no-cv takes one value; leave it out.")


def make_estimator(choices: Choices, samples: Samples, mask: Any) -> Any:
    """Make the estimator that was asked for.

    Parameters
    ----------
    choices : Choices
    samples : Samples
    mask : Path or None
        Mask of images.

    Returns
    -------
    estimator
        One of FasTR, in a pipeline if samples are scaled, or one of images.
    """
    model = _make_fastr(choices)
    if not samples.are_images:
        return _scaled(model, choices.scale, len(samples.shape))
    if choices.scale != "none":
        raise InputError(f"--scale is of arrays, but DATA is {samples.place}; leave it out.")
    from pyfastr import imaging

    kind = imaging.NiftiClassifier if choices.classify else imaging.NiftiRegressor
    mask_img = None if mask is None else str(mask)
    return kind(estimator=model, mask_img=mask_img, verbose=choices.verbose)


def _make_fastr(choices: Choices) -> Any:
    """Make one of the four estimators of arrays."""
    import pyfastr

    name = "FasTRClassifier" if choices.classify else "FasTRRegressor"
    common: dict[str, Any] = {
        "loss": choices.loss,
        "random_state": choices.seed,
        "verbose": choices.verbose,
        "checkpoint": choices.checkpoint,
    }
    if choices.cv:
        grids = {"thresholds": choices.thresholds, "ridges": choices.ridges}
        chosen: dict[str, Any] = {key: grid for key, grid in grids.items() if grid}
        if choices.n_terms:
            chosen["n_terms"] = tuple(choices.n_terms)
        return getattr(pyfastr, f"{name}CV")(cv=choices.folds, **chosen, **common)
    values: dict[str, Sequence[float]] = {
        "threshold": choices.thresholds,
        "ridge": choices.ridges,
        "n_terms": choices.n_terms,
    }
    return getattr(pyfastr, name)(**{key: v[0] for key, v in values.items() if v}, **common)


def _scaled(model: Any, scale: str, n_modes: int) -> Any:
    """Put a scaler before a model, if one was asked for."""
    if scale == "none":
        return model
    from sklearn.pipeline import make_pipeline

    from pyfastr import TensorScaler

    return make_pipeline(TensorScaler(per=_scaled_by(scale, n_modes)), model)


def _scaled_by(scale: str, n_modes: int) -> Any:
    """Translate --scale for the scaler; modes are counted from 0, as in reports."""
    if scale in ("element", "global"):
        return scale
    kind, _, modes = scale.partition(":")
    try:
        numbers = [int(mode) for mode in modes.split(",")]
    except ValueError:
        numbers = []
    if kind == "mode" and numbers and all(0 <= mode < n_modes for mode in numbers):
        return tuple(numbers)
    every = ", ".join(map(str, range(n_modes)))
    raise InputError(
        f"--scale is {scale or 'empty'}; expected none, element, global, or mode: with some of "
        f"the modes {every}, for example mode:0"
    )
