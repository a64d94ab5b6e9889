#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The owners of resident memory of real programs, each of their processes at its peak and at its end: their sum is RSS to the
byte, and that is near what the kernel counts.
"""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from schema import expect_fits  # noqa: E402

MIB = 1 << 20

PYTHON = """
import json, multiprocessing
data = {str(i): [list(range(20))] for i in range(30000)}
text = json.dumps(data)
pool = multiprocessing.get_context("fork").Pool(3)
print(sum(pool.map(len, [text[:1000]] * 30)))
# Those that are terminated, as the end of a with does, have no last account.
pool.close()
pool.join()
"""

# It goes on for a second: at its exit it has given back what it mapped, so one account must come before.
NODE = ("const a = []; for (let i = 0; i < 200000; i++) a.push({i, s: 'v' + i}); console.log(a.length, Buffer.alloc(2e7, 1).length); "
        "setTimeout(() => a.length, 1000)")

SQLITE = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) insert into t select i, hex(i * 7919) from n;
create index x on t(b);
select count(*), sum(length(b)) from t where b like '3%';
"""

JAVA = """
import java.util.*;
public class Main {
	public static void main(String[] arguments) {
		List<byte[]> list = new ArrayList<>();
		for (int i = 0; i < 100; i++) {
			list.add(new byte[500000]);
			Arrays.fill(list.get(i), (byte) 1);
		}
		System.out.println(list.size());
	}
}
"""

REDIS = """
cd %s
redis-server --port 0 --unixsocket socket --save "" --enable-debug-command yes >/dev/null &
until redis-cli -s socket ping 2>/dev/null | grep -q PONG; do :; done
redis-cli -s socket debug populate 100000 key 100 >/dev/null
redis-cli -s socket eval "for i = 0, 70000 do redis.call('del', 'key:' .. i) end return 1" 0 >/dev/null
redis-cli -s socket shutdown nosave
wait
"""

TRAINING = """
import torch
class Numbers(torch.utils.data.Dataset):
    def __init__(self):
        self.items = [(i, str(i)) for i in range(50000)]
    def __len__(self):
        return 400
    def __getitem__(self, i):
        return torch.full((16,), float(sum(item[0] for item in self.items[i * 100:i * 100 + 1000]) % 97)), i % 2
net = torch.nn.Linear(16, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for inputs, labels in torch.utils.data.DataLoader(Numbers(), batch_size=32, num_workers=2):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(inputs), labels).backward()
    optimizer.step()
print("trained")
"""


def accounts(output):
    """Of each process that has some, at both moments."""
    report = read_report("rss", output)
    expect_fits("rss", report)
    for pid in sorted({process["pid"] for process in report["processes"]}):
        for moment in ("peak", "end"):
            account = read_report("rss", output, "--pid", str(pid), "--at", moment)
            if account["rss_bytes"] is not None:
                yield account


def expect_whole(command, least_bytes, **options):
    result, output = record(command, timeout=200, **options)
    expect_equal(result.returncode, 0, f"status of {command[0]}\n{result.stderr.decode()[-2000:]}")
    found = list(accounts(output))
    for account in found:
        size = account["rss_bytes"]
        expect_equal(sum(owner["bytes"] for owner in account["owners"]), size, f"sum of all owners of {account['pid']}")
        if account["held"]:
            expect_equal(account["kinds"]["changed"], 0, "bytes that changed while it was stopped")
            # The kernel counts in batches of some pages for each thread.
            assert abs(account["status_rss_bytes"] - size) <= MIB, (account["status_rss_bytes"], size)
    assert max(account["rss_bytes"] for account in found) >= least_bytes, [account["rss_bytes"] for account in found]
    return output, found


@case
def of_python_with_workers():
    _, found = expect_whole([sys.executable, "-c", PYTHON], 20 * MIB)
    assert max(account["kinds"]["cpython"] for account in found) >= 10 * MIB, [account["kinds"] for account in found]
    assert any(account["kinds"]["inherited"] and account["kinds"]["cow"] for account in found), "no fork"


@case
def of_sqlite():
    need_command("sqlite3")
    expect_whole(["sqlite3", ":memory:", SQLITE], 5 * MIB)


@case
def of_git():
    need_command("git")
    folder = scratch("repository")
    for i in range(300):
        (folder / f"file{i}").write_text(f"line {i}\n" * 500)
    script = "git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm one && git log --stat --oneline | tail -1"
    expect_whole(["sh", "-c", script], 2 * MIB, cwd=folder)


@case
def of_node():
    if not shutil.which("node"):
        raise Skip("node is not on this machine")
    _, found = expect_whole(["node", "-e", NODE], 30 * MIB)
    assert any(account["kinds"]["mapped"] > MIB for account in found), [account["kinds"] for account in found]


@case
def of_java():
    if not shutil.which("javac"):
        raise Skip("javac is not on this machine")
    folder = scratch("java")
    (folder / "Main.java").write_text(JAVA)
    expect_equal(run(["javac", "Main.java"], cwd=folder).returncode, 0, "status of javac")
    _, found = expect_whole(["java", "-Xmx256m", "-cp", folder, "Main"], 60 * MIB)
    assert max(account["kinds"]["mapped"] for account in found) >= 50 * 500000, [account["kinds"] for account in found]


@case
def of_redis():
    if not shutil.which("redis-server") or not shutil.which("redis-cli"):
        raise Skip("redis is not on this machine")
    folder = scratch("redis")
    _, found = expect_whole(["bash", "-c", REDIS % folder], 15 * MIB)
    assert any("jemalloc" in (owner["name"] or "") and owner["bytes"] > MIB for account in found for owner in account["owners"]
               if owner["kind"] == "retained"), [account["kinds"] for account in found]


@case
@needs("torch")
def of_a_training_with_workers():
    output, found = expect_whole([torch_python(), "-c", TRAINING], 100 * MIB)
    tree = read_report("rss", output)["tree"]
    assert tree["processes"] == 3 and tree["pss_bytes"] < tree["rss_bytes"], tree
    workers = [account for account in found if account["kinds"]["inherited"]]
    assert len(workers) >= 2 and all(account["kinds"]["cow"] for account in workers), [account["kinds"] for account in found]


main()
