"""What a fitted model tells of itself, whichever kind of estimator it is."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score

from pyfastr import __version__
from pyfastr.cli.columns import Values
from pyfastr.display.traits import is_of_counts, score_name
from pyfastr.estimators.regressor import score_numbers

if TYPE_CHECKING:
    from pyfastr.cli.run_fit import FitData


def is_imaging(model: Any) -> bool:
    """Whether a model is one of images by itself, and no pipeline.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    bool
    """
    return type(model).__module__.startswith("pyfastr.imaging")


def fastr_of(model: Any) -> Any:
    """Return the FasTR estimator in an estimator of images or a pipeline.

    Parameters
    ----------
    model : fitted estimator

    Returns
    -------
    FasTRRegressor, FasTRClassifier or their CV twins
    """
    if hasattr(model, "steps"):
        return model[-1]
    return getattr(model, "estimator_", model) if is_imaging(model) else model


def split_reader(model: Any) -> tuple[Any, Any]:
    """Part a model of images into what reads them and what takes the arrays.

    Parameters
    ----------
    model : fitted estimator

    Returns
    -------
    reader : NiftiTransformer or None
        None if the model takes arrays.
    rest : fitted estimator
    """
    if is_imaging(model):
        return model.transformer_, model.estimator_
    if hasattr(model, "steps") and is_imaging(model[0]):
        return model[0], model[1:]
    return None, model


def silence(model: Any) -> None:
    """Set `verbose` to 0: a model file says how to fit it again, not who watched.

    Parameters
    ----------
    model : fitted estimator
    """
    fastr = fastr_of(model)
    reader = getattr(model, "transformer_", model)
    for part in (model, reader, fastr, getattr(fastr, "best_estimator_", fastr)):
        names = [name for name in part.get_params() if name.split("__")[-1] == "verbose"]
        part.set_params(**dict.fromkeys(names, 0))


def arguments_for(
    model: Any, covariates: Values | None, method: str, **others: Any
) -> dict[str, Any]:
    """Name covariates, and others that are given, as a method of the model does.

    Parameters
    ----------
    model : estimator
    covariates : Values or None
    method : {"fit", "predict"}
    **others : dict
        What is not None is passed on.

    Returns
    -------
    dict
    """
    values = None if covariates is None else framed(covariates)
    name = "confounds" if is_imaging(model) else "covariates"
    given = {name: values, **others}
    step = f"{model.steps[-1][0]}__" if method == "fit" and hasattr(model, "steps") else ""
    return {f"{step}{key}": value for key, value in given.items() if value is not None}


def describe(
    model: Any, read: "FitData", files: Mapping[str, Path], warnings: Sequence[str], seconds: float
) -> dict[str, Any]:
    """Collect what is to be told of a fit.

    Parameters
    ----------
    model : fitted estimator
    read : FitData
    files : mapping of str to Path
    warnings : sequence of str
    seconds : float

    Returns
    -------
    dict
    """
    fastr, samples = fastr_of(model), read.samples
    n_nonzero, n_entries = _count_entries(model)
    return {
        "command": "fit",
        "version": __version__,
        "data": str(samples.place),
        "target": str(read.target.place),
        "estimator": type(fastr).__name__,
        "n_samples": samples.n_samples,
        "sample_shape": samples.shape,
        "tensor_shape": tuple(fastr.tensor_shape_in_),
        "chosen": chosen_of(fastr),
        "choice": getattr(fastr, "choice_", None),
        "score": _score(model, fastr, read),
        "n_nonzero": n_nonzero,
        "n_entries": n_entries,
        "starts": _starts(fastr),
        "converged": getattr(fastr, "converged_", None),
        "seconds": round(seconds, 3),
        "warnings": list(warnings),
        "files": dict(files),
    }


def chosen_of(fastr: Any) -> dict[str, Any]:
    """Return the parameters of the model, chosen or given.

    Parameters
    ----------
    fastr : fitted FasTR estimator

    Returns
    -------
    dict
    """
    own = fastr if hasattr(fastr, "best_params_") else None
    return {
        name: getattr(own, f"{name}_") if own is not None else getattr(fastr, name)
        for name in ("n_terms", "threshold", "ridge")
    }


def _count_entries(model: Any) -> tuple[int, int]:
    """Count the entries of the coefficient that are not zero, and all; of images, in the mask."""
    if is_imaging(model):
        image = model.coef_img_
        n_volumes = 1 if image.ndim == 3 else image.shape[3]
        return int(np.count_nonzero(image.dataobj)), n_volumes * model.n_elements_
    coef = fastr_of(model).coef_
    return int(np.count_nonzero(coef)), coef.size


def _score(model: Any, fastr: Any, read: "FitData") -> dict[str, Any]:
    """Return the held-out score, or that on the training data where none was held out."""
    is_classifier = hasattr(fastr, "classes_")
    if hasattr(fastr, "best_score_"):
        spread = fastr.cv_results_["std_test_score"][fastr.best_index_]
        return {
            "name": score_name(fastr),
            "value": fastr.best_score_,
            "spread": spread,
            "folds": fastr.scores_path_.shape[-1],
            "reference": _reference(fastr),
            # The scaler of --scale is the first step, and fitted once.
            "scaled_before_folds": hasattr(model, "steps"),
        }
    arguments = arguments_for(model, read.covariates, "predict")
    prediction = model.predict(read.samples.X, **arguments)
    if is_classifier:
        value = float(accuracy_score(read.target.array, prediction))
        return {"name": "accuracy", "value": value, "folds": 0}
    value = score_numbers(fastr.loss, read.target.array, prediction)
    return {"name": "D²" if is_of_counts(fastr) else "R²", "value": value, "folds": 0}


def _reference(fastr: Any) -> dict[str, Any] | None:
    """Return how flattened ridge regression did in the same folds, where it is known."""
    reference = getattr(fastr, "reference_", None)
    if reference is None:
        return None
    names = (
        *("score", "alpha", "unseen_score", "unseen_score_of_choice"),
        *("lead", "lead_error", "is_better"),
    )
    return {name: getattr(reference, name) for name in names}


def _starts(fastr: Any) -> dict[str, Any] | None:
    """Return how the search went, where there was one."""
    starts = getattr(fastr, "starts_", None)
    if starts is None:
        return None
    if isinstance(starts, list):  # of several outputs, the one that is the least sure
        starts = min(starts, key=lambda own: own.confidence or 0.0)
    names = ("n_starts", "n_polished", "n_hits", "gap", "sure", "confidence")
    return {name: getattr(starts, name) for name in names}


def framed(covariates: Values) -> Any:
    """Give covariates their names, if there is a package for it.

    Parameters
    ----------
    covariates : Values

    Returns
    -------
    DataFrame or ndarray
    """
    if not covariates.names:
        return covariates.array
    try:
        pandas = import_module("pandas")
    except ImportError:
        return covariates.array
    return pandas.DataFrame(covariates.array, columns=list(covariates.names))
