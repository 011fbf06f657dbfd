"""The work of `pyfastr predict`: a table with a row for each sample."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyfastr.cli.columns import Values
from pyfastr.cli.errors import as_input_error
from pyfastr.cli.fitted import arguments_for, split_reader
from pyfastr.cli.models import check_suits, covariates_of, load_model
from pyfastr.cli.options import SamplesAxis
from pyfastr.cli.outputs import Outputs
from pyfastr.cli.places import parse_place
from pyfastr.cli.samples import Samples, read_samples, times
from pyfastr.cli.summary import facts
from pyfastr.cli.voice import Voice


def run_predict(
    path: Path,
    data: str,
    output: Path,
    voice: Voice,
    *,
    covariates: str | None,
    axis: SamplesAxis,
    force: bool,
) -> None:
    """Load, read, predict, write and tell.

    Parameters
    ----------
    path : Path
        Model file.
    data : str
    output : Path
    voice : Voice
    covariates : str or None
    axis : SamplesAxis
    force : bool
    """
    outputs = Outputs(force)
    outputs.claim("--output", output, [".csv", ".tsv"])
    outputs.protect([path, parse_place(data, "DATA").file])
    model = load_model(path)
    samples = read_samples(data, axis, voice)
    check_suits(samples, model, path)
    values = covariates_of(covariates, samples, voice, model, path)
    outputs.protect([*samples.files, *([] if values is None else [values.place.file])])
    with voice.hearing_warnings(), as_input_error(ValueError, OSError, what=str(samples.place)):
        columns = _predicted(model, samples, values, voice.verbose)
    with outputs, outputs.draft(output) as draft:
        _write_table(draft, list(columns), zip(*columns.values(), strict=True))
    _tell(voice, path, samples, output, list(columns))


def _predicted(
    model: Any, samples: Samples, covariates: Values | None, verbose: int
) -> dict[str, Sequence[Any]]:
    """Return the columns of the table."""
    reader, model = split_reader(model)
    # Images are read once, for predictions and probabilities.
    X = samples.X if reader is None else reader.set_params(verbose=verbose).transform(samples.X)
    arguments = arguments_for(model, covariates, "predict")
    name = "image" if samples.images else "sample"
    columns = {name: samples.names, "prediction": model.predict(X, **arguments).tolist()}
    if hasattr(model, "classes_"):
        probabilities = model.predict_proba(X, **arguments)
        for label, column in zip(model.classes_.tolist(), probabilities.T, strict=True):
            columns[f"probability_{label}"] = column.tolist()
    return columns


def _write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write numbers in full: what is read again is what was predicted."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _tell(voice: Voice, path: Path, samples: Samples, output: Path, columns: list[str]) -> None:
    """Say what was predicted, and where it is."""
    voice.show(
        f"Predicted {samples.n_samples} samples of {times(samples.shape)}",
        facts({"model": path, "data": samples.place, "predictions": output}),
    )
    voice.document(
        {
            "command": "predict",
            "model": path,
            "data": str(samples.place),
            "n_samples": samples.n_samples,
            "columns": columns,
            "warnings": voice.warnings,
            "files": {"predictions": output},
        }
    )
