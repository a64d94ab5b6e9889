#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh.ranks and torsh.to_parquet with object stores: s3:// with moto's server, and gs:// with an emulator of Google's, both on
loopback. What is stored is put and read by other clients than those that torsh uses through fsspec.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from exported import made  # noqa: E402

RANKS = 20  # more than one task merges
BUCKET = "job-of-test"
S3_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
GS_SERVER = """
import logging, sys
logging.disable(logging.INFO)
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", 0, in_memory=True)
server.start()
print(server._api._httpd.socket.getsockname()[1], flush=True)
sys.stdin.read()
"""
# boto3 for S3; Google's emulator by plain HTTP.
S3_CLIENT = """
import boto3, json, pathlib, sys
what, bucket, folder = sys.argv[1:4]
s3 = boto3.client("s3")
if what == "put":
    s3.create_bucket(Bucket=bucket)
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file():
            s3.put_object(Bucket=bucket, Key=str(path.relative_to(folder)), Body=path.read_bytes())
else:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for one in page.get("Contents", ()):
            path = pathlib.Path(folder) / one["Key"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read())
"""
GS_CLIENT = """
import json, os, pathlib, sys, urllib.parse, urllib.request
what, bucket, folder = sys.argv[1:4]
base = os.environ["STORAGE_EMULATOR_HOST"]
def ask(url, data=None, kind="application/json"):
    with urllib.request.urlopen(urllib.request.Request(base + url, data, {"Content-Type": kind})) as answer:
        return answer.read()
if what == "put":
    ask("/storage/v1/b", json.dumps({"name": bucket}).encode())
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file():
            name = urllib.parse.quote(str(path.relative_to(folder)), safe="")
            ask(f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}", path.read_bytes(), "application/octet-stream")
else:
    for one in json.loads(ask(f"/storage/v1/b/{bucket}/o")).get("items", ()):
        path = pathlib.Path(folder) / one["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(ask(f"/storage/v1/b/{bucket}/o/{urllib.parse.quote(one['name'], safe='')}?alt=media"))
"""
MERGE = """
import sys, torsh
url = sys.argv[1]
print(len(torsh.ranks(url + "/folds", output=url + "/merged/job.fold")["ranks"]))
print(len(torsh.ranks([url + "/folds/" + name for name in sys.argv[2:4]])["ranks"]))
try:
    torsh.ranks(url + "/nothing")
except FileNotFoundError as error:
    print("refused")
"""
CLUSTER = """
import sys, torsh
from distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        print(len(torsh.ranks(sys.argv[1] + "/folds", client, output=sys.argv[1] + "/merged/dask.fold")["ranks"]))
"""
WRITE = """
import json, sys, torsh
print(json.dumps([torsh.to_parquet(sys.argv[1], sys.argv[2]), torsh.to_parquet(sys.argv[3], sys.argv[4])]))
"""
# By pyarrow and an s3fs of its own: what a reader of the data set gets.
COUNT = """
import json, sys, fsspec, pyarrow.dataset
system, path = fsspec.core.url_to_fs(sys.argv[1])
print(json.dumps({table: pyarrow.dataset.dataset(f"{path}/{table}", filesystem=system, format="parquet").count_rows()
                  for table in sys.argv[2:]}))
"""


def asked(*command, env):
    result = run([environment_python("objects"), "-W", "ignore", *command], env, timeout=300)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-3000:]}")
    return result.stdout.decode()


@contextlib.contextmanager
def served(program, client, of_port, protocol):
    """A store on a port of its own. Yields a bucket's URL, the environment of its users, and functions that put and get a folder."""
    python = environment_python("objects")
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy") and not name.startswith("AWS_")}
    with started([python, "-W", "ignore", "-c", program], clean, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                 stderr=subprocess.DEVNULL) as server:
        env = {**clean, **of_port(server.stdout.readline().decode().strip()), "PYTHONPATH": str(ROOT / "tools/python"), "TORSH": str(TORSH)}
        yield (f"{protocol}://{BUCKET}", env, lambda folder: asked("-c", client, "put", BUCKET, folder, env=env),
               lambda folder: asked("-c", client, "get", BUCKET, folder, env=env))


def s3():
    return served(S3_SERVER, S3_CLIENT, lambda port: {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1"}, "s3")


def gs():
    return served(GS_SERVER, GS_CLIENT, lambda port: {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}, "gs")


def job():
    """A folder of folds, and the bytes of torsh merge."""
    recording, _ = made(ranks=2, operators=202)
    folder = scratch("job")
    (folder / "folds").mkdir()
    torsh("fold", recording, "--rank", "0", "-o", folder / "one.fold")
    run([BUILD / "test/fold_synthesis", folder / "one.fold", str(RANKS), folder / "folds"], check=True)
    (folder / "one.fold").unlink()
    merged = scratch("merged") / "job.fold"
    torsh("merge", folder / "folds", "-o", merged)
    return folder, merged.read_bytes()


def expect_merged(store, *programs):
    folder, merged = job()
    names = sorted(path.name for path in (folder / "folds").iterdir())
    expect_equal(len(names), RANKS, "folds")
    (folder / "folds/README").write_text("no fold")
    with store as (url, env, put, get):
        put(folder)
        out = asked("-c", MERGE, url, names[3], names[7], env=env).split()
        expect_equal(out, [str(RANKS), "2", "refused"], "ranks in the reports, and a URL of nothing")
        for program in programs:
            path = scratch("program") / "program.py"
            path.write_text(program)
            expect_equal(asked(path, url, env=env).split(), [str(RANKS)], "ranks by a cluster")
        back = scratch("back")
        get(back)
    found = {path.name: path.read_bytes() for path in (back / "merged").iterdir()}
    expect_equal(len(found), 1 + len(programs), "merged folds")
    assert all(one == merged for one in found.values()), [len(one) for one in (*found.values(), merged)]


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def expect_tables(store):
    """From a path to a URL and the other way, twice: the second replaces the first, and what is beside it stays."""
    path = pathlib.Path(made(ranks=2)[0])
    folder, here = scratch("in"), scratch("here")
    (folder / "recordings").mkdir()
    (folder / f"recordings/{path.name}").write_bytes(path.read_bytes())
    (folder / "tables/spans/run=other").mkdir(parents=True)
    (folder / "tables/spans/run=other/kept").write_text("of another run")
    stale = f"tables/spans/run={path.stem}/rank=9/step=9"
    (folder / stale).mkdir(parents=True)
    (folder / f"{stale}/part-0.parquet").write_text("of an earlier version of this run")
    with store as (url, env, put, get):
        put(folder)
        there, again = json.loads(asked("-c", WRITE, path, f"{url}/tables", f"{url}/recordings", here, env=env))
        expect_equal(there, again, "rows by table, from and to the store")
        tables = [table for table, n in there.items() if n and table != "spans"]
        expect_equal(json.loads(asked("-c", COUNT, f"{url}/tables", *tables, env=env)), {table: there[table] for table in tables},
                     "rows that a reader of the store gets")
        back = scratch("back")
        get(back)
    stored = files_of(back / "tables")
    expect_equal(stored.pop("spans/run=other/kept"), b"of another run", "of another run")
    assert there["spans"] > 100 and len(stored) > 10, (there, len(stored))
    expect_equal(sorted(stored), sorted(files_of(here)), "files")
    assert stored == files_of(here), "the files here and there have the same bytes"


@case
@needs("objects")
def ranks_in_s3_give_the_bytes_of_torsh_merge():
    expect_merged(s3(), CLUSTER)


@case
@needs("objects")
def ranks_in_google_storage_give_the_bytes_of_torsh_merge():
    expect_merged(gs())


@case
@needs("objects")
def tables_in_s3_are_those_of_a_folder():
    expect_tables(s3())


@case
@needs("objects")
def tables_in_google_storage_are_those_of_a_folder():
    expect_tables(gs())


main()
