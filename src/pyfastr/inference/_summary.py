"""How results show themselves: one line of text, or a small table in a notebook."""

from html import escape


class Summary:
    """A result that says in a few numbers what was found."""

    def _facts(self) -> dict[str, str]:
        """Return names and values, the most important first."""
        raise NotImplementedError

    def _sentence(self) -> str:
        """Return what the numbers mean."""
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self._facts().items())
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        """Return a table for notebooks, which brings no style but that of the page."""
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(name.replace("_", " "))}</th>'
            f'<td style="text-align:right">{escape(value)}</td></tr>'
            for name, value in self._facts().items()
        )
        return (
            f"<div><strong>{escape(type(self).__name__)}</strong>"
            f"<p>{escape(self._sentence())}</p><table>{rows}</table></div>"
        )


def counted(number: int, noun: str) -> str:
    """Return a number and what it counts, in the plural where there are several."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
