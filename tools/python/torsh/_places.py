# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Files and folders that are paths here, or URLs that fsspec reads and writes, as "s3://bucket/job" or "gs://bucket/job"."""


def is_url(path):
    return isinstance(path, str) and "://" in path


def listed(paths, *endings):
    """
    The files that these paths stand for, as absolute paths or URLs: of a folder those with the first of the endings that it has.
    """
    import os
    import pathlib

    found = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else list(paths):
        if not is_url(path):
            path = pathlib.Path(path).absolute()
        files = _files_in(path)
        if files is None:
            found.append(str(path))
            continue
        chosen = next(filter(None, ([file for file in files if file.endswith(ending)] for ending in endings)), None)
        if not chosen:
            raise FileNotFoundError(f"{path} has no files {' or '.join('*' + ending for ending in endings)}")
        found += chosen
    if not found:
        raise ValueError("no paths are given")
    return found


def fetch(url, path):
    """Copy what the URL names to that path."""
    import shutil

    with _fsspec().open(url, "rb") as source, open(path, "wb") as copy:
        shutil.copyfileobj(source, copy)


def store(path, url):
    """Copy a file to where the URL names."""
    import shutil

    with open(path, "rb") as source, _fsspec().open(url, "wb") as copy:
        shutil.copyfileobj(source, copy)


def joined(folder, *names):
    """The path or URL of what has these names in the folder."""
    import os

    return "/".join((folder.rstrip("/"), *names)) if is_url(folder) else os.path.join(str(folder), *names)


def created(path):
    """A new file to write bytes to, in folders that need not exist."""
    import os

    if is_url(path):
        return _fsspec().open(path, "wb")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return open(path, "wb")


def remove(folder):
    """Remove a folder with all that it has, if it exists."""
    import shutil

    if not is_url(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return
    system, path = _fsspec().core.url_to_fs(folder)
    system.invalidate_cache()
    if system.exists(path):
        system.rm(path, recursive=True)


def _files_in(folder):
    """The folder's files, sorted; None: it is none."""
    if not is_url(folder):
        return sorted(str(path) for path in folder.iterdir()) if folder.is_dir() else None
    system, path = _fsspec().core.url_to_fs(folder)
    # What was listed before may have changed since.
    system.invalidate_cache()
    if not system.isdir(path):
        return None
    return sorted(system.unstrip_protocol(one["name"]) for one in system.ls(path, detail=True) if one["type"] == "file")


def _fsspec():
    try:
        import fsspec
    except ImportError as error:
        raise RuntimeError("URLs are read and written by fsspec, which is not installed: pip install fsspec, and what it needs for "
                           "them, as s3fs or gcsfs") from error
    return fsspec
