"""What a person sees of results in a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from pyfastr.cli.samples import times

_FILE_NAMES = {"coef_img": "image"}


def facts(rows: Mapping[str, Any]) -> Table:
    """Draw names on the left and what they are on the right.

    Parameters
    ----------
    rows : mapping of str to str or Text
        What is empty is left out.

    Returns
    -------
    rich.table.Table
    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        if value:
            shown = value if isinstance(value, Text) else Text(printable(str(value)))
            grid.add_row(f"  {name}", shown)
    return grid


def fit_summary(found: Mapping[str, Any]) -> list[Any]:
    """Draw what came of a fit.

    Parameters
    ----------
    found : mapping
        As `pyfastr.cli.fitted.describe` returns it.

    Returns
    -------
    list of renderables
    """
    head = Text.assemble(
        (found["estimator"], "bold"),
        f" on {found['n_samples']} samples of {times(found['sample_shape'])}",
        (f", {found['seconds']:.1f} s", "dim"),
    )
    rows = {
        _score_name(found["score"]): _score_text(found["score"]),
        "flattened ridge": _reference_text(found["score"].get("reference")),
        "chosen" if found["score"]["folds"] else "given": chosen_text(found["chosen"]),
        "why": found["choice"],
        "coefficient": _coefficient_text(found),
        "starts": _starts_text(found["starts"]),
    }
    files = {_FILE_NAMES.get(kind, kind): path for kind, path in found["files"].items()}
    return [head, facts({**rows, "": " ", **files})]


def printable(text: str) -> str:
    r"""Replace what could steer a terminal: a model file of others may hold any text.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from pyfastr.cli.summary import printable
    >>> printable("red: \x1b[31m")
    'red: �[31m'
    """
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def chosen_text(chosen: Mapping[str, Any]) -> str:
    """Say which parameters the model has.

    Parameters
    ----------
    chosen : mapping

    Returns
    -------
    str

    Examples
    --------
    >>> from pyfastr.cli.summary import chosen_text
    >>> chosen_text({"n_terms": 2, "threshold": 0.1, "ridge": 0.01})
    '2 terms, threshold 0.1, ridge 0.01'
    """
    n_terms = chosen["n_terms"]
    return (
        f"{n_terms} term{'s' if n_terms != 1 else ''}, threshold {_number(chosen['threshold'])}, "
        f"ridge {_number(chosen['ridge'])}"
    )


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _score_name(score: Mapping[str, Any]) -> str:
    name = {"area under the ROC curve": "ROC area"}.get(score["name"], score["name"])
    return f"held-out {name}" if score["folds"] else f"training {name}"


def _score_text(score: Mapping[str, Any]) -> Text:
    """Say how good the model is, and on what."""
    if not score["folds"]:
        return Text.assemble(
            (f"{score['value']:.4f}", "bold"), ("  on the samples it was fitted to", "dim")
        )
    scaled = "; X was scaled by all samples, also by held-out ones"
    return Text.assemble(
        (f"{score['value']:.4f}", "bold green"),
        f" ± {score['spread']:.4f}",
        (f"  mean of {score['folds']} folds", "dim"),
        (scaled if score["scaled_before_folds"] else "", "yellow"),
    )


def _reference_text(reference: Mapping[str, Any] | None) -> Text | None:
    """Say how well ridge regression on flattened samples did in the same folds."""
    if reference is None:
        return None
    better = ("  clearly better than this model", "yellow") if reference["is_better"] else ""
    return Text.assemble(f"{reference['score']:.4f}", better)


def _coefficient_text(found: Mapping[str, Any]) -> str:
    """Say how sparse the coefficient is."""
    share = found["n_nonzero"] / found["n_entries"]
    return f"{found['n_nonzero']:,} of {found['n_entries']:,} entries are not zero ({share:.0%})"


def _starts_text(starts: Mapping[str, Any] | None) -> Text | None:
    """Say how many starts agreed, and whether that is enough."""
    if starts is None:
        return None
    agreed = f"{starts['n_hits']} of {starts['n_polished']} agreed, "
    if starts["sure"]:
        return Text.assemble(agreed, ("sure", "green"))
    return Text.assemble(
        agreed, (sureness(starts), "yellow"), (": another solution may fit better", "dim")
    )


def sureness(starts: Mapping[str, Any]) -> str:
    """Say whether the best solution is sure; if not, how likely, where a model tells that."""
    if starts["sure"]:
        return "sure"
    chance = starts.get("confidence")
    return "not sure" if chance is None else f"not sure ({chance:.0%})"
