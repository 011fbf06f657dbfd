"""Fuzzing of what people type: tables and command lines, sound ones and how they are damaged."""

import json
import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
from _mutations import Rng, damage, written

from pyfastr import FasTRRegressor
from pyfastr.cli.errors import InputError
from pyfastr.cli.tables import read_table
from pyfastr.datasets import make_tensor_regression

# Cells and arguments that people, spreadsheets and other programs write.
TOKENS = (
    *(
        "",
        " ",
        ",",
        ";",
        '"',
        '""',
        "\n",
        "\r\n",
        "\r",
        "\0",
        "\t",
        "½",
        "\u0661",
        "\ufeff",
        "\ud7ff",
    ),
    *(
        "nan",
        "NA",
        "inf",
        "-inf",
        "1e999",
        "-0",
        "+1",
        "1_0",
        "0x1",
        "1,5",
        "TRUE",
        "=1+1",
        "\uff19",
    ),
    *("9" * 400, "x" * 9000, "-1", "0", "1", "2", "1e-400", ":", "a:b", "*", "[", "../", "/"),
)
COMMANDS = (
    "fit X.npy people.csv:score -o model.fastr --no-cv --force",
    "fit X.npy people.csv:group -o m.fastr --classify --loss logistic --no-cv --ridge 0.1 --force",
    "fit all.npz:X y --covariates people.csv:age --groups people.csv:group --folds 2 -o m.fastr",
    "fit all.npz:X y -o m.fastr --threshold 0,0.1 --ridge 0.1 --n-terms 1 --folds 3 --force",
    "fit X.npy people.csv:score -o m.fastr --no-cv --scale mode:0,1 --samples-axis first --force",
    "predict sound.fastr X.npy -o predicted.csv --force",
    "report sound.fastr -o report.html --force",
    "info sound.fastr --json",
    "reproduce -h",
    "simulate -o data.npz --shape 4x3 --samples 9 --noise 0.1 --sparsity 0.2 --seed 1 --force",
)


def tables(folder: Path) -> list[bytes]:
    """Return tables of numbers and text."""
    rows = [f"p{i},{i / 3},{30 + i},{'ab'[i % 2]}" for i in range(6)]
    text = "\n".join(["id,score,age,group", *rows])
    return [text.encode(), text.replace("\n", "\r\n").encode("utf-8-sig")]


def read_csv(folder: Path, content: bytes) -> None:
    """Read every column as numbers, or as text."""
    table = read_table(written(folder / "mutant.csv", content))
    for column in table.columns:
        column.check_complete()
        if column.is_numeric:
            column.numbers("")
        table.column(column.name, "TARGET")


def damage_text(corpus: list[bytes], rng: Rng) -> bytes:
    """Put a token somewhere, or in place of a cell, or damage bytes."""
    if rng.integers(4) == 0:
        return damage(corpus, rng)
    content = corpus[rng.integers(len(corpus))]
    for _ in range(rng.integers(1, 5)):
        at, cut = int(rng.integers(len(content) + 1)), int(rng.integers(0, 6))
        token = TOKENS[rng.integers(len(TOKENS))].encode()
        content = content[:at] + token + content[at + cut :]
    return content


def command_lines(folder: Path) -> list[bytes]:
    """Write small data and a model; return commands about them."""
    X, y = make_tensor_regression(20, (4, 3), noise=0.1, random_state=0)
    np.save(folder / "X.npy", X)
    np.savez(folder / "all.npz", X=X, y=y)
    FasTRRegressor(random_state=0).fit(X, y).save(folder / "sound.fastr")
    rows = [f"p{i},{y[i]:.6f},{20 + i},{'ab'[i % 2]}" for i in range(20)]
    text = "\n".join(["id,score,age,group", *rows])
    (folder / "people.csv").write_text(text, encoding="utf-8")
    return [json.dumps(line.split()).encode() for line in COMMANDS]


def change_arguments(corpus: list[bytes], rng: Rng) -> bytes:
    """Replace, drop, repeat, exchange or forge some of the arguments."""
    own, other = (json.loads(corpus[rng.integers(len(corpus))]) for _ in range(2))
    for _ in range(rng.integers(1, 4)):
        at, token = int(rng.integers(len(own))), TOKENS[rng.integers(len(TOKENS))]
        parts: tuple[list[str], ...] = ([], [token], [own[at]] * 2, [own[at] + token])
        choice = [*parts, [own[at], token], [other[rng.integers(len(other))]]]
        own[at : at + 1] = choice[rng.integers(len(choice))]
        own = own or other
    return json.dumps(own).encode()


def run_command(folder: Path, content: bytes) -> None:
    """Run a command line; an error that it did not expect is a finding."""
    from typer.testing import CliRunner

    from pyfastr.cli.app import app

    before = {path.name for path in folder.iterdir()}
    with chdir(folder):
        outcome = CliRunner().invoke(app, json.loads(content))
    for path in folder.iterdir():
        if path.name not in before:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            if path.name.startswith("."):
                raise AssertionError(f"{path.name} was left behind")
    if outcome.exit_code not in (0, 2):
        raise AssertionError(f"code {outcome.exit_code}: {outcome.output[-400:]}")
    if outcome.exit_code == 2:
        raise InputError(outcome.output)
