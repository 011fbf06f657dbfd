"""How long the viewer of a report takes to redraw its slices, in the system's Chromium.

It multiplies factors for every slice that it shows, so the time depends on the number of terms.
Needs playwright and Chromium.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from _report import environment, print_table, verdict
from playwright.sync_api import Page, sync_playwright

from pyfastr import FasTRRegressor
from pyfastr.display import model_report

# A frame of a screen that shows sixty a second.
FRAME_MS = 16.0
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def write_page(folder: Path, size: int, n_terms: int) -> Path:
    """Write the report of a fit to samples of ``size``³."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, size, size, size), dtype=np.float32)
    model = FasTRRegressor(ridge=1.0, n_terms=n_terms, n_init=1, max_iter=2, tol=1.0)
    model.fit(X, X[:, 0, 0, 0])
    return model_report(model).save_as_html(folder / f"{size}-{n_terms}.html")


def redraws(page: Page, n_steps: int) -> list[float]:
    """Walk through the volume; return the milliseconds of every redraw."""
    canvas = page.locator(".slice canvas").first
    times = []
    for _ in range(n_steps):
        canvas.press("ArrowRight")
        page.evaluate("new Promise((done) => requestAnimationFrame(done))")
        times.append(page.evaluate("performance.getEntriesByName('redraw')[0].duration"))
    return times


def main() -> None:
    """Print the median and the longest redraw for several sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="redraws of each page")
    steps = parser.parse_args().steps
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("There is no Chromium on this machine.")
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        for size, n_terms in ((30, 1), (100, 1), (100, 10)):
            page = browser.new_page()
            page.goto(write_page(Path(folder), size, n_terms).as_uri())
            times = redraws(page, steps)
            typical = median(times)
            cells = (f"{typical:.1f}", f"{max(times):.1f}", f"≤ {FRAME_MS:g}")
            rows.append([f"{size}³, {n_terms} terms", *cells, verdict(typical <= FRAME_MS)])
        browser.close()
    print_table("Milliseconds of a redraw", ["volume", "median", "longest", "needed", ""], rows)
    print(f"\n{environment()}")


if __name__ == "__main__":
    main()
