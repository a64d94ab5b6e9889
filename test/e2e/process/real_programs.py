#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Real programs write the same to stdout and stderr and end with the same status under the agent as without it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

BASH = r"""
trap 'echo trapped' EXIT
declare -A counts
for word in a b a c b a; do counts[$word]=$(( ${counts[$word]:-0} + 1 )); done
for word in a b c; do echo "$word ${counts[$word]}"; done
seq 1 2000 | while read -r n; do (( n % 500 )) || echo "piped $n"; done
for i in 1 2 3; do ( exit $i ) & children+=($!); done
for job in "${children[@]}"; do wait "$job"; echo "child ended with $?"; done
x=$(printf 'y%.0s' {1..5000}); echo ${#x} "$(echo "$x" | wc -c)"
cat <(echo substituted)
{ bash -c 'kill -TERM $$'; } 2>/dev/null; echo "killed: $?"
echo to stderr >&2
no_such_command_here
exit 7
"""

C_SOURCE = r"""
#include <stdio.h>
#include <string.h>
struct point { double x, y; };
static double dot(const struct point *a, const struct point *b) { return a->x * b->x + a->y * b->y; }
#define SUM(n) static double sum##n(const struct point *p, int k) { double s = 0; int unused; \
	for (int i = 0; i < k; i++) s += dot(&p[i], &p[(i + n) % k]); return s; }
""" + "".join(f"SUM({n})\n" for n in range(200)) + "int main(void) { struct point p[3] = {{1, 2}}; return sum0(p, 3) > 5; }\n"

NODE = r"""
const big = Array.from({length: 50000}, (_, i) => ({i, s: 'v' + i}));
console.log(JSON.stringify(big.filter(o => o.i % 10000 == 0)));
console.log(require('zlib').gzipSync(Buffer.alloc(100000, 'abc')).length);
setTimeout(() => { console.error('later'); process.exit(4); }, 1);
"""

PERL = r"""
my %h; $h{$_ % 1000} .= "x$_," for 1..100000;
print join(",", map { length $h{$_} } sort { $a <=> $b } (keys %h)[0..0] ? (1, 2, 3) : ()), "\n";
my $s = "abc" x 20000; my $n = () = $s =~ /b(?=c)/g; print "$n\n";
my $pid = fork; if (!$pid) { print "child\n"; exit 5 } waitpid $pid, 0; print $? >> 8, "\n";
open my $p, "-|", "echo piped"; print <$p>;
die "perl dies\n";
"""

PYTHON = r"""
import json, os, subprocess, sys, threading, multiprocessing as mp
data = {str(i): list(range(i % 50)) for i in range(3000)}
print(len(json.dumps(data)), json.loads(json.dumps(data)) == data)
out = []
threads = [threading.Thread(target=lambda k=k: out.append(sum(len(str(i)) for i in range(20000)))) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(out)
print(subprocess.run([sys.executable, '-c', 'print("a child"); raise SystemExit(9)']).returncode)
with mp.get_context('fork').Pool(2) as pool: print(pool.map(abs, range(-3, 3)))
pid = os.fork()
if not pid: os._exit(6)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
try: os.wait()
except ChildProcessError: print('no other child')
print(sorted(int(fd) for fd in os.listdir('/proc/self/fd') if int(fd) < 512))
print('stderr', file=sys.stderr)
raise SystemExit(3)
"""

SQLITE = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into t select i, hex(i * 7919) from n;
create index x on t(b);
select count(*), min(b), max(b), sum(length(b)) from t where b like '3%';
select group_concat(b) from (select b from t order by b desc limit 5);
select * from missing;
"""


def write_files(folder):
    (folder / "tree").mkdir()
    for i in range(200):
        (folder / "tree" / f"file{i}").write_text(f"line {i}\n" * (i + 1))
    (folder / "source.c").write_text(C_SOURCE)
    (folder / "numbers").write_text("".join(f"{i * 7919 % 100003} {i}\n" for i in range(100000)))


GIT = r"""
export GIT_CONFIG_NOSYSTEM=1 HOME=$PWD GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE='@1 +0000'
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org GIT_COMMITTER_DATE='@1 +0000'
git init -q -b main . && git add tree && git commit -q -m one && echo more >>tree/file7 && git commit -qam two
git log --stat --oneline; git diff HEAD~1; git gc -q; git fsck 2>&1; git blame tree/file7 | tail -n 1
git checkout missing
"""

# name, command run in a folder with the files above
PROGRAMS_TABLE = (
    ("bash", ["bash", "-c", BASH]),
    ("gcc", ["gcc", "-O2", "-Wall", "-S", "-o", "-", "source.c"]),
    ("gcc_fails", ["gcc", "-Wall", "-Werror", "-c", "-o", "/dev/null", "source.c"]),
    ("git", ["bash", "-c", GIT]),
    ("node", ["node", "-e", NODE]),
    ("perl", ["perl", "-e", PERL]),
    ("python3", ["python3", "-c", PYTHON]),
    ("python3_own_malloc", ["env", "PYTHONMALLOC=malloc", "python3", "-c", PYTHON]),
    ("sort", ["sort", "--parallel=4", "-S", "1M", "-n", "numbers"]),
    ("sqlite3", ["sqlite3", ":memory:", SQLITE]),
    ("tar", ["tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-cf", "-", "tree"]),
    ("tar_xz", ["bash", "-c", "tar --sort=name --mtime=@0 --owner=0 --group=0 -cJf t.tar.xz tree && tar -xJvf t.tar.xz -C ."]),
    ("xz", ["xz", "-T2", "-1", "-c", "numbers"]),
)


def same_in_a_fresh_folder(name, command):
    need_command(command[0])
    outcomes = []
    output = scratch("recordings")
    for env in (clean_environment(), agent_environment(output)):
        # The same path both times: programs print it.
        folder = scratch("work")
        write_files(folder)
        result = run(command, env, cwd=folder)
        outcomes.append((result.returncode, result.stdout, result.stderr))
    bare, under_agent = outcomes
    expect_equal(under_agent[0], bare[0], f"status of {name}")
    expect_equal(under_agent[2].decode(errors="replace"), bare[2].decode(errors="replace"), f"stderr of {name}")
    assert under_agent[1] == bare[1], f"stdout of {name} differs: {len(under_agent[1])} bytes, bare {len(bare[1])}"
    assert recordings(output), f"{name} was not recorded"


for row in PROGRAMS_TABLE:
    add_case(row[0], same_in_a_fresh_folder, *row)

main()
