#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""torsh.ranks with Dask and Ray, each as a local cluster of several processes: the bytes of torsh merge."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from exported import made  # noqa: E402

RANKS = 40  # more than one task merges

DASK = """
import sys, torsh
from distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        print(len(torsh.ranks(sys.argv[1], client, output=sys.argv[2])["ranks"]))
"""
RAY = """
import sys, torsh, ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
print(len(torsh.ranks(sys.argv[1], ray, output=sys.argv[2])["ranks"]))
ray.shutdown()
"""
HERE = """
import sys, torsh
print(len(torsh.ranks(sys.argv[1], output=sys.argv[2])["ranks"]))
"""
# fsspec's file system in memory, and "file://" for workers that are processes of their own.
URLS = """
import pathlib, sys, torsh, fsspec
from distributed import Client, LocalCluster
if __name__ == "__main__":
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.fold")):
        fsspec.filesystem("memory").pipe_file(f"/job/{path.name}", path.read_bytes())
    torsh.ranks("memory://job", output=sys.argv[2] + ".memory")
    assert pathlib.Path(sys.argv[2] + ".memory").read_bytes() == pathlib.Path(sys.argv[3]).read_bytes(), "memory://"
    try:
        torsh.ranks("memory://nothing")
    except FileNotFoundError as error:
        assert "nothing" in str(error), error
    else:
        raise AssertionError("a URL of nothing is refused")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        print(len(torsh.ranks("file://" + sys.argv[1], client, output=sys.argv[2])["ranks"]))
"""


def expect_same(name, program, python):
    recording, _ = made(ranks=2, operators=202)
    folder, many = scratch("out"), scratch("many")
    torsh("fold", recording, "--rank", "0", "-o", folder / "one.fold")
    run([BUILD / "test/fold_synthesis", folder / "one.fold", str(RANKS), many], check=True)
    torsh("merge", many, "-o", folder / "merged")
    (folder / "program.py").write_text(program)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python"), "TORSH": str(TORSH), "RAY_USAGE_STATS_ENABLED": "0"}
    result = run([python, folder / "program.py", many, folder / name, folder / "merged"], env, timeout=300)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}")
    expect_equal(int(result.stdout.split()[-1]), RANKS, "ranks in the report")
    is_same = (folder / name).read_bytes() == (folder / "merged").read_bytes()
    expect_equal(is_same, True, f"{name} gives the bytes of torsh merge")


@case
def without_a_cluster_it_gives_the_bytes_of_torsh_merge():
    expect_same("here", HERE, sys.executable)


@case
@needs("clusters")
def dask_gives_the_bytes_of_torsh_merge():
    expect_same("dask", DASK, environment_python("clusters"))


@case
@needs("clusters")
def ray_gives_the_bytes_of_torsh_merge():
    expect_same("ray", RAY, environment_python("clusters"))


@case
@needs("clusters")
def urls_give_the_bytes_of_torsh_merge():
    expect_same("urls", URLS, environment_python("clusters"))


main()
