"""What a release is made of: the same bytes each time, complete, and enough by itself."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PathDistribution, distribution
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def build(tree, place, *kinds):
    """Build in a process of its own, without the network; return the files."""
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", place, *kinds]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    return {path.name: path for path in place.iterdir()}


def only(place, pattern):
    (found,) = place.glob(pattern)
    return found


@pytest.fixture(name="built", scope="module")
def wheel_and_source(tmp_path_factory):
    place = tmp_path_factory.mktemp("built")
    files = build(ROOT, place)
    with tarfile.open(only(place, "*.tar.gz")) as archive:
        archive.extractall(tmp_path_factory.mktemp("source"), filter="data")
        names = {name.partition("/")[2] for name in archive.getnames()}
        tree = tmp_path_factory.getbasetemp() / "source0" / archive.getnames()[0].partition("/")[0]
    return SimpleNamespace(files=files, wheel=only(place, "*.whl"), names=names, tree=tree)


def test_two_builds_have_the_same_bytes(built, tmp_path):
    again = build(ROOT, tmp_path)
    assert again.keys() == built.files.keys()
    for name, path in built.files.items():
        assert again[name].read_bytes() == path.read_bytes(), name


def test_the_source_has_every_file_of_the_repository(built):
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("what belongs to the repository is known to git")
    command = ["git", "ls-files", "--cached", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    there = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
    assert there - built.names == set()


def test_the_wheel_that_the_source_builds_is_the_same(built, tmp_path):
    again = build(built.tree, tmp_path, "--target", "wheel")
    assert again[built.wheel.name].read_bytes() == built.wheel.read_bytes()


def test_the_suite_runs_from_the_source(built):
    # Two parts of it, of which one looks at the documents and examples beside the package.
    parts = ["tests/solver/test_update.py", "tests/docs/test_examples.py"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *parts],
        check=False,
        cwd=built.tree,
        env={**os.environ, "PYTHONPATH": str(built.tree / "src")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout


def test_the_wheel_has_the_package_and_what_describes_it(built):
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
    tree = ROOT / "src"
    files = [path for path in (tree / "pyfastr").rglob("*") if path.is_file()]
    own = {str(path.relative_to(tree)) for path in files if "__pycache__" not in path.parts}
    about = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    assert names - about == own
    assert "pyfastr/py.typed" in own
    assert any(name.endswith("licenses/LICENSE") for name in about)


def needed(names):
    """Return all that some distributions need, themselves included, but no extras."""
    found, waiting = {}, [Requirement(name) for name in names]
    while waiting:
        requirement = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name not in found:
            found[requirement.name] = distribution(requirement.name)
            waiting += map(Requirement, found[requirement.name].requires or [])
    return found.values()


@pytest.fixture(name="alone", scope="module")
def environment_of_the_core(built, tmp_path_factory):
    """Run a script where there is the wheel, what it asks for, and nothing else."""
    place = tmp_path_factory.mktemp("alone")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    packages = only(place, "lib/python*/site-packages")
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(packages)
    about = PathDistribution(only(packages, "pyfastr-*.dist-info"))
    for one in needed(about.requires):
        for part in {file.parts[0] for file in one.files} - {"..", "__pycache__"}:
            (packages / part).symlink_to(one.locate_file(part))

    def run(script):
        command = [place / "bin" / "python", "-I", "-W", "error", "-c", script]
        return subprocess.run(command, check=False, cwd=place, capture_output=True, text=True)

    return run


def test_the_core_fits_predicts_and_saves_by_itself(alone):
    done = alone("""
import pyfastr
from pyfastr.datasets import make_tensor_regression

X, y = make_tensor_regression(60, (6, 5), random_state=0)
model = pyfastr.FasTRRegressorCV(n_init=2, random_state=0).fit(X, y)
assert model.score(X, y) > 0.9, model.score(X, y)
model.save("model.fastr")
assert (pyfastr.load("model.fastr").predict(X) == model.predict(X)).all()
for name in pyfastr.__all__:
    getattr(pyfastr, name)
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("script", "module", "extra"),
    [
        ("pyfastr.imaging.NiftiRegressor().fit(['a.nii', 'b.nii'], [0, 1])", "nibabel", "imaging"),
        ("model.generate_report()", "markupsafe", "report"),
        ("model.to_xarray()", "xarray", "labels"),
        ("pyfastr.display.CoefficientDisplay.from_estimator(model)", "matplotlib", "plot"),
    ],
)
def test_what_an_extra_brings_is_asked_for_by_name(alone, script, module, extra):
    done = alone(f"""
import pyfastr
from pyfastr.datasets import make_tensor_regression

model = pyfastr.FasTRRegressor(n_init=2, random_state=0)
model.fit(*make_tensor_regression(40, (4, 3), random_state=0))
try:
    {script}
except ImportError as error:
    print(error)
""")
    assert done.returncode == 0, done.stderr
    assert f"needs {module}, which is not installed. Run: pip install 'pyfastr[{extra}]'" in (
        done.stdout
    )


def test_the_command_asks_for_its_extra_without_a_traceback(alone):
    done = alone("""
from importlib.metadata import entry_points

(command,) = entry_points(group="console_scripts", name="pyfastr")
command.load()()
""")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: the pyfastr command needs ")
    assert done.stderr.endswith("Run: pip install 'pyfastr[cli]'\n")
