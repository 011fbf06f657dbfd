"""Model files as inputs, and whether samples suit them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyfastr.cli.columns import Values, read_covariates
from pyfastr.cli.errors import InputError, as_input_error
from pyfastr.cli.fitted import fastr_of, split_reader
from pyfastr.cli.samples import Samples, times
from pyfastr.cli.voice import Voice


def load_model(path: Path) -> Any:
    """Load a model file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    fitted estimator
    """
    from pyfastr.persistence import ModelFileError, load

    with as_input_error(ModelFileError):
        model = load(path)
    if not hasattr(fastr_of(model), "factors_"):
        raise InputError(f"MODEL: {path} holds a {type(model).__name__}, which does not predict.")
    return model


def check_suits(samples: Samples, model: Any, path: Path) -> None:
    """Refuse samples of another kind or shape than those of the fit.

    Parameters
    ----------
    samples : Samples
    model : fitted estimator
    path : Path
        Of the model.
    """
    reader, rest = split_reader(model)
    if (reader is not None) != samples.are_images:
        kinds = ("arrays", "images") if reader is None else ("images", "arrays")
        raise InputError(f"{samples.place} holds {kinds[1]}, but {path} was fitted to {kinds[0]}.")
    first = rest[0] if hasattr(rest, "steps") else rest
    expected = tuple(first.tensor_shape_in_)
    if not samples.are_images and samples.shape != expected:
        hint = "Give samples of that shape."
        if samples.X.shape[:-1] == expected:
            hint = "If the last axis counts samples, add --samples-axis last."
        raise InputError(
            f"{samples.place} has samples of shape {times(samples.shape)}, but {path} was fitted "
            f"to samples of shape {times(expected)}. {hint}"
        )


def covariates_of(
    text: str | None, samples: Samples, voice: Voice, model: Any, path: Path
) -> Values | None:
    """Read the covariates that a model needs, and no others.

    Parameters
    ----------
    text : str or None
    samples : Samples
    voice : Voice
    model : fitted estimator
    path : Path
        Of the model.

    Returns
    -------
    Values or None
    """
    fastr = fastr_of(model)
    needed = len(getattr(getattr(fastr, "best_estimator_", fastr), "covariate_coef_", ()))
    names: Sequence[str] = list(getattr(fastr, "covariate_names_in_", ()))
    wanted = ", ".join(names) or f"{needed} of them"
    if needed and text is None:
        raise InputError(f"{path} was fitted with covariates: {wanted}. Add --covariates.")
    if text is not None and not needed:
        raise InputError(f"{path} was fitted without covariates; leave out --covariates.")
    found = read_covariates(text, samples, voice, names)
    if found is not None and found.array.shape[1] != needed:
        raise InputError(
            f"--covariates: {found.place} has {found.array.shape[1]} columns, but {path} was "
            f"fitted with {wanted}."
        )
    if found is not None and names and found.names and list(found.names) != names:
        raise InputError(
            f"--covariates are {', '.join(found.names)}, but {path} was fitted with {wanted}; give "
            "the same columns in the same order."
        )
    return found
