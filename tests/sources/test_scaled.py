"""X centred and scaled when it is read."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pyfastr import TensorScaler
from pyfastr.sources import ArraySource, ScaledSource, Source


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options", [{}, {"per": 0}, {"with_mean": False}, {"with_std": False}], ids=str
)
def test_blocks_are_those_of_the_scaler(dtype, options):
    X = np.random.default_rng(0).normal(2, 3, size=(23, 4, 3)).astype(dtype)
    before = X.copy()
    scaler = TensorScaler(**options).fit(X)
    source = ScaledSource(ArraySource(X, block_bytes=500), scaler.mean_, scaler.scale_)
    assert isinstance(source, Source)
    assert len(source.slices) > 1
    assert source.dtype == dtype
    blocks = [source.read(rows) for rows in source.slices]
    assert all(block.dtype == dtype and block.flags.c_contiguous for block in blocks)
    assert_array_equal(np.concatenate(blocks), scaler.transform(X))
    assert_array_equal(source.read(slice(5, 9)), scaler.transform(X)[5:9])
    assert_array_equal(X, before)


def test_scalings_may_follow_each_other():
    X = np.random.default_rng(0).normal(2, 3, size=(20, 4, 3))
    first = TensorScaler(per=0).fit(X)
    second = TensorScaler(per=1).fit(first.transform(X))
    source = ScaledSource(ArraySource(X), first.mean_, first.scale_)
    source = ScaledSource(source, second.mean_, second.scale_)
    assert_array_equal(source.read(slice(0, 20)), second.transform(first.transform(X)))
