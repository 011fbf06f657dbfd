"""Saving and loading."""

import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pyfastr.estimators.atomic import replacing
from pyfastr.estimators.namespaces import hosted
from pyfastr.persistence import container
from pyfastr.persistence.codec import Decoder, Encoder
from pyfastr.persistence.document import read_document, readable, write_document
from pyfastr.persistence.errors import (
    ModelFileError,
    RefusedError,
    UnstorableError,
    damaged,
    foreign,
    unwritable,
)
from pyfastr.persistence.objects import KINDS
from pyfastr.persistence.registry import ESTIMATORS, is_registered
from pyfastr.persistence.schema import check

# What contradictions in a forged document may come to, beside those that are told apart.
CONTRADICTIONS = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(MemoryError, RecursionError),
)


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file.

    The file is in the safetensors format: factors and other arrays as they are, all else as JSON
    in the header. It holds no code. `coef_` is not in it, as the factors are.

    Parameters
    ----------
    model : estimator
        A fitted estimator of `pyfastr` or of `pyfastr.imaging`, a `TensorScaler`, or a
        scikit-learn Pipeline of these.
    path : str or path-like
        By convention it ends in ``.fastr``. An existing file is replaced, once the new one is
        complete.

    Returns
    -------
    Path

    Warns
    -----
    UserWarning
        If parameters cannot be kept (splitters, functions); `load` gives them their defaults,
        which only another `fit` would use.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyfastr
    >>> from pyfastr.datasets import make_tensor_regression
    >>> X, y = make_tensor_regression(60, (6, 5), random_state=0)
    >>> model = pyfastr.FasTRRegressor(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pyfastr.save(model, Path(folder) / "model.fastr")
    ...     loaded = pyfastr.load(path)
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    target, name = Path(path), type(model).__name__
    _check_savable(model)
    model = hosted(model)
    encoder = Encoder(KINDS)
    try:
        document = write_document(model, encoder)
        check(model)
        with replacing(target) as file:
            container.write(file, encoder.tensors, document)
    except RefusedError as refused:
        raise ModelFileError(f"Cannot save this {name} to {str(target)!r}: {refused}") from None
    except UnstorableError as what:
        raise ModelFileError(
            f"Cannot save this {name} to {str(target)!r}: {what}, which a model file cannot hold. "
            "Expected numbers, text, arrays of them, and estimators of pyfastr."
        ) from None
    except OSError as error:
        raise unwritable(target, error) from error
    _warn_of_unrestored(encoder.unrestored)
    return target


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` has written.

    Nothing in the file is run, and nothing is believed unchecked: a damaged, foreign, newer or
    forged file is refused, and takes no more memory than its own size and some megabytes.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator
        Equal to the one that was saved: its predictions agree to the last bit.

    Raises
    ------
    ModelFileError
        If the file cannot be read; it says why and what to do.

    See Also
    --------
    save : With an example.
    """
    with _refusing(path), _opened(Path(path)) as file:
        header = container.read_header(file)
        document = read_document(header.document)
        decoder = Decoder(KINDS, container.read_tensors(file, header))
        model = decoder.decode(document["model"])
        decoder.check_all_used()
        if not _is_savable(model) or type(model).__name__ != document["class"]:
            raise damaged("its document does not describe an estimator")
        check(model)
    return model


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a model file says of itself, without its arrays.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict
        "format_version", "library_version", "class", "parameters", "sample_shape", "n_samples",
        "fingerprint" of the training data, "search" (score and parameters of the choice,
        convergence, starts) and "unrestored" (parameters that the file could not keep).
        All of it is fit for JSON.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.persistence import read_header, save
    >>> X, y = make_tensor_regression(60, (6, 5), random_state=0)
    >>> model = FasTRRegressor(ridge=0.1, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     header = read_header(save(model, Path(folder) / "model.fastr"))
    >>> header["class"], header["sample_shape"], header["parameters"]["ridge"]
    ('FasTRRegressor', [6, 5], 0.1)
    """
    with _refusing(path), _opened(Path(path)) as file:
        document = read_document(container.read_header(file).document)
        described = readable(document.pop("model"))
        if not isinstance(described, dict):
            raise damaged("its document does not describe an estimator")
        parameters = described.get("parameters", {"steps": described.get("steps")})
    return document | {"parameters": parameters}


def _is_savable(model: Any) -> bool:
    return type(model) is Pipeline or is_registered(ESTIMATORS, model)


def _check_savable(model: Any) -> None:
    """Refuse what is none of ours or not fitted."""
    if not _is_savable(model):
        raise TypeError(
            f"model is a {type(model).__name__}; expected one of {', '.join(sorted(ESTIMATORS))} "
            "or a Pipeline of these."
        )
    for part in [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]:
        if is_registered(ESTIMATORS, part):
            name = type(part).__name__
            check_is_fitted(part, msg=f"This {name} is not fitted. Call fit, then save it.")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file; a pipe or a device might never end."""
    if path.is_dir():
        raise foreign("it is a folder")
    if not stat.S_ISREG(path.stat().st_mode):
        raise foreign("it is no regular file")
    with path.open("rb") as file:
        yield file


@contextmanager
def _refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever is wrong with a file into the one error that names it."""
    where = repr(os.fspath(path))
    try:
        yield
    except RefusedError as refused:
        raise ModelFileError(f"Cannot load {where}: {refused}") from None
    except FileNotFoundError:
        raise ModelFileError(
            f"Cannot load {where}: there is no such file. Check the path."
        ) from None
    except OSError as error:
        raise ModelFileError(
            f"Cannot load {where}: {error.strerror or error}. Check the path and its permissions."
        ) from error
    except CONTRADICTIONS as error:
        reason = damaged(f"its contents contradict each other ({type(error).__name__})")
        raise ModelFileError(f"Cannot load {where}: {reason}") from error


def _warn_of_unrestored(unrestored: dict[str, str]) -> None:
    if unrestored:
        what = ", ".join(f"{name}={value}" for name, value in unrestored.items())
        warnings.warn(
            f"A model file cannot keep {what}: `load` will give the default instead. Predictions "
            "are not affected; set it again with set_params before another fit.",
            UserWarning,
            stacklevel=3,
        )
