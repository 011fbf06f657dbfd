"""How errors are told: one line that says what, where and what to do, and a code that means it."""

import errno
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

BAD_INPUT, UNEXPECTED, INTERRUPTED = 2, 1, 130
# What the system says of a disk, a quota or a file that can take no more.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
TRACEBACK_VARIABLE = "PYFASTR_TRACEBACK"


class InputError(Exception):
    """What the person at the terminal can put right.

    Its text names the file or option, what is wrong with it, and what to do.
    """


class PlainGroup(TyperGroup):
    """Commands whose errors are one line each, with the exit codes of this module."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line, and end the process with its exit code."""
        run = partial(
            super().main, args, prog_name, complete_var, False, windows_expand_args, **extra
        )
        if not standalone_mode:
            return run()
        sys.exit(exit_code_of(run))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named; an interruption is told and is no error."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            notes = getattr(stop, "__notes__", [])
            say_error(" ".join(["Interrupted. Nothing is left half-written.", *notes]))
            raise typer.Exit(INTERRUPTED) from None


def exit_code_of(run: Callable[[], Any]) -> int:
    """Run, tell what goes wrong in one line, and return the exit code.

    Parameters
    ----------
    run : callable
        Returns None, or an exit code of its own.

    Returns
    -------
    int
    """
    try:
        code = run()
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exception(error)
        code, line = _told(error)
        say_error(line)
    return code if isinstance(code, int) else 0


@contextmanager
def as_input_error(*kinds: type[Exception], what: str = "") -> Iterator[None]:
    """Turn errors of these kinds into one about the input, but for lack of a package or memory.

    Parameters
    ----------
    *kinds : exception types
    what : str
        Which file or option is concerned; stands before what the error says.
    """
    try:
        yield
    except (InputError, ImportError, MemoryError):
        raise
    except kinds as error:
        raise InputError(f"{what}: {error}" if what else str(error)) from error


def say_error(line: str) -> None:
    """Print one line for a person, whatever breaks its text had.

    Parameters
    ----------
    line : str
    """
    head, colon, rest = " ".join(line.split()).partition(":")
    typer.echo(typer.style(head, fg="red") + colon + rest if colon else head, err=True)


def _told(error: Exception) -> tuple[int, str]:
    """Return the exit code of an error, and what to say of it."""
    if hasattr(error, "format_message"):
        return BAD_INPUT, f"Error: {error.format_message()} {_help_of(error)}"
    if isinstance(error, InputError):
        return BAD_INPUT, f"Error: {error}"
    if isinstance(error, ImportError) and "pip install" in str(error):
        return BAD_INPUT, f"Error: {error}"
    if isinstance(error, OSError) and error.errno in FULL:
        # Python does not always tell which file it was that there was no room for.
        place = f"{error.filename}: " if error.filename else ""
        return BAD_INPUT, f"Error: {place}{error.strerror}. Make room, or write to another place."
    if isinstance(error, OSError) and error.filename is not None:
        return BAD_INPUT, f"Error: {error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return UNEXPECTED, f"Error: not enough memory. {error} Use fewer or smaller samples."
    return UNEXPECTED, (
        f"Unexpected {type(error).__name__}: {error} To see where it came from: "
        f"{TRACEBACK_VARIABLE}=1 {_command()}"
    )


def _help_of(error: Any) -> str:
    """Say which help knows more about a command line that makes no sense."""
    context = getattr(error, "ctx", None)
    return f"See: {context.command_path} --help" if context is not None else ""


def _command() -> str:
    """Return the command line of this run."""
    return shlex.join(["pyfastr", *sys.argv[1:]])
