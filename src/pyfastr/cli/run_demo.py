"""The work of `pyfastr demo`: a table, a picture, a report and a model file."""

from pathlib import Path
from typing import Any

from rich.table import Table

from pyfastr.cli.outputs import Outputs
from pyfastr.cli.run_report import require_report
from pyfastr.cli.summary import facts
from pyfastr.cli.voice import Voice
from pyfastr.persistence import save


def run_demo(out: Path, voice: Voice, *, force: bool) -> None:
    """Fit, write and tell.

    Parameters
    ----------
    out : Path
        Folder of the files.
    voice : Voice
    force : bool
    """
    outputs = Outputs(force)
    outputs.claim("--out", out)
    require_report()
    from pyfastr.experiments import demo

    voice.show(demo.TASK, "")
    found = demo.run_demo(lambda name: voice.note(f"Fitting {name} ..."), voice.verbose)
    voice.show(_table(demo.HEADER, found), "", found.choice, "")
    figure = found.figure()
    with outputs, outputs.draft(out) as folder:
        folder.mkdir()
        (folder / "coefficient.png").write_bytes(figure.png)
        found.report(figure).save_as_html(folder / "report.html")
        save(found.fits[0].model, folder / "model.fastr")
    files = {
        "report": out / "report.html",
        "picture": out / "coefficient.png",
        "model": out / "model.fastr",
    }
    voice.show(facts({**files, "now": f"open {files['report'].resolve()} in a browser"}))
    voice.document({"command": "demo", "fits": _rows(found), "files": files})


def _table(header: tuple[str, ...], found: Any) -> Table:
    """Draw the comparison, ours in bold."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column(header[0], no_wrap=True)
    for name in header[1:]:
        table.add_column(name, justify="right")
    for number, fit in enumerate(found.fits):
        table.add_row(*fit.cells, style="bold" if number == 0 else None)
    return table


def _rows(found: Any) -> list[dict[str, Any]]:
    """Return the comparison for programs."""
    return [{"method": f.name, "seconds": f.seconds, **f.measures} for f in found.fits]
