"""Reports as pages: by keyboard, in the dark, on a phone, on paper and in a notebook."""

import numpy as np
import pytest

from pyfastr import FasTRRegressor
from pyfastr.datasets import make_tensor_regression
from pyfastr.display import Report, model_report
from pyfastr.display.document import Document, Figure, Section, Table

DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="90"></svg>'
WIDE = Table("Wide", [f"column {i}" for i in range(30)], [["0.1234"] * 30] * 3)
CONTROLS = "a[href], button, input, select, summary, canvas[tabindex], [role=region][tabindex]"


@pytest.fixture
def document(tmp_path):
    figure = Figure("f", "Figure", "a drawing", DRAWING, b"", [])
    report = Report.from_document(
        Document("A document", ["Text."], [Section("one", "One", ["More."], [WIDE, figure])])
    )
    return report.save_as_html(tmp_path / "document.html")


def visible_controls(view):
    script = f"""[...document.querySelectorAll("{CONTROLS}")]
        .filter((e) => e.checkVisibility()).length"""
    return view.evaluate(script)


@pytest.mark.parametrize("name", [4, "named"])
def test_every_control_is_reached_by_tab_in_order(show, name):
    view = show(name)
    expected = visible_controls(view)
    script = f"""() => {{
        const all = [...document.querySelectorAll("{CONTROLS}")].filter((e) => e.checkVisibility());
        return all.indexOf(document.activeElement);
    }}"""
    places = []
    for _ in range(expected):
        view.keyboard.press("Tab")
        places.append(view.evaluate(script))
    assert places == list(range(expected))


@pytest.mark.parametrize("name", [2, 4, "named"])
def test_every_control_has_a_name(show, name):
    view = show(name)
    session = view.context.new_cdp_session(view.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    focusable = [
        node
        for node in nodes
        if any(p["name"] == "focusable" and p["value"]["value"] for p in node.get("properties", []))
        and node["role"]["value"] not in ("RootWebArea", "MenuListOption", "option")
    ]
    assert len(focusable) == visible_controls(view)
    names = [node["name"]["value"] for node in focusable]
    assert all(names)
    assert len({n for n in names if n.startswith("Slice")}) == len(
        [n for n in names if n.startswith("Slice")]
    )


def test_focus_can_be_seen(show):
    view = show(3)
    view.keyboard.press("Tab")
    view.locator("button.largest").focus()
    assert (
        view.locator("button.largest").evaluate("(e) => getComputedStyle(e).outlineWidth") == "3px"
    )
    view.locator(".slice canvas").first.focus()
    assert view.locator(".frame").first.evaluate("(e) => getComputedStyle(e).outlineWidth") == "3px"


@pytest.mark.parametrize("name", [2, 4, "many"])
def test_nothing_sticks_out_to_the_right(show, name):
    view = show(name)
    for width in (400, 700, 1600):
        view.set_viewport_size({"width": width, "height": 900})
        view.wait_for_function(f"innerWidth === {width}")
        for scheme in ("light", "dark"):
            view.emulate_media(color_scheme=scheme)
            assert view.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [400, 1600])
def test_wide_tables_of_documents_scroll_in_their_own_frame(show, document, width):
    view = show(document, width=width)
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    region = view.get_by_role("region", name="Wide")
    assert region.evaluate("(e) => e.scrollWidth > e.clientWidth")


def lightness(view):
    colour = view.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour[4:-1].split(",")) / 3


def ink(view):
    """Return how light the letters of the drawings are."""
    colour = view.locator(".drawing text").first.evaluate("(e) => getComputedStyle(e).fill")
    return sum(int(part) for part in colour[4:-1].split(",")) / 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_until_the_button_is_pressed(show, scheme):
    view = show(3, scheme=scheme)
    is_dark = scheme == "dark"
    for _ in range(2):
        assert (lightness(view) < 60) is is_dark
        assert (ink(view) > 200) is is_dark
        button = view.locator("button.theme")
        assert button.inner_text() == ("Light theme" if is_dark else "Dark theme")
        before = view.pixels().tolist()
        button.click()
        is_dark = not is_dark
        assert view.pixels().tolist() != before
    view.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
    assert (lightness(view) < 60) is is_dark


def test_paper_is_white_and_has_no_buttons(show, expect):
    view = show(3, scheme="dark")
    view.emulate_media(media="print", color_scheme="dark")
    assert ink(view) < 60
    for control in ("nav", "button.theme", ".controls"):
        expect(view.locator(control)).to_have_count(1)
        expect(view.locator(control)).to_be_hidden()
    assert lightness(view) > 200


def test_text_is_copied_or_selected(show):
    view = show(3)
    # The button says for two seconds only what it did.
    view.evaluate(
        """() => {
            const button = document.querySelector("button[data-copies=methods-text]");
            window.labels = [];
            new MutationObserver(() => labels.push(button.textContent)).observe(button, {
                childList: true,
            });
        }"""
    )
    view.locator("button[data-copies=methods-text]").click()
    view.wait_for_function("labels.length")
    label = view.evaluate("labels[0]")
    if label != "Copied":
        assert label.startswith("Selected")
        assert "tensor regression" in view.evaluate("getSelection().toString()")


def hear(page):
    """Return a list that fills with what a page complains about."""
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


def test_a_notebook_shows_the_viewer_in_its_frame(new_page, expect, models):
    page = new_page()
    complaints = hear(page)
    page.set_content(f"<!doctype html><p>cell</p>{model_report(models[3])._repr_html_()}")
    frame = page.frame_locator("iframe")
    box, entry = frame.locator("input[type=number][data-mode='0']"), frame.locator("output.entry")
    for index in ("2", "3"):
        # The viewer has begun once it tells of an entry.
        expect(entry).to_contain_text("coef_[")
        box.fill(index)
        box.press("Tab")
        expect(entry).to_contain_text(f"coef_[{index}, ")
    page.close()
    assert complaints == []


def test_pages_of_outputs_open_by_links_and_have_the_theme_of_the_page_around_them(
    new_page, expect
):
    X, y = make_tensor_regression(60, (4, 3), random_state=0)
    model = FasTRRegressor(random_state=0).fit(X, np.stack([y, -y], axis=1))
    page = new_page(color_scheme="light")
    complaints = hear(page)
    page.set_content(model_report(model).html)
    page.get_by_role("link", name="Output 1").click()
    frames = [page.frame_locator(f"#output-{t} iframe") for t in range(2)]
    for t, frame in enumerate(frames):
        frame.get_by_role("heading", name=f"Output {t}").wait_for()
        expect(frame.locator("html")).to_have_attribute("data-theme", "light")
        expect(frame.locator("button.theme")).to_have_count(1)
        expect(frame.locator("button.theme")).to_be_hidden()
    page.locator("header.masthead > button.theme").click()
    for frame in frames:
        expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
    page.close()
    assert complaints == []
