"""The `pyfastr` command."""

import signal
import sys
from typing import Any


def main() -> None:
    """Run the command line."""
    _hear_signals()
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


def _hear_signals() -> None:
    """Remove drafts of files also if the process is ended, or its terminal closed."""
    signal.signal(signal.SIGTERM, _leave)
    # Windows has none, and what `nohup` starts is to outlive its terminal.
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        signal.signal(hang_up, _leave)


def _leave(number: int, frame: Any) -> None:
    """End as by an error, so that drafts of files are removed, with the shell's code for it."""
    sys.exit(128 + number)
