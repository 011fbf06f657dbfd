"""Pages from templates: one style sheet, one look, whatever the page is about."""

import base64
import json
import re
from functools import cache
from typing import Any

from pyfastr.display.document import Strong, Table
from pyfastr.estimators.extras import require


def render(template: str, **values: Any) -> str:
    """Fill a template in; all text is escaped unless it is marked as safe.

    Parameters
    ----------
    template : str
        Name of a file among the templates.
    **values : dict
        What the template asks for.

    Returns
    -------
    str
    """
    from pyfastr import __version__

    return _environment().get_template(template).render(version=__version__, **values)


def safe(markup: str) -> Any:
    """Mark text that is markup already, such as a drawing of our own."""
    return _markup()(markup)


def json_for_page(values: Any) -> Any:
    """Write values as JSON that can stand in a script element: nothing in it ends the element."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return safe(text)


def words(text: str) -> Any:
    """Escape a sentence, and set what stands between backticks as code."""
    escaped = str(_markup().escape(text))
    return safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))


@cache
def _environment() -> Any:
    jinja2 = require("jinja2", "report", "Writing HTML reports")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pyfastr.display", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.globals["static"] = _static
    environment.filters["base64"] = lambda content: base64.b64encode(content).decode()
    environment.filters["words"] = words
    environment.tests["strong"] = lambda cell: isinstance(cell, Strong)
    environment.tests["table"] = lambda part: isinstance(part, Table)
    return environment


@cache
def _static(name: str) -> Any:
    """Return a style sheet or script as it is: its braces are not those of a template."""
    environment = _environment()
    return safe(environment.loader.get_source(environment, name)[0])


def _markup() -> Any:
    return require("markupsafe", "report", "Writing HTML reports").Markup
