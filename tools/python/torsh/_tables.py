# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes recordings as Parquet, in the layout and with the columns that TABLES.md beside this file describes."""

# By table: its columns and their types in Arrow; run, rank and step are the folders.
SCHEMAS = {
    "spans": {
        "pid": "int64", "tid": "int64", "kind": "string", "name": "string", "start_ns": "int64", "end_ns": "int64",
        "duration_ns": "int64", "self_ns": "int64", "phase": "string", "module": "string", "inputs": "string", "flops": "int64",
        "allocated_bytes": "int64", "freed_bytes": "int64", "id": "int64", "outer_id": "int64", "is_cut": "bool"},
    "kernels": {
        "pid": "int64", "kind": "string", "name": "string", "device": "int64", "stream": "int64", "start_ns": "int64",
        "end_ns": "int64", "duration_ns": "int64", "bytes": "int64", "correlation": "int64", "operator": "string",
        "operator_id": "int64", "module": "string", "phase": "string"},
    "collectives": {
        "pid": "int64", "kind": "string", "name": "string", "dtype": "string", "group": "string", "instance": "int64",
        "group_rank": "int64", "sequence": "int64", "peer": "int64", "in_bytes": "int64", "out_bytes": "int64", "call_ns": "int64",
        "begin_ns": "int64", "end_ns": "int64", "duration_ns": "int64", "exposed_ns": "int64", "wait_ns": "int64", "failed": "bool"},
    "memory": {
        "pid": "int64", "of": "string", "device": "string", "kind": "string", "at_ns": "int64", "change_bytes": "int64",
        "bytes": "int64", "blocks": "int64"},
    "findings": {
        "pid": "int64", "rule": "string", "kind": "string", "severity": "string", "share_pct": "double", "share_of": "string",
        "sentence": "string", "suggestion": "string", "operator": "string", "kernel": "string", "device": "int64",
        "source_line": "string"},
}

# Rank and step come first, and what is in one folder comes together.
_SPANS = """
SELECT CAST(p.rank AS INTEGER) AS rank, o.step AS step, p.pid, t.tid,
       CASE o.scope WHEN 0 THEN 'operator' WHEN 1 THEN 'backward' ELSE 'scope' END, o.name_text, o.start_ns AS start_ns, o.end_ns,
       o.end_ns - o.start_ns, o.self_ns, o.phase, o.module_text, o.inputs_text, o.flops, o.allocated_bytes, o.freed_bytes,
       o.id, o.outer, o.is_cut
FROM op_calls o JOIN processes p ON p.id = o.process LEFT JOIN threads t ON t.process = o.process AND t.id = o.thread
UNION ALL
SELECT CAST(p.rank AS INTEGER), step_at(r.process, r.start_ns), p.pid, t.tid, CASE r.source WHEN 'module' THEN 'module' ELSE 'range' END,
       l.text, r.start_ns, r.end_ns, r.end_ns - r.start_ns, NULL, NULL, NULL, NULL, NULL, NULL, NULL, r.id, NULL, r.is_cut
FROM ranges r JOIN processes p ON p.id = r.process LEFT JOIN threads t ON t.process = r.process AND t.id = r.thread
LEFT JOIN labels l ON l.process = r.process AND l.id = r.name
UNION ALL
SELECT CAST(p.rank AS INTEGER), s.number, p.pid, NULL, 'step', s.rule, s.start_ns, s.end_ns, s.end_ns - s.start_ns, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0
FROM steps s JOIN processes p ON p.id = s.process
ORDER BY rank, step, start_ns
"""
_KERNELS = """
SELECT CAST(p.rank AS INTEGER) AS rank, k.step AS step, p.pid, 'kernel', k.name_text, k.device, k.stream, k.start_ns AS start_ns,
       k.end_ns, k.end_ns - k.start_ns, NULL, k.correlation, k.op_text, k.op, l.text, k.phase
FROM kernel_calls k JOIN processes p ON p.id = k.process LEFT JOIN labels l ON l.process = k.process AND l.id = k.module
UNION ALL
SELECT CAST(p.rank AS INTEGER), c.step, p.pid, 'copy', c.kind, c.device, c.stream, c.start_ns, c.end_ns, c.end_ns - c.start_ns, c.bytes,
       c.correlation, o.name_text, c.op, l.text, c.phase
FROM copies c JOIN processes p ON p.id = c.process LEFT JOIN labels l ON l.process = c.process AND l.id = c.module
LEFT JOIN op_calls o ON o.process = c.process AND o.id = c.op
UNION ALL
SELECT CAST(p.rank AS INTEGER), c.step, p.pid, 'memset', 'memset', c.device, c.stream, c.start_ns, c.end_ns, c.end_ns - c.start_ns,
       c.bytes, c.correlation, o.name_text, c.op, l.text, c.phase
FROM memsets c JOIN processes p ON p.id = c.process LEFT JOIN labels l ON l.process = c.process AND l.id = c.module
LEFT JOIN op_calls o ON o.process = c.process AND o.id = c.op
ORDER BY rank, step, start_ns
"""
_COLLECTIVES = """
SELECT CAST(p.rank AS INTEGER) AS rank, step_at(c.process, c.call_ns) AS step, p.pid, c.kind, c.name, c.dtype, c.group_name, c.instance,
       c.group_rank, c.sequence, c.peer, c.in_bytes, c.out_bytes, c.call_ns AS call_ns, c.begin_ns, c.end_ns,
       c.end_ns - entered(c.process, c.call_ns, c.begin_ns), exposed(c.process, entered(c.process, c.call_ns, c.begin_ns), c.end_ns),
       c.wait_ns, c.failed
FROM collective_calls c JOIN processes p ON p.id = c.process
ORDER BY rank, step, call_ns
"""
# The sums of tensors' bytes are running ones, by device.
_MEMORY = """
SELECT CAST(p.rank AS INTEGER) AS rank, step_at(e.process, e.at_ns) AS step, p.pid, e.source, e.device, e.kind, e.at_ns AS at_ns,
       e.change_bytes, e.bytes, e.blocks
FROM (SELECT process, 'tensors' AS source, device, CASE WHEN bytes < 0 THEN 'free' ELSE 'alloc' END AS kind, at_ns, bytes AS change_bytes,
             SUM(bytes) OVER (PARTITION BY process, device ORDER BY at_ns, rowid ROWS UNBOUNDED PRECEDING) AS bytes, NULL AS blocks
      FROM tensors
      UNION ALL SELECT process, 'heap', NULL, kind, at_ns, NULL, bytes, blocks FROM moments
      UNION ALL SELECT process, 'heap', NULL, 'peak', at_ns, NULL, bytes, blocks FROM peaks
                WHERE process NOT NULL AND process NOT IN (SELECT process FROM moments WHERE kind = 'peak')
      UNION ALL SELECT process, 'out_of_memory', device, 'refused', at_ns, bytes, allocated_bytes, NULL FROM out_of_memory) e
JOIN processes p ON p.id = e.process
ORDER BY rank, step, at_ns
"""
_QUERIES = {"spans": _SPANS, "kernels": _KERNELS, "collectives": _COLLECTIVES, "memory": _MEMORY}
# Communication itself does not hide communication.
_BUSY_OPS = """SELECT start_ns, end_ns FROM op_calls WHERE process = ? AND scope = 0 AND is_cut = 0 AND name_text NOT LIKE 'c10d::%'
AND name_text NOT LIKE 'autograd::%' ORDER BY start_ns"""
_BUSY_KERNELS = """SELECT start_ns, end_ns FROM (SELECT start_ns, end_ns FROM kernel_calls WHERE process = ?1 AND name_text NOT LIKE 'nccl%'
UNION ALL SELECT start_ns, end_ns FROM copies WHERE process = ?1 UNION ALL SELECT start_ns, end_ns FROM memsets WHERE process = ?1)
ORDER BY start_ns"""

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_BATCH_ROWS = 65536


def to_parquet(paths: object, folder: object, command: "str | None" = None, batch_rows: int = _BATCH_ROWS) -> "dict[str, int]":
    """
    Write recordings, a path or several, as a data set of Parquet files: FOLDER/TABLE/run=R/rank=N/step=S/part-0.parquet, for
    the tables spans, kernels, collectives, memory and findings (torsh/TABLES.md describes them). A run is a recording, by
    its file's name; what the folder has of it already is replaced. Returns the number of rows by table.

    Paths and the folder may be URLs that fsspec reads and writes, as "s3://bucket/tables".
    Needs pyarrow: pip install 'torsh[parquet]'. batch_rows rows are in memory at a time; the recording lies meanwhile as a
    database in $TMPDIR.
    """
    import os
    import tempfile

    arrow = _import_arrow()
    from torsh._places import fetch, is_url, listed
    from torsh._recording import find_command, run_command

    command, counts, runs = command or find_command(), dict.fromkeys(SCHEMAS, 0), set()
    for path in listed(paths, ".torsh"):
        run = _name(path, runs)
        with tempfile.TemporaryDirectory(prefix="torsh-parquet-") as scratch:
            if is_url(path):
                url, path = path, os.path.join(scratch, "recording.torsh")
                fetch(url, path)
            database = os.path.join(scratch, "recording.sqlite")
            run_command("export", path, "--format", "sqlite", "-o", database, command=command)
            with _Source(database) as source:
                for table, query in _QUERIES.items():
                    counts[table] += _write(arrow, folder, table, run, source.rows(query), batch_rows)
                findings = source.findings(run_command("report", path, "--json", "--limit", "0", "--no-lines", command=command))
                counts["findings"] += _write(arrow, folder, "findings", run, findings, batch_rows)
    return counts


def _import_arrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"torsh.to_parquet needs pyarrow, which can't be imported ({error}): pip install 'torsh[parquet]'") from None
    return pyarrow


def _name(path, runs):
    """A name for the run that none of the others has."""
    import pathlib

    stem = pathlib.PurePosixPath(path).stem
    name, n = stem, 1
    while name in runs:
        n += 1
        name = f"{stem}-{n}"
    runs.add(name)
    return name


class _Source:
    """An exported recording, with the functions that the queries call."""

    def __init__(self, path):
        import sqlite3

        self._database = sqlite3.connect(path)
        self._steps, self._busy, self._uses_device = {}, {}, {}

    def __enter__(self):
        self._database.create_function("step_at", 2, self._step_at)
        self._database.create_function("entered", 3, self._entered)
        self._database.create_function("exposed", 3, self._exposed)
        return self

    def __exit__(self, *error):
        self._database.close()

    def rows(self, query, *values):
        return self._database.execute(query, values)

    def _step_at(self, process, at_ns):
        import bisect

        if process not in self._steps:
            steps = self.rows("SELECT start_ns, end_ns, number FROM steps WHERE process = ? ORDER BY start_ns", process).fetchall()
            self._steps[process] = [list(column) for column in zip(*steps)] or [[], [], []]
        starts, ends, numbers = self._steps[process]
        i = bisect.bisect_right(starts, at_ns) - 1
        return numbers[i] if i >= 0 and at_ns < ends[i] else None

    def _has_kernels(self, process):
        if process not in self._uses_device:
            self._uses_device[process] = self.rows("SELECT 1 FROM kernels WHERE process = ? LIMIT 1", process).fetchone() is not None
        return self._uses_device[process]

    def _entered(self, process, call_ns, begin_ns):
        """When the rank entered a collective, as torsh ranks has it: on a device when its kernel began, else at the call."""
        return begin_ns if self._has_kernels(process) else call_ns

    def _exposed(self, process, begin_ns, end_ns):
        """How much of a collective nothing was computed in: no kernel where it has devices, else no operator."""
        import bisect

        if begin_ns is None or end_ns is None:
            return None
        if process not in self._busy:
            self._busy[process] = _merge(self.rows(_BUSY_KERNELS if self._has_kernels(process) else _BUSY_OPS, process))
        starts, ends = self._busy[process]
        exposed, i = end_ns - begin_ns, bisect.bisect_right(ends, begin_ns)
        while i < len(starts) and starts[i] < end_ns:
            exposed -= min(ends[i], end_ns) - max(starts[i], begin_ns)
            i += 1
        return exposed

    def findings(self, report):
        """Rows of the report's findings. They are of whole recordings: their step is null."""
        import json

        ranks = dict(self.rows("SELECT pid, CAST(rank AS INTEGER) FROM processes"))
        rows = []
        for one in json.loads(report).get("inefficiencies") or ():
            where = one["where"]
            pid = where.get("pid")
            rows.append((ranks.get(pid), None, pid, one["rule"], one["kind"], one["severity"], one["share_pct"], one["share_of"],
                         one["sentence"], one["suggestion"], where.get("operator_name"), where.get("kernel_name"),
                         where.get("device_id"), where.get("source_line")))
        return sorted(rows, key=lambda row: (row[0] is not None, row[0] or 0))


def _merge(intervals):
    """Starts and ends of the intervals, which come by start, as disjoint ones."""
    starts, ends = [], []
    for start, end in intervals:
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


def _write(arrow, folder, table, run, rows, batch_rows):
    """Writes a table's rows, which come by rank and step. Returns how many."""
    import itertools
    import urllib.parse

    from torsh._places import created, joined, remove

    place = joined(folder, table, "run=" + urllib.parse.quote(run, safe=""))
    schema = arrow.schema([arrow.field(name, getattr(arrow, kind + "_" if kind == "bool" else "float64" if kind == "double" else kind)())
                           for name, kind in SCHEMAS[table].items()])
    remove(place)
    n = 0
    for (rank, step), group in itertools.groupby(rows, key=lambda row: row[:2]):
        path = joined(place, *(f"{name}={_NO_VALUE if value is None else value}" for name, value in (("rank", rank), ("step", step))),
                      "part-0.parquet")
        with created(path) as file, arrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            while True:
                batch = list(itertools.islice(group, batch_rows))
                if not batch:
                    break
                writer.write_batch(_batch(arrow, schema, batch))
                n += len(batch)
    return n


def _batch(arrow, schema, rows):
    columns = list(zip(*rows))[2:]
    return arrow.record_batch([arrow.array([None if value is None else bool(value) for value in column] if arrow.types.is_boolean(field.type)
                                           else column, field.type) for column, field in zip(columns, schema)], schema=schema)
