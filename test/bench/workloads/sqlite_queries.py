# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A table in memory, filled and queried: sqlite_queries.py ROUNDS."""
import sqlite3
import sys

db = sqlite3.connect(":memory:")
db.execute("create table points (id integer primary key, name text, x real)")
db.execute("create index names on points (name)")
found = 0
for n in range(int(sys.argv[1])):
    db.executemany("insert into points (name, x) values (?, ?)", ((f"name {n * i % 977}", i * 0.5) for i in range(500)))
    for name, count, mean in db.execute("select name, count(*), avg(x) from points group by name order by 2 desc limit 50"):
        found += count
    db.execute("delete from points where id % 3 = 0")
print(found)
