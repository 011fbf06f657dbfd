"""Reports to look at, keep and send: one page of HTML in an object."""

import html
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyfastr.display import traits
from pyfastr.display.document import Document, Section
from pyfastr.display.fitted import fitted_part, part_of_any
from pyfastr.display.html import document_to_html
from pyfastr.display.performance import reference_text
from pyfastr.display.report_sections import fingerprint_of, page_values
from pyfastr.display.templating import render
from pyfastr.estimators.atomic import replacing
from pyfastr.estimators.namespaces import on_host
from pyfastr.estimators.outputs import models_of_outputs, n_outputs_of

# Of the frame in a notebook.
WIDTH, HEIGHT = "100%", 800


class Report:
    """A page of HTML that needs no other file and no network.

    In a notebook it shows itself.

    Parameters
    ----------
    page : str
        The whole page.

    Examples
    --------
    >>> from pyfastr.display import Report
    >>> from pyfastr.display.document import Document
    >>> report = Report.from_document(Document("Results", ["All is well."], []))
    >>> report.html.startswith("<!doctype html>")
    True
    """

    def __init__(self, page: str) -> None:
        self._page = page
        self.width: int | str = WIDTH
        self.height: int | str = HEIGHT

    @classmethod
    def from_document(cls, document: Document) -> "Report":
        """Make a report of text, tables and figures.

        Parameters
        ----------
        document : Document

        Returns
        -------
        Report
        """
        return cls(document_to_html(document))

    @property
    def html(self) -> str:
        """The page."""
        return self._page

    def get_standalone(self) -> str:
        """Return the page.

        Returns
        -------
        str
        """
        return self._page

    def save_as_html(self, path: str | Path) -> Path:
        """Write the page to a file, at once and whole.

        Parameters
        ----------
        path : str or Path
            In a folder that exists; a file of that name is replaced.

        Returns
        -------
        Path
        """
        file = Path(path)
        if not file.parent.is_dir():
            raise FileNotFoundError(
                f"path is {str(path)!r}, but there is no folder {str(file.parent)!r}; expected a "
                "file in a folder that exists. Create it first."
            )
        if file.is_dir():
            raise IsADirectoryError(
                f"path is {str(path)!r}, which is a folder; expected the name of a file in it, "
                "such as 'report.html'."
            )
        with replacing(file) as page:
            page.write(self._page.encode())
        return file

    def open_in_browser(self) -> Path:
        """Show the page in the browser.

        Returns
        -------
        Path
            The temporary file that the browser was given; it stays until you delete it.
        """
        with tempfile.NamedTemporaryFile(
            prefix="pyfastr-", suffix=".html", delete=False
        ) as temporary:
            temporary.write(self._page.encode())
        file = Path(temporary.name)
        webbrowser.open(file.as_uri())
        return file

    def resize(self, width: int | str, height: int | str) -> "Report":
        """Set the size that the page has in a notebook.

        Parameters
        ----------
        width, height : int or str
            Pixels, or as in CSS ("100%").

        Returns
        -------
        Report
            The report itself.
        """
        self.width, self.height = width, height
        return self

    def _repr_html_(self) -> str:
        """Put the page in a frame of its own, so that its styles leave the notebook alone."""
        width, height = html.escape(str(self.width)), html.escape(str(self.height))
        return (
            f'<iframe srcdoc="{html.escape(self._page)}" width="{width}" height="{height}" '
            'title="pyfastr report" style="border:0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Report of {len(self._page) / 1000:.0f} kB: see save_as_html, open_in_browser>"


def model_report(
    model: Any,
    *,
    X: Any = None,
    y: Any = None,
    covariates: Any = None,
    title: str | None = None,
    background: Any = None,
    mask: Any = None,
    extra_sections: Sequence[Section] = (),
    code: str | None = None,
) -> Report:
    """Describe a fitted model in one page, with an interactive view of its coefficient.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of pyfastr, or a pipeline that ends in one. Several outputs, or more than
        two classes, each have a report of their own within the page.
    X : array-like of shape (n_samples, p1, ..., pM), optional
        Samples that had no part in the fit, to tell how well they are predicted.
    y : array-like of shape (n_samples,), optional
        Their responses.
    covariates : array-like of shape (n_samples, n_covariates), optional
    title : str, optional
    background : array-like of the shape of `coef_`, optional
        Shown in grey behind the coefficient, such as an anatomical image.
    mask : array-like of bool of the shape of `coef_`, optional
        Where samples have data: elsewhere the coefficient is shown as zero.
    extra_sections : sequence of Section, optional
        Further text, tables and figures, before the paragraph for a paper.
    code : str, optional
        What fits the model again; written from its parameters by default.

    Returns
    -------
    Report

    Examples
    --------
    >>> from pyfastr import FasTRRegressor
    >>> from pyfastr.datasets import make_tensor_regression
    >>> from pyfastr.display import model_report
    >>> X, y = make_tensor_regression(120, (6, 5), random_state=0)
    >>> model = FasTRRegressor(random_state=0).fit(X[:100], y[:100])
    >>> report = model_report(model, X=X[100:], y=y[100:], title="Six by five")
    >>> "<h1>Six by five</h1>" in report.html
    True
    """
    if (X is None) != (y is None):
        given, missing = ("X", "y") if y is None else ("y", "X")
        raise ValueError(
            f"{given} was given without {missing}; expected both, samples and their responses, or "
            "neither."
        )
    several = part_of_any(model)
    if n_outputs_of(several) is not None:
        own = {"covariates": covariates, "background": background, "mask": mask, "code": code}
        own["extra_sections"] = extra_sections
        return _report_of_outputs(model, several, X, y, title, own)
    part = fitted_part(model)
    values = page_values(model, part, X, y, covariates, background, mask)
    if code is not None:
        values["code"] = code
    name = title if title is not None else values["default_title"]
    contents = _contents(values, extra_sections)
    return Report(
        render("model.html.j2", title=name, contents=contents, extra=extra_sections, **values)
    )


def _report_of_outputs(
    model: Any, part: Any, X: Any, y: Any, title: str | None, options: dict[str, Any]
) -> Report:
    """Put a report of each output, or of each class against the rest, into one page."""
    labels = part.classes_.tolist() if hasattr(part, "classes_") else None
    targets = None if y is None else _targets(part, np.asarray(*on_host(X, y=y)))
    models = models_of_outputs(model)
    if targets is not None:
        _know_again(models, model, part, X, targets, options["covariates"])
    names, pages = list[str](), list[str]()
    for t, one in enumerate(models):
        names.append(f"Output {t}" if labels is None else f"Class {labels[t]}")
        own = targets if targets is None else targets[t]
        own = own if own is None or labels is None else own > 0
        pages.append(model_report(one, X=X, y=own, title=names[-1], **options).html)
    what = f"{len(pages)} {'outputs' if labels is None else 'classes, each against the rest'}"
    values = {
        "kicker": "pyfastr model report",
        "title": title if title is not None else f"{type(part).__name__}, {what}",
        "lead": _lead_of_outputs(part, what),
        "contents": [(f"output-{t}", name) for t, name in enumerate(names)],
        "pages": list(zip(names, pages, strict=True)),
    }
    return Report(render("outputs.html.j2", **values))


def _lead_of_outputs(part: Any, what: str) -> list[str]:
    """Say what outputs have in common."""
    lead = f"A report of each of {what}. They share threshold, ridge and number of terms."
    if not traits.has_folds(part):
        return [lead]
    score = traits.number(part.best_score_)
    mean = f"Mean {traits.score_name(part)} over all of them and the folds: {score}."
    return [lead, part.choice_, " ".join([mean, *reference_text(part)])]


def _targets(part: Any, y: Any) -> Any:
    """Return a row of numbers for each output, or of labels -1 and 1 for each class."""
    if not hasattr(part, "classes_"):
        return y.reshape(len(y), -1).T.astype(float)
    unknown = sorted(set(y.tolist()) - set(part.classes_.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"y has the classes {unknown}; expected those of the fit, {part.classes_.tolist()}."
        )
    return np.where(y == part.classes_[:, None], 1.0, -1.0)


def _know_again(
    models: Sequence[Any], model: Any, part: Any, X: Any, targets: Any, covariates: Any
) -> None:
    """Let models of one output know the data of the fit again, if these are given."""
    if fingerprint_of(model, part, X, targets, covariates) != getattr(part, "fingerprint_", None):
        return
    for one, target in zip(models, targets, strict=True):
        part_of_any(one).fingerprint_ = fingerprint_of(one, part, X, target, covariates)


def _contents(values: dict[str, Any], extra: Sequence[Section]) -> list[tuple[str, str]]:
    """Return anchors and headings."""
    drawn = [(section.name, section.title) for section in values["drawn"]]
    return [
        ("summary", "Summary"),
        ("performance", "How well it predicts"),
        ("coefficient", "Coefficient"),
        *drawn,
        *[(section.name, section.title) for section in extra],
        ("methods", "For a paper"),
        ("reproduce", "Fit it again"),
    ]
