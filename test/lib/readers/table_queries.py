# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Asks a data set of Parquet files questions, in SQL of DuckDB or in expressions of polars:

    table_queries.py duckdb|polars FOLDER

prints the answers of all questions that its tables can answer as one JSON object.
"""

import json
import pathlib
import sys

ENGINE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])

SQL = {
    "operators": "select name, count(*), sum(duration_ns), sum(self_ns), sum(allocated_bytes) from spans "
                 "where kind in ('operator', 'backward', 'scope') group by name",
    "most_self_time_of_step": "select rank, step, max(ns), arg_max(name, ns) from (select rank, step, name, sum(self_ns) as ns from spans "
                              "where self_ns is not null and step is not null group by all) group by rank, step",
    "steps": "select rank, step, duration_ns from spans where kind = 'step'",
    "modules": "select name, count(*), sum(duration_ns) from spans where kind = 'module' group by name",
    "tensor_peak_of_rank": "select rank, max(bytes) from memory where \"of\" = 'tensors' group by rank",
    "heap_peak_of_rank": "select rank, max(bytes) from memory where \"of\" = 'heap' group by rank",
    "kernels": "select name, count(*), sum(duration_ns), min(duration_ns) from kernels where kind = 'kernel' group by name",
    "kernels_of_operator": "select operator, count(*), sum(duration_ns) from kernels where kind = 'kernel' group by operator",
    "findings": "select rank, rule, count(*), max(share_pct) from findings group by rank, rule",
    "collectives": "select name, count(*), sum(greatest(in_bytes, out_bytes)), sum(duration_ns) from collectives "
                   "where kind = 'collective' group by name",
    "exposed_of_rank": "select rank, sum(exposed_ns), sum(duration_ns) from collectives group by rank",
    "last_of_all_reduces": "select last, count(*) from (select arg_max(rank, call_ns) as last from collectives where name like 'allreduce%' "
                           "and step > 0 group by run, \"group\", instance, sequence having count(*) > 1) group by last",
}
TABLES = {"spans": ("operators", "most_self_time_of_step", "steps", "modules"), "memory": ("tensor_peak_of_rank", "heap_peak_of_rank"),
          "kernels": ("kernels", "kernels_of_operator"), "findings": ("findings",),
          "collectives": ("collectives", "exposed_of_rank", "last_of_all_reduces")}


def by_duckdb(table):
    import duckdb

    database = duckdb.connect()
    database.execute(f"create view {table} as select * from read_parquet('{FOLDER}/{table}/*/*/*/*.parquet', hive_partitioning = true)")
    return {name: database.execute(SQL[name]).fetchall() for name in TABLES[table]}


def by_polars(table):
    import polars

    col, n = polars.col, polars.len()
    frame = polars.scan_parquet(FOLDER / table / "**/*.parquet", hive_partitioning=True)
    calls = col("kind").is_in(["operator", "backward", "scope"])
    both = polars.max_horizontal("in_bytes", "out_bytes")
    per_step = (col("self_ns").is_not_null() & col("step").is_not_null())
    total, keys = col("duration_ns").sum(), ["run", "group", "instance", "sequence"]

    def last():
        one = frame.filter(col("name").str.starts_with("allreduce") & (col("step") > 0)).group_by(keys)
        found = one.agg(col("rank").sort_by("call_ns").last().alias("last"), n.alias("ranks")).filter(col("ranks") > 1)
        return found.group_by("last").agg(n)

    lazy = {
        "operators": lambda: frame.filter(calls).group_by("name").agg(n, total, col("self_ns").sum(), col("allocated_bytes").sum()),
        "most_self_time_of_step": lambda: frame.filter(per_step).group_by("rank", "step", "name").agg(col("self_ns").sum().alias("ns"))
        .group_by("rank", "step").agg(col("ns").max(), col("name").sort_by("ns").last()),
        "steps": lambda: frame.filter(col("kind") == "step").select("rank", "step", "duration_ns"),
        "modules": lambda: frame.filter(col("kind") == "module").group_by("name").agg(n, total),
        "tensor_peak_of_rank": lambda: frame.filter(col("of") == "tensors").group_by("rank").agg(col("bytes").max()),
        "heap_peak_of_rank": lambda: frame.filter(col("of") == "heap").group_by("rank").agg(col("bytes").max()),
        "kernels": lambda: frame.filter(col("kind") == "kernel").group_by("name").agg(n, total, col("duration_ns").min().alias("least")),
        "kernels_of_operator": lambda: frame.filter(col("kind") == "kernel").group_by("operator").agg(n, total),
        "findings": lambda: frame.group_by("rank", "rule").agg(n, col("share_pct").max()),
        "collectives": lambda: frame.filter(col("kind") == "collective").group_by("name").agg(n, both.sum().alias("bytes"), total),
        "exposed_of_rank": lambda: frame.group_by("rank").agg(col("exposed_ns").sum(), total),
        "last_of_all_reduces": last,
    }
    return {name: lazy[name]().collect().rows() for name in TABLES[table]}


answers = {}
for name in TABLES:
    if (FOLDER / name).exists():
        answers.update(by_duckdb(name) if ENGINE == "duckdb" else by_polars(name))
print(json.dumps({name: sorted(rows, key=str) for name, rows in answers.items()}, default=int))
