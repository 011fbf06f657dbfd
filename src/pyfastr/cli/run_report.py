"""The work of `pyfastr report`: a page about a model."""

from pathlib import Path
from typing import Any

from pyfastr.cli.columns import Values, read_target
from pyfastr.cli.errors import InputError, as_input_error
from pyfastr.cli.fitted import framed, is_imaging
from pyfastr.cli.models import check_suits, covariates_of, load_model
from pyfastr.cli.options import SamplesAxis
from pyfastr.cli.outputs import Outputs
from pyfastr.cli.places import parse_place
from pyfastr.cli.samples import Samples, read_samples
from pyfastr.cli.summary import facts
from pyfastr.cli.voice import Voice
from pyfastr.estimators.extras import require


def run_report(
    path: Path,
    output: Path,
    voice: Voice,
    *,
    data: str | None,
    target: str | None,
    covariates: str | None,
    background: Path | None,
    axis: SamplesAxis,
    force: bool,
) -> None:
    """Load, read, write and tell.

    Parameters
    ----------
    path : Path
        Model file.
    output : Path
    voice : Voice
    data, target, covariates : str or None
        Further samples.
    background : Path or None
        Image under the coefficient.
    axis : SamplesAxis
    force : bool
    """
    inputs = [path] if data is None else [path, parse_place(data, "--data").file]
    outputs = Outputs(force)
    outputs.claim("--output", output, [".html"])
    outputs.protect(inputs)
    require_report()
    model = load_model(path)
    _check_background(background, model, path)
    arguments: dict[str, Any] = {}
    if data is not None and target is not None:
        samples = read_samples(data, axis, voice, "--data")
        check_suits(samples, model, path)
        is_classifier = hasattr(model, "classes_")
        y = read_target(target, samples, voice, classify=is_classifier, option="--target")
        values = covariates_of(covariates, samples, voice, model, path)
        arguments = _new_samples(model, samples, y, values)
    with voice.hearing_warnings(), as_input_error(ValueError, OSError, what=str(path)):
        page = make_report(model, background, **arguments)
    with outputs, outputs.draft(output) as draft:
        page.save_as_html(draft)
    voice.show(facts({"model": path, "report": output}))
    voice.document(
        {
            "command": "report",
            "model": path,
            "warnings": voice.warnings,
            "files": {"report": output},
        }
    )


def require_report() -> None:
    """Refuse to begin without the packages that a report needs."""
    for package in ("jinja2", "matplotlib"):
        require(package, "report", "Writing reports")


def make_report(model: Any, background: Path | None = None, **arguments: Any) -> Any:
    """Return the report of a model.

    Parameters
    ----------
    model : fitted estimator
    background : Path or None
        Image under the coefficient; None is the mean of the training images.
    **arguments : dict
        Further samples, as the report of this kind of model takes them.

    Returns
    -------
    Report
    """
    if is_imaging(model):
        under = "mean" if background is None else str(background)
        return model.generate_report(background_img=under, **arguments)
    from pyfastr.display.report import model_report

    return model_report(model, **arguments)


def _check_background(background: Path | None, model: Any, path: Path) -> None:
    """Refuse a background where there is no image to lie under, and one that is not there."""
    if background is None:
        return
    if not is_imaging(model):
        raise InputError(f"--background is of images, but {path} was fitted to arrays.")
    if not background.is_file():
        raise InputError(f"--background: there is no file {background}.")


def _new_samples(
    model: Any, samples: Samples, target: Values, covariates: Values | None
) -> dict[str, Any]:
    """Name further samples as the report takes them."""
    values = None if covariates is None else framed(covariates)
    if is_imaging(model):
        return {"imgs": samples.X, "y": target.array, "confounds": values}
    return {"X": samples.X, "y": target.array, "covariates": values}
