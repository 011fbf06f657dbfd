"""The options of `pyfastr simulate`."""

from pathlib import Path
from typing import Annotated

import typer

from pyfastr.cli.errors import InputError
from pyfastr.cli.options import OUTPUT_PANEL, Force, Json, Quiet, parse_folder, parse_shape
from pyfastr.cli.voice import Voice

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Arrays X, y and coef in one file, .npz.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Nifti = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        parser=parse_folder,
        help="New folder of images, a mask and a table of scores, instead of arrays.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Shape = Annotated[
    str | None,
    typer.Option(
        metavar="P1xP2x...",
        help="Shape of a sample.",
        show_default="20x20x20, images 12x14x10",
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(min=2, metavar="N", help="Number of samples.", show_default="100, images 40"),
]
Noise = Annotated[float, typer.Option(min=0, metavar="N", help="Standard deviation of the noise.")]
Sparsity = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=0.99,
        metavar="N",
        help="Share of zeros in each factor; of arrays.",
        show_default="0.2",
    ),
]
Terms = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Unit-rank terms of the coefficient; of arrays.",
        show_default="1",
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the draw.")]


def simulate(
    output: Output = None,
    nifti: Nifti = None,
    shape: Shape = None,
    samples: Samples = None,
    noise: Noise = 0.1,
    sparsity: Sparsity = None,
    terms: Terms = None,
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw data like the paper's, to try the other commands on."""
    from pyfastr.cli.run_simulate import Draw, simulate_arrays, simulate_images

    voice = Voice(as_json=json, quiet=quiet)
    if (output is None) == (nifti is None):
        raise InputError("Say where the data go: either --output FILE.npz or --nifti FOLDER.")
    if output is not None:
        sizes = parse_shape("20x20x20" if shape is None else shape, "--shape")
        draw = Draw(sizes, samples or 100, noise, seed)
        simulate_arrays(
            draw,
            output,
            voice,
            sparsity=0.2 if sparsity is None else sparsity,
            n_terms=terms or 1,
            force=force,
        )
    elif nifti is not None:
        if sparsity is not None or terms is not None or force:
            raise InputError("--sparsity, --terms and --force are of --output; leave them out.")
        sizes = parse_shape("12x14x10" if shape is None else shape, "--shape")
        simulate_images(Draw(sizes, samples or 40, noise, seed), nifti, voice)
