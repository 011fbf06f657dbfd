"""The work of `pyfastr simulate`: data to try the other commands on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyfastr.cli.errors import as_input_error
from pyfastr.cli.outputs import Outputs, check_writable, naming
from pyfastr.cli.samples import times
from pyfastr.cli.summary import facts
from pyfastr.cli.voice import Voice
from pyfastr.datasets import make_nifti_study, make_tensor_regression


@dataclass(frozen=True)
class Draw:
    """What is drawn.

    Attributes
    ----------
    shape : tuple of int
    n_samples : int
    noise : float
    seed : int
    """

    shape: tuple[int, ...]
    n_samples: int
    noise: float
    seed: int


def simulate_arrays(
    draw: Draw, output: Path, voice: Voice, *, sparsity: float, n_terms: int, force: bool
) -> None:
    """Draw X, y and the coefficient, write and tell.

    Parameters
    ----------
    draw : Draw
    output : Path
    voice : Voice
    sparsity : float
    n_terms : int
    force : bool
    """
    outputs = Outputs(force)
    outputs.claim("--output", output, [".npz"])
    with as_input_error(ValueError):
        X, y, coef = make_tensor_regression(
            draw.n_samples,
            draw.shape,
            sparsity=sparsity,
            noise=draw.noise,
            n_terms=n_terms,
            coef=True,
            random_state=draw.seed,
        )
    with outputs, outputs.draft(output) as draft:
        np.savez(draft, X=X, y=y, coef=coef)
    then = f"pyfastr fit {output}:X y -o model.fastr"
    _tell(draw, voice, {"arrays": output}, then, {"sparsity": sparsity, "n_terms": n_terms})


def simulate_images(draw: Draw, folder: Path, voice: Voice) -> None:
    """Draw images, a mask and a table, write and tell.

    Parameters
    ----------
    draw : Draw
    folder : Path
        New or empty.
    voice : Voice
    """
    with as_input_error(ValueError, OSError, what="--nifti"), naming("--nifti", folder):
        check_writable(_nearest_folder(folder.expanduser()))
        study = make_nifti_study(
            folder,
            draw.n_samples,
            # Whether it has three sizes is for the study to say.
            shape=draw.shape,  # type: ignore[arg-type]
            noise=draw.noise,
            random_state=draw.seed,
        )
    then = (
        f"pyfastr fit {study.table}:image score --covariates age --mask {study.mask} "
        "-o model.fastr --coef-img coef.nii.gz --report report.html"
    )
    files = {"folder": folder, "table": study.table, "mask": study.mask}
    _tell(draw, voice, files, then, {})


def _nearest_folder(path: Path) -> Path:
    """Return the first of the folders around a place that is there; the others will be made."""
    return next(parent for parent in path.absolute().parents if parent.exists())


def _tell(
    draw: Draw, voice: Voice, files: Mapping[str, Path], then: str, others: Mapping[str, Any]
) -> None:
    """Say what was drawn, and what can be done with it."""
    voice.show(
        f"Drew {draw.n_samples} samples of {times(draw.shape)}", facts({**files, "now try": then})
    )
    voice.document(
        {
            "command": "simulate",
            "n_samples": draw.n_samples,
            "sample_shape": draw.shape,
            "noise": draw.noise,
            "seed": draw.seed,
            **others,
            "files": files,
        }
    )
