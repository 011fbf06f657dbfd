"""The options of `pyfastr info`."""

from pyfastr.cli.options import Json, Model
from pyfastr.cli.voice import Voice


def info(model: Model, json: Json = False) -> None:
    """Show what a model file holds, from its header alone."""
    from pyfastr.cli.run_info import run_info

    run_info(model, Voice(as_json=json))
