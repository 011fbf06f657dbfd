"""How long it takes until something happens: `import pyfastr`, and the help of the command.

Each is a process of its own. They take turns, and the median of each counts: beside a Python that
does nothing, and beside one that imports NumPy.
"""

import argparse
import subprocess
import sys
import time
from statistics import median

from _report import environment, print_table, verdict

HELP_LIMIT = 0.5
PROCESSES = {
    "python -c pass": ["-c", "pass"],
    'python -c "import numpy"': ["-c", "import numpy"],
    'python -c "import pyfastr"': ["-c", "import pyfastr"],
    "pyfastr --version": ["-m", "pyfastr.cli", "--version"],
    "pyfastr --help": ["-m", "pyfastr.cli", "--help"],
    "pyfastr fit --help": ["-m", "pyfastr.cli", "fit", "--help"],
}


def seconds_of(arguments: list[str]) -> float:
    """Run Python once, from its start to its end."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def measure(n_rounds: int) -> dict[str, float]:
    """Return the median time of each process, after a round that fills the caches."""
    for arguments in PROCESSES.values():
        seconds_of(arguments)
    rounds = [
        {name: seconds_of(arguments) for name, arguments in PROCESSES.items()}
        for _ in range(n_rounds)
    ]
    return {name: median(times[name] for times in rounds) for name in PROCESSES}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="runs of each process")
    times = measure(parser.parse_args().rounds)
    nothing, numpy = list(times.values())[:2]
    rows = []
    for name, own in times.items():
        needed = f"≤ {HELP_LIMIT:g} s" if name.endswith("--help") else ""
        met = verdict(own <= HELP_LIMIT) if needed else ""
        rows.append([name, f"{own:.3f}", f"{own / nothing:.1f}", f"{own / numpy:.2f}", needed, met])
    header = ["process", "seconds", "/ nothing", "/ numpy", "needed", ""]
    print_table("Time until the end of a process", header, rows)
    print(f"\n{environment()}")


if __name__ == "__main__":
    main()
