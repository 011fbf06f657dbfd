"""The `pyfastr` command."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from pyfastr.cli.app import app
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(
            f"The pyfastr command needs {error.name}, which is not installed. "
            "Run: pip install 'pyfastr[cli]'"
        )
    app()
