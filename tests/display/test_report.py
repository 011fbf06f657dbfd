import base64
import html
import json
import re
import stat
import webbrowser
from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from pyfastr import (
    FasTRClassifierCV,
    FasTRRegressor,
    FasTRRegressorCV,
)
from pyfastr.datasets import make_tensor_regression
from pyfastr.display import Report, model_report
from pyfastr.display.document import Document, Section

RIDGES, THRESHOLDS = (0.01, 1.0), (0.0, 0.1, 0.3)
HOSTILE = "<script>alert(1)</script>\"'&"


@cache
def data():
    return make_tensor_regression(90, (6, 5, 4), sparsity=0.4, noise=0.3, random_state=0)


@cache
def plain():
    X, y = data()
    return FasTRRegressor(0.05, 0.01, random_state=0).fit(X[:60], y[:60])


@cache
def chosen():
    X, y = data()
    model = FasTRRegressorCV(THRESHOLDS, RIDGES, cv=3, random_state=0)
    return model.fit(X[:60], y[:60])


@cache
def classified():
    X, y = data()
    labels = np.where(y > 0, HOSTILE, "other")
    model = FasTRClassifierCV(THRESHOLDS, RIDGES, cv=3, random_state=0)
    return model.fit(X[:60], labels[:60])


@cache
def page_of(make):
    return model_report(make()).html


def viewer_data(page):
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def decoded(text):
    return np.frombuffer(base64.b64decode(text), "<f8")


def text_of(page, name):
    """Return the words of a section."""
    (section,) = re.findall(rf'<section aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    section = re.sub(r"<svg.*?</svg>|<script.*?</script>", "", section, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", section))


def test_the_page_carries_factors_that_multiply_to_the_coefficient():
    found = viewer_data(page_of(plain))
    scales = decoded(found["scales"])
    factors = [
        decoded(text).reshape(size, -1)
        for text, size in zip(found["factors"], found["shape"], strict=True)
    ]
    product = np.einsum("r,ir,jr,kr->ijk", scales, *factors)
    assert np.allclose(product, plain().coef_, rtol=1e-12)
    peak = tuple(found["peak"])
    assert abs(plain().coef_[peak]) == np.abs(plain().coef_).max() == found["limits"][0]


@pytest.mark.parametrize("make", [plain, chosen])
def test_a_page_loads_nothing_and_forbids_it(make):
    page = page_of(make)
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    )
    assert f'content="{policy}"' in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert "@import" not in page
    assert "url(" not in re.sub(r"url\(#", "", page)


def test_the_same_model_gives_the_same_bytes():
    X, y = data()
    again = FasTRRegressorCV(THRESHOLDS, RIDGES, cv=3, random_state=0).fit(X[:60], y[:60])
    assert model_report(again).html == page_of(chosen)


def test_every_colour_of_a_drawing_has_a_twin_for_dark_pages():
    drawings = " ".join(re.findall(r"<svg.*?</svg>", page_of(chosen), re.DOTALL))
    pairs = re.findall(r"(?:fill|stroke): light-dark\((#\w{6}), (#\w{6})\)", drawings)
    assert len(pairs) > 50
    assert all(light != dark for light, dark in pairs)
    assert not re.search(r"(fill|stroke): #", drawings)


def test_ids_are_unique_and_every_link_of_the_page_has_a_goal():
    page = page_of(chosen)
    ids = re.findall(r'\sid="([^"]+)"', page)
    outside = [i for i in ids if not re.match(r"[A-Za-z]+-[0-9a-f]+$|[mpC][0-9a-f]{8,}", i)]
    assert len(outside) == len(set(outside))
    assert set(re.findall(r'<a [^>]*href="#([^"]+)"', page)) <= set(ids)


def test_a_choice_shows_its_held_out_score_and_says_that_it_is_optimistic():
    text = text_of(page_of(chosen), "performance")
    assert f"Mean R² over 3 folds: {chosen().best_score_:.3g}" in text
    score = f"{chosen().reference_score_:.3g}".replace("-", "−")
    assert f"Ridge regression on the flattened samples scores {score} in the same folds" in text
    # Some of the six were tried with a second term too.
    n_points = len(chosen().cv_results_["params"])
    assert n_points > 6
    assert f"The best of {n_points} points was chosen by these same scores" in text
    assert "cross_val_score(model, X, y)" in text
    assert 'role="img" aria-label="Observed against predicted' in page_of(chosen)


def test_a_plain_fit_says_that_no_held_out_score_is_known_and_how_to_get_one():
    text = text_of(page_of(plain), "performance")
    assert "Nothing is known of how well this model predicts" in text
    assert "model.generate_report(X=X_new, y=y_new)" in text
    assert "FasTRRegressorCV" in text
    assert "unknown" in text_of(page_of(plain), "summary")


def test_names_that_hold_markup_are_text():
    model_page = model_report(classified(), title=f"A {HOSTILE} title").html
    named = FasTRRegressor(0.05, 0.01, random_state=0).fit(*data())
    named.mode_names_in_ = ("</script><b>", "y (<i>)", "z")
    named.mode_coords_in_ = [None, None, np.array(["</script>", "b", "c", "d"])]
    named_page = model_report(named).html
    for page in (model_page, named_page):
        assert "<script>alert" not in page
        assert "</script><b>" not in page
        n_scripts = len(re.findall(r"<script\b", page))
        assert n_scripts == page.count("</script>") == 2
    assert "&lt;script&gt;alert(1)" in model_page
    assert viewer_data(named_page)["modes"][2]["coords"][0] == "</script>"


def test_x_without_y_is_refused():
    with pytest.raises(ValueError, match="X was given without y; expected both"):
        model_report(plain(), X=data()[0])


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        model_report(FasTRRegressor())


def test_a_mean_of_folds_leaves_out_what_it_has_not():
    X, y = data()
    model = FasTRRegressorCV(THRESHOLDS, RIDGES, cv=3, refit=False, random_state=0).fit(X, y)
    page = model_report(model).html
    assert 'id="convergence"' not in page
    assert 'id="starts"' not in page
    assert "mean of the folds' models" in text_of(page, "summary")
    assert "mean of the folds' models" in text_of(page, "methods")
    assert len(viewer_data(page)["limits"]) == len(model.scales_) + 1


def test_vectors_have_no_slices():
    X, y = make_tensor_regression(60, (8,), random_state=0)
    page = model_report(FasTRRegressor(random_state=0).fit(X, y)).html
    assert 'class="viewer' not in page
    assert "Samples are vectors" in page


def test_title_further_sections_and_given_samples_are_part_of_the_page():
    X, y = data()
    extra = [Section("more", "More < less", ["Text."], [])]
    page = model_report(plain(), X=X[60:], y=y[60:], title="My study", extra_sections=extra).html
    assert "<h1>My study</h1>" in page
    assert '<a href="#more">More &lt; less</a>' in page
    assert "<p>Text.</p>" in page
    score = f"{plain().score(X[60:], y[60:]):.3g}"
    assert f"R² of the 30 samples given to this report: {score}." in text_of(page, "performance")
    assert score in text_of(page, "summary")


def test_a_report_is_saved_whole_and_replaces_what_was_there(tmp_path):
    report = Report.from_document(Document("T", ["ä"], []))
    file = tmp_path / "report.html"
    file.write_text("old")
    assert report.save_as_html(str(file)) == file
    assert file.read_text(encoding="utf-8") == report.html == report.get_standalone()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [file]


def test_a_missing_folder_is_named_and_nothing_is_written(tmp_path):
    report = Report.from_document(Document("T", [], []))
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing.*Create it first"):
        report.save_as_html(tmp_path / "missing" / "report.html")
    with pytest.raises(IsADirectoryError, match="expected the name of a file in it"):
        report.save_as_html(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_notebook_shows_the_page_in_a_frame_of_the_size_asked_for():
    report = Report.from_document(Document('Quote " and <b>', [], []))
    assert report.resize(500, "80vh") is report
    frame = report._repr_html_()
    (source,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(source) == report.html
    assert 'width="500" height="80vh"' in frame
    assert frame.startswith("<iframe")
    assert "kB" in repr(report)


def test_the_browser_is_given_a_file_with_the_page(monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    report = Report.from_document(Document("T", [], []))
    file = report.open_in_browser()
    assert opened == [file.as_uri()]
    assert file.read_text(encoding="utf-8") == report.html
    file.unlink()
