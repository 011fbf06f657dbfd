"""What is known of the workers of a cluster while they are waited for."""

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from pyfastr import FasTRRegressor
from pyfastr.sources import ClusterSource
from pyfastr.sources.waiting import Terms, workers_of, working

ONE = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
SOON = Terms(look=0.1, without_workers=1.0)


def test_every_look_finds_all_workers_whatever_the_client_asks_meanwhile():
    # The client looks by itself all the time, and asks for no workers then.
    often = {"distributed.client.scheduler-info-interval": "1ms"}
    with (
        dask.config.set(often),
        LocalCluster(**ONE, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        known = [list(workers_of(client)) for _ in range(300)]
        assert known == [[cluster.workers[0].address]] * 300


def test_workers_that_have_stopped_for_lack_of_memory_are_an_error_before_long(soon):
    watch = {"target": False, "spill": False, "pause": 0.8, "terminate": False}
    X = da.from_array(np.zeros((9, 3, 2)), (3, 3, 2))
    with (
        dask.config.set({f"distributed.worker.memory.{name}": own for name, own in watch.items()}),
        LocalCluster(**ONE, memory_limit="1kB", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        assert soon(lambda: not working(client))
        assert len(workers_of(client)) == 1
        with pytest.raises(RuntimeError, match=r"stopped for lack of memory\. Start"):
            FasTRRegressor().fit(ClusterSource(X, client, terms=SOON), np.arange(9))
