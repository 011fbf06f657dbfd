"""The `pyfastr` command."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        import rich  # noqa: F401

        from pyfastr.cli.app import app
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("typer", "rich"):
            raise
        sys.stderr.write(
            f"Error: the pyfastr command needs {error.name}, which is not installed. "
            "Run: pip install 'pyfastr[cli]'\n"
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="pyfastr")
