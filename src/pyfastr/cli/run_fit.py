"""`pyfastr fit`: from files to a model file, a coefficient image and a report."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyfastr.cli.choices import Choices, make_estimator
from pyfastr.cli.columns import Values, read_covariates, read_groups, read_target
from pyfastr.cli.errors import InputError, as_input_error
from pyfastr.cli.fitted import arguments_for, describe, silence
from pyfastr.cli.options import SamplesAxis
from pyfastr.cli.outputs import Outputs
from pyfastr.cli.run_report import make_report, require_report
from pyfastr.cli.samples import Samples, read_samples
from pyfastr.cli.summary import fit_summary
from pyfastr.cli.voice import Voice


@dataclass(frozen=True)
class FitFiles:
    """Where the results of a fit go, if anywhere.

    Attributes
    ----------
    model : Path
    report, coef_img : Path or None
    """

    model: Path
    report: Path | None
    coef_img: Path | None

    def claim(self, force: bool) -> Outputs:
        """Refuse what cannot be written, before anything is read."""
        outputs = Outputs(force)
        outputs.claim("--output", self.model, [".fastr"])
        outputs.claim("--report", self.report, [".html"])
        outputs.claim("--coef-img", self.coef_img, [".nii", ".nii.gz"])
        if self.report is not None:
            require_report()
        return outputs

    def as_dict(self) -> dict[str, Path]:
        """Return what is written, by kind."""
        named = {"model": self.model, "coef_img": self.coef_img, "report": self.report}
        return {kind: path for kind, path in named.items() if path is not None}


@dataclass(frozen=True)
class FitData:
    """What a model is fitted to.

    Attributes
    ----------
    samples : Samples
    target : Values
    covariates : Values or None
    groups : ndarray or None
    """

    samples: Samples
    target: Values
    covariates: Values | None
    groups: Any


def run_fit(
    data: str,
    target: str,
    files: FitFiles,
    choices: Choices,
    voice: Voice,
    *,
    covariates: str | None,
    groups: str | None,
    mask: Path | None,
    axis: SamplesAxis,
    force: bool,
) -> None:
    """Read, fit, write and tell.

    Parameters
    ----------
    data, target : str
    files : FitFiles
    choices : Choices
    voice : Voice
    covariates, groups : str or None
    mask : Path or None
    axis : SamplesAxis
    force : bool
    """
    outputs = files.claim(force)
    if groups is not None and not choices.cv:
        raise InputError("--groups keeps samples together in folds, but --no-cv has none.")
    samples = read_samples(data, axis, voice, mask=mask)
    _check_image_options(samples, files, mask)
    outputs.protect([*samples.files, *([] if mask is None else [mask])])
    read = FitData(
        samples,
        read_target(target, samples, voice, classify=choices.classify),
        read_covariates(covariates, samples, voice),
        read_groups(groups, samples, voice),
    )
    begin = time.perf_counter()
    model = _fit(make_estimator(choices, samples, mask), read, voice)
    seconds = time.perf_counter() - begin
    with outputs, voice.hearing_warnings():
        _write(model, read, files, outputs)
    found = describe(model, read, files.as_dict(), voice.warnings, seconds)
    voice.show(*fit_summary(found))
    voice.document(found)


def _check_image_options(samples: Samples, files: FitFiles, mask: Path | None) -> None:
    """Refuse options of images where there are none, and a mask that is not there."""
    for option, given in (("--mask", mask), ("--coef-img", files.coef_img)):
        if given is not None and not samples.are_images:
            raise InputError(f"{option} is of images, but DATA is {samples.place}; leave it out.")
    if mask is not None and not mask.is_file():
        raise InputError(f"--mask: there is no file {mask}.")


def _fit(model: Any, read: FitData, voice: Voice) -> Any:
    """Fit; what the estimators refuse is told with the names of the files."""
    files = f"fitting {read.target.place} to {read.samples.place}"
    with voice.hearing_warnings(), as_input_error(ValueError, OSError, what=files):
        arguments = arguments_for(model, read.covariates, "fit", groups=read.groups)
        model.fit(read.samples.X, read.target.array, **arguments)
    silence(model)
    return model


def _write(model: Any, read: FitData, files: FitFiles, outputs: Outputs) -> None:
    """Write what was asked for."""
    from pyfastr.persistence import save

    with outputs.draft(files.model) as draft:
        save(model, draft)
    if files.coef_img is not None:
        image = model.coef_img_
        with outputs.draft(files.coef_img) as draft:
            image.to_filename(draft)
    if files.report is not None:
        page = make_report(model)
        with outputs.draft(files.report) as draft:
            page.save_as_html(draft)
