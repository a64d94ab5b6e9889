# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
query DATABASE LIMIT SECONDS SQL: prints the rows of one query as JSON. A process of its own, so that neither time nor
memory that a query takes are the server's.
"""

import json
import resource
import sqlite3
import sys
import time
import urllib.parse

MEMORY_BYTES = 1 << 30
TEXT_BYTES = 1 << 20
FILE_BYTES = 1 << 16  # what it says goes to a file
STEPS = 10000  # of SQLite's machine, between looks at the clock
# What reads: all else is refused, such as ATTACH, PRAGMA, and whatever writes.
ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
FUNCTIONS = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}


def authorize(action, first, second, database, trigger):
    if action not in ACTIONS or (action == sqlite3.SQLITE_FUNCTION and second.lower() in FUNCTIONS):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def connect(path, seconds):
    connection = sqlite3.connect(f"file:{urllib.parse.quote(path)}?mode=ro&immutable=1", uri=True)
    deadline = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
    connection.set_authorizer(authorize)
    if hasattr(connection, "setlimit"):  # from Python 3.11 on; before, the process's memory is the limit
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, TEXT_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    return connection


def plain(value):
    return value.hex() if isinstance(value, bytes) else value


def main():
    path, limit, seconds, text = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    try:
        cursor = connect(path, seconds).execute(text)
        rows = [[plain(value) for value in row] for row in cursor.fetchmany(limit + 1)]
    except sqlite3.Error as error:
        sys.exit(f"the query took longer than {seconds} s" if str(error) == "interrupted" else f"refused by SQLite: {error}")
    except sqlite3.Warning as error:
        sys.exit(f"refused: {error}")
    except MemoryError:
        sys.exit(f"the query needs more than {MEMORY_BYTES >> 20} MiB")
    columns = [column[0] for column in cursor.description or ()]
    print(json.dumps({"columns": columns, "rows": rows[:limit], "is_cut": len(rows) > limit}))


if __name__ == "__main__":
    main()
