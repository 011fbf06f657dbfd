"""Pages in a real browser: the system's Chromium without a window, driven by Playwright."""

import shutil
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from pyfastr import FasTRRegressor, FasTRRegressorCV
from pyfastr.display import model_report
from pyfastr.estimators.coefficient import LazyCoefficient

ARGUMENTS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
# Milliseconds for what takes a moment, on a machine however busy.
PATIENCE = 120_000


@pytest.fixture(scope="session")
def api():
    """Playwright, which waits with patience for what is expected."""
    found = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found.expect.set_options(timeout=PATIENCE)
    return found


@pytest.fixture
def expect(api):
    """Assertions that wait until they hold."""
    return api.expect


# Playwright keeps an event loop running, which tests of other modules may want for themselves.
@pytest.fixture(scope="module")
def browser(api):
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=program, args=ARGUMENTS, timeout=PATIENCE
        )
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser):
    """A function that makes an empty page which waits with patience."""

    def make(**options):
        page = browser.new_page(**options)
        page.set_default_timeout(PATIENCE)
        return page

    return make


@dataclass
class Shown:
    """A page with what it asked for and what it complained about."""

    page: object
    model: object = None
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.page, name)

    @property
    def index(self):
        return self.evaluate("JSON.parse(document.querySelector('output.entry').dataset.index)")

    @property
    def value(self):
        return float(self.locator("output.entry").get_attribute("data-value"))

    def move_to(self, index):
        """Go somewhere by the boxes of numbers."""
        for mode, i in enumerate(index):
            box = self.locator(f"input[type=number][data-mode='{mode}']")
            box.fill(str(i))
            box.dispatch_event("change")

    def wait_until_drawn(self):
        """Let the page draw what has changed, which it does once for all changes of a frame."""
        self.evaluate(
            """async () => {
                const frame = () => new Promise((done) => requestAnimationFrame(done));
                await frame();
                await frame();
            }"""
        )

    def pixels(self, panel=0):
        """Return red, green, blue and opacity of a slice, rows from the top, when it is drawn."""
        self.wait_until_drawn()
        flat, width, height = self.evaluate(
            """(k) => {
                const seen = document.querySelectorAll(".slice canvas")[k];
                const { width, height } = seen;
                // A copy is read: a canvas that is read itself leaves the graphics card.
                const copy = new OffscreenCanvas(width, height);
                const context = copy.getContext("2d", { willReadFrequently: true });
                context.drawImage(seen, 0, 0);
                return [Array.from(context.getImageData(0, 0, width, height).data), width, height];
            }""",
            panel,
        )
        return np.array(flat).reshape(height, width, 4)


@pytest.fixture(scope="session")
def models():
    return {
        2: _made((7, 9), 2, seed=0),
        3: _made((6, 5, 4), 1, seed=1),
        4: _made((3, 4, 5, 6), 2, seed=2),
        "many": _averaged(),
        "large": _made((100, 100, 100), 10, seed=3),
        "named": _named(),
        "labelled": _labelled(),
        "masked": _made((6, 5, 4), 1, seed=1),
    }


@pytest.fixture(scope="session")
def mask():
    """Half of the entries of the masked model, its largest one outside."""
    return np.arange(120).reshape(6, 5, 4) % 7 < 3


def _made(shape, n_terms, seed):
    """Return a fitted model that is given factors of its shape, with zeros and both signs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3, 3))
    model = FasTRRegressor(ridge=0.1, n_init=2, random_state=0).fit(X, X[:, 0, 0])
    draws = [rng.normal(size=(p, n_terms)) for p in shape]
    for draw in draws:
        draw[1] = 0
    model.factors_ = [draw / np.linalg.norm(draw, axis=0) for draw in draws]
    model.scales_ = np.sort(rng.uniform(1, 3, n_terms))[::-1]
    model._coefficient = LazyCoefficient(model.factors_, model.scales_)
    model.tensor_shape_in_, model.design_ = shape, None
    return model


def _averaged():
    """Return a choice whose coefficient is a mean of many terms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4, 5, 3))
    y = X[:, 0, 0, 0] - X[:, 2, 1, 1] + 0.3 * rng.normal(size=40)
    model = FasTRRegressorCV([0.0, 0.2], [0.1, 1.0], cv=3, refit=False, random_state=0)
    return model.fit(X, y)


def _named():
    """Return a model on a grid in millimetres, whose first axis runs backwards."""
    model = _made((6, 5, 4), 1, seed=1)
    model.mode_names_in_ = ("x (mm)", "y (mm)", "z (mm)")
    model.mode_coords_in_ = [10 - 2.0 * np.arange(6), np.arange(5) * 2.0, np.arange(4) * 4.0 - 6]
    return model


def _labelled():
    """Return a model of channels and bands whose labels are against the order of the alphabet."""
    model = _made((4, 3), 1, seed=4)
    model.mode_names_in_ = ("channel", "band")
    model.mode_coords_in_ = [np.array(["Pz", "Oz", "Fz", "Cz"]), np.array(["theta", "mu", "beta"])]
    return model


@pytest.fixture(scope="session")
def page_of(models, mask, tmp_path_factory):
    """A function that writes the report of a model, once."""
    folder = tmp_path_factory.mktemp("pages")
    background = {"named": np.linspace(1, 2, 120).reshape(6, 5, 4)}

    @cache
    def write(name):
        own = {"background": background.get(name), "mask": mask if name == "masked" else None}
        report = model_report(models[name], **own)
        return report.save_as_html(folder / f"{name}.html")

    return write


@pytest.fixture
def show(new_page, models, page_of):
    """A function that shows a report; at the end no page may have complained or asked for more."""
    shown = []

    def open_page(name, width=1200, scheme="light"):
        page = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        here = Shown(page, models.get(name))
        page.on("console", lambda message: here.complaints.append(message.text))
        page.on("pageerror", lambda error: here.complaints.append(str(error)))
        page.on("request", lambda request: here.requests.append(request.url))
        file = page_of(name) if name in models else name
        page.goto(file.as_uri())
        here.wait_until_drawn()
        shown.append((here, file))
        return here

    yield open_page
    for here, file in shown:
        here.page.close()
        assert here.complaints == []
        assert here.requests == [file.as_uri()]
