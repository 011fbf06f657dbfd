"""Downloads of CMU2008, from a server on this machine that misbehaves as real ones do."""

import hashlib
import re
import socket
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from pyfastr.datasets import fetch_cmu2008

NAME = "data-science-P1.mat"

pytest.importorskip("pooch")


class Site:
    """One file on a server: what it has, what it can do, and what it was asked."""

    def __init__(self, stored):
        self.stored = stored
        self.version = '"first"'
        self.ranges = True
        self.length = True
        self.status = 200
        # How many bytes of each answer in turn are sent before the connection is cut.
        self.cuts = []
        self.asked = []
        self.url = ""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        site = self.server.site
        site.asked.append((self.path, self.headers.get("Range")))
        if site.status != 200:
            self.send_error(site.status)
            return
        start = self.wanted_start(site)
        if start >= len(site.stored):
            self.send_error(416)
            return
        body = site.stored[start:]
        self.send_response(206 if start else 200)
        if site.version:
            self.send_header("ETag", site.version)
        if site.length:
            self.send_header("Content-Length", str(len(body)))
        if start:
            last = len(site.stored) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{len(site.stored)}")
        self.end_headers()
        self.wfile.write(body[: site.cuts.pop(0)] if site.cuts else body)

    def wanted_start(self, site):
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = self.headers.get("If-Range", site.version) == site.version
        return int(found[1]) if found and same and site.ranges else 0

    def log_message(self, *arguments):
        pass


@contextmanager
def serving(site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.site = site
    site.url = f"http://127.0.0.1:{server.server_address[1]}/science2008"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site(contents, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    stored = contents.save(tmp_path / "published.mat").read_bytes()
    with serving(Site(stored)) as served:
        yield served


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home" / "data"


def fetch(site, home, **options):
    options = {"n_retries": 0, "delay": 0.0} | options
    return fetch_cmu2008(1, data_home=home, base_url=site.url, **options)


def files_in(home):
    return (
        sorted(p.name for p in home.iterdir() if not p.name.startswith("."))
        if home.exists()
        else []
    )


def test_a_download_is_loaded_kept_and_noted(site, home):
    trials = fetch(site, home, categories=("tool", "insect"))
    assert trials.data.shape == (60, 51, 61, 23)
    assert site.asked == [(f"/science2008/{NAME}", None)]
    assert (home / NAME).read_bytes() == site.stored
    noted = (home / f"{NAME}.sha256").read_text().strip()
    assert noted == hashlib.sha256(site.stored).hexdigest()
    assert files_in(home) == [NAME, f"{NAME}.sha256"]


def test_the_second_call_needs_no_network(site, home):
    first, second = fetch(site, home), fetch(site, home)
    assert len(site.asked) == 1
    np.testing.assert_array_equal(first.data, second.data)


def test_an_interrupted_download_goes_on_in_the_same_call(site, home):
    site.cuts = [300_000, 200_000]
    fetch(site, home, n_retries=2)
    starts = [int(asked[6:-1]) for _, asked in site.asked[1:]]
    # What had arrived is not asked for again, up to a chunk of 64 KiB.
    assert 300_000 - 2**16 <= starts[0] <= 300_000
    assert starts[0] + 200_000 - 2**16 <= starts[1] <= starts[0] + 200_000
    assert (home / NAME).read_bytes() == site.stored
    assert files_in(home) == [NAME, f"{NAME}.sha256"]


def test_an_interrupted_download_goes_on_in_a_later_call(site, home):
    site.cuts = [300_000]
    with pytest.raises(OSError, match="Could not download"):
        fetch(site, home)
    assert NAME not in files_in(home)
    fetch(site, home)
    assert site.asked[1][1] is not None
    assert (home / NAME).read_bytes() == site.stored


def test_a_server_without_ranges_sends_all_again(site, home):
    site.ranges, site.cuts = False, [300_000]
    fetch(site, home, n_retries=1)
    assert len(site.asked) == 2
    assert (home / NAME).read_bytes() == site.stored


def test_a_server_without_a_mark_of_the_version_is_asked_for_all_again(site, home):
    site.version, site.cuts = None, [300_000]
    fetch(site, home, n_retries=1)
    assert [asked for _, asked in site.asked] == [None, None]
    assert (home / NAME).read_bytes() == site.stored


def test_a_file_that_changed_between_is_not_mixed_with_the_old_one(site, home, contents, tmp_path):
    site.cuts = [300_000]
    with pytest.raises(OSError, match="Could not download"):
        fetch(site, home)
    contents.values += 1.0
    site.stored = contents.save(tmp_path / "newer.mat").read_bytes()
    site.version = '"second"'
    fetch(site, home)
    assert (home / NAME).read_bytes() == site.stored


def test_a_part_that_is_longer_than_the_file_is_dropped(site, home):
    home.mkdir(parents=True)
    (home / f"{NAME}.part").write_bytes(site.stored + b"more")
    (home / f"{NAME}.part.version").write_text(site.version)
    fetch(site, home, n_retries=1)
    assert (home / NAME).read_bytes() == site.stored


def test_a_connection_cut_without_a_known_length_is_noticed(site, home):
    site.length, site.cuts = False, [300_000]
    with pytest.raises(ValueError, match=r"is not used: .*breaks off"):
        fetch(site, home)
    assert files_in(home) == []


def test_a_login_page_is_not_taken_for_the_file(site, home):
    site.stored = b"<html>Please log in to the network of this hotel.</html>"
    with pytest.raises(ValueError, match=r"is not used: .*starts with b'<html>"):
        fetch(site, home)
    assert files_in(home) == []


def test_a_page_that_is_not_there_is_not_asked_for_twice(site, home):
    site.status = 404
    with pytest.raises(OSError, match=rf"404.*Get {NAME} from https://www\.cs\.cmu\.edu"):
        fetch(site, home, n_retries=3)
    assert len(site.asked) == 1
    assert files_in(home) == []


def test_a_server_in_trouble_is_asked_again(site, home):
    site.status = 503
    with pytest.raises(OSError, match="503"):
        fetch(site, home, n_retries=2)
    assert len(site.asked) == 3


def test_offline_the_error_says_what_to_put_where(home, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = Site(b"")
        closed.url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(OSError, match="Could not download") as caught:
            fetch(closed, home, n_retries=1)
    for part in (NAME, "theo-73/www/science2008/data.html", f"put it into {home}"):
        assert part in str(caught.value)
    assert files_in(home) == []


def test_a_file_that_changed_on_disk_is_refused(site, home):
    fetch(site, home)
    stored = bytearray(site.stored)
    stored[-1] ^= 1
    (home / NAME).write_bytes(stored)
    with pytest.raises(ValueError, match=rf"its sha256 is .*Delete {NAME} to download it again"):
        fetch(site, home)


def test_another_file_on_the_server_than_the_first_time_is_refused(site, home, contents, tmp_path):
    fetch(site, home)
    (home / NAME).unlink()
    contents.values += 1.0
    site.stored = contents.save(tmp_path / "newer.mat").read_bytes()
    with pytest.raises(ValueError, match=r"does not match the known hash[\s\S]*delete .*sha256"):
        fetch(site, home)
    assert files_in(home) == [f"{NAME}.sha256"]


@pytest.mark.parametrize("download_if_missing", [True, False])
def test_a_file_put_there_by_hand_is_used(site, home, download_if_missing):
    home.mkdir(parents=True)
    (home / NAME).write_bytes(site.stored)
    assert fetch(site, home, download_if_missing=download_if_missing).subject == "P1"
    assert site.asked == []
    assert files_in(home) == [NAME]


def test_the_file_of_another_participant_put_there_by_hand_is_refused(site, home):
    home.mkdir(parents=True)
    (home / "data-science-P2.mat").write_bytes(site.stored)
    with pytest.raises(ValueError, match=r"meta\.subject is 'P1'; expected 'P2'"):
        fetch_cmu2008("P2", data_home=home, base_url=site.url)


def test_without_leave_to_download_a_missing_file_is_an_error(site, home):
    with pytest.raises(FileNotFoundError, match=r"download_if_missing=False.*put it into"):
        fetch(site, home, download_if_missing=False)
    assert site.asked == []


def test_the_folder_may_come_from_the_environment(site, home, monkeypatch):
    monkeypatch.setenv("PYFASTR_DATA", str(home))
    fetch(site, None)
    assert (home / NAME).exists()


def test_without_pooch_the_error_names_the_extra(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=rf"pip install \"pyfastr\[data\]\"\. Get {NAME}"):
        fetch_cmu2008(1, data_home=home)


@pytest.mark.parametrize("subject", [0, 10, "p1", "P10", None, 1.0])
def test_a_participant_that_does_not_exist(subject, home):
    with pytest.raises(ValueError, match=r"subject is .*; expected an int from 1 to 9"):
        fetch_cmu2008(subject, data_home=home)


def test_importing_the_data_sets_does_not_import_pooch():
    script = """
import sys
from pyfastr.datasets import fetch_cmu2008
assert "pooch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
