# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Folds and merges ranks with the torsh command, here or by the workers of a cluster."""

_GROUP = 16  # folds that one task merges


def ranks(paths: object, client: object = None, output: object = None, command: "str | None" = None) -> dict:
    """
    Returns the output of `torsh ranks --json` for folds and recordings, a path or several, as dictionaries and lists.

    client: a distributed.Client of Dask, or the module ray after ray.init(), whose workers then read the files. They need
    the paths, the command ($TORSH, or where torsh.Recording finds it here) and this module. Without one, all is done here.
    paths: also URLs that fsspec reads, as "s3://bucket/job" or "gs://bucket/job": each worker fetches its share.
    output: also keep the merged fold there, a path or a URL. It has the same bytes whoever merged it.
    """
    import json
    import os
    import tempfile

    from torsh._places import is_url, listed, store
    from torsh._recording import find_command, run_command

    command = command or find_command()
    with tempfile.TemporaryDirectory(prefix="torsh-ranks-") as folder:
        merged = os.path.join(folder, "merged.fold")
        with open(merged, "wb") as file:
            file.write(_merge_tree(listed(paths, ".fold", ".torsh"), command, _submitter(client)))
        if is_url(output):
            store(merged, output)
        elif output is not None:
            run_command("merge", merged, "-o", output, command=command)
        return json.loads(run_command("ranks", merged, "--json", command=command))


def _merge(items, command):
    """The merged fold, as bytes, of files or of folds as bytes: the task of a worker."""
    import os
    import subprocess
    import tempfile

    from torsh._places import fetch, is_url

    with tempfile.TemporaryDirectory(prefix="torsh-ranks-") as folder:
        merged, paths = os.path.join(folder, "merged"), []
        for i, item in enumerate(items):
            path = item
            if is_url(item):
                path = os.path.join(folder, f"{i}{os.path.splitext(item)[1]}")
                fetch(item, path)
            elif isinstance(item, bytes):
                path = os.path.join(folder, f"{i}.fold")
                with open(path, "wb") as file:
                    file.write(item)
            paths.append(path)
        done = subprocess.run([command, "merge", *paths, "-o", merged], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace").strip())
        with open(merged, "rb") as file:
            return file.read()


def _submitter(client):
    """Functions that submit a merge of items, and that wait for its result. Items may be results of other merges."""
    if client is None:
        return _merge, lambda result: result
    if hasattr(client, "submit"):  # Dask
        return (lambda items, command: client.submit(_merge, items, command, pure=False)), lambda future: future.result()
    if hasattr(client, "remote") and hasattr(client, "get"):  # Ray: only top-level arguments are awaited
        task = client.remote(lambda command, *items: _merge(list(items), command))
        return (lambda items, command: task.remote(command, *items)), client.get
    raise TypeError("client is neither a distributed.Client of Dask nor the module ray")


def _merge_tree(paths, command, submitter):
    submit, wait = submitter
    items, is_merged = paths, False
    while len(items) > 1 or not is_merged:
        items, is_merged = [submit(items[i:i + _GROUP], command) for i in range(0, len(items), _GROUP)], True
    return wait(items[0])
