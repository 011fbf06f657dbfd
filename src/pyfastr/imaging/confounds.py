"""Confounds: columns in memory, or a table in a file."""

import os
from pathlib import Path
from typing import Any

from pyfastr.estimators.extras import require

SEPARATORS = {".csv": ",", ".tsv": "\t"}


def read_confounds(confounds: Any) -> Any:
    """Return a table that a path names as a data frame; anything else as it is."""
    if not isinstance(confounds, str | os.PathLike):
        return confounds
    path = Path(confounds).expanduser()
    if path.suffix not in SEPARATORS:
        raise ValueError(f"confounds is {path}; expected a .csv or .tsv file, or an array.")
    if not path.exists():
        raise FileNotFoundError(f"confounds is {path}, which does not exist; check the path.")
    # nilearn brings pandas with it.
    pandas = require("pandas", "imaging", "Reading a table of confounds")
    table = pandas.read_csv(path, sep=SEPARATORS[path.suffix])
    words = [str(name) for name in table.columns if table[name].dtype.kind not in "biuf"]
    if words:
        raise ValueError(
            f"{path} has columns that are no numbers: {', '.join(words)}; expected numbers in "
            "every column. Drop them, or code their categories as columns of 0 and 1."
        )
    return table
