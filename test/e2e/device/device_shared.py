#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A device that several processes use: their common peak, and the part of each. Processes take
turns on the simulated CUDA, so that this is defined; each has a simulation of its own, with
devices of the same UUIDs."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402
import schema  # noqa: E402
from device_memory import peak_of  # noqa: E402
from simcuda import LIBRARIES, need_simcuda, preloaded  # noqa: E402

SCRIPT = pythons.SOURCES / "turns.py"
UUID = "GPU-73696d75-6c61-7465-6420-6465766963{:02x}"
MB = 1000000
# Each line: a process (0: the first), and by how many bytes its memory grows, or shrinks by what it got then.
TOGETHER = [[0, 9 * MB], [0, -9 * MB], [1, 5 * MB], [0, 6 * MB], [1, -5 * MB], [0, 4 * MB]]
THREE = [[0, 8 * MB], [1, 3 * MB], [0, -5 * MB], [2, 7 * MB], [1, 2 * MB], [0, 4 * MB], [1, -5 * MB], [0, 4 * MB]]
# What a process had is gone when it has ended.
ENDED = [[0, 2 * MB], [1, 7 * MB], ["end", 1], [0, 6 * MB], [2, 3 * MB]]
# Of three processes the second is on another device, and has most.
APART = [[0, 2 * MB], [1, 9 * MB], [2, 3 * MB], [0, -1 * MB], [2, 1 * MB], [1, -9 * MB], [0, 1 * MB], [2, -4 * MB]]


def record_turns(turns, devices, **settings):
    """Processes by number: on which device of the machine they are."""
    need_simcuda()
    output = scratch()
    variables = agent_environment(output, TURNS_ON=json.dumps(devices), SIMCUDA_FIRST_DEVICE=str(devices[0]), **settings)
    variables["LD_PRELOAD"] = f"{variables['LD_PRELOAD']}:{preloaded()}"
    variables["LD_LIBRARY_PATH"] = str(LIBRARIES)
    result = run([sys.executable, SCRIPT, "spawn", json.dumps(turns)], variables)
    expect_equal((result.returncode, result.stderr), (0, b""), "status")
    return output, json.loads(result.stdout)


def highest(turns, among):
    """The first highest sum of these processes, and what each had then."""
    held, best = dict.fromkeys(among, 0), (0, {})
    for who, change in turns:
        if who == "end":
            held.pop(change, None)
        elif who in held:
            held[who] += change
            best = max(best, (sum(held.values()), dict(held)), key=lambda pair: pair[0])
    return best


def expect_shared(found, turns, among, pids, uuid):
    n_bytes, held = highest(turns, among)
    expect_equal((found["uuid"], found["identified_by"], found["peak_bytes"]), (uuid, "uuid" if uuid else "number", n_bytes),
                 "the device, and its common peak")
    expect_equal({process["pid"]: (process["device"], process["bytes"], process["peak_bytes"]) for process in found["processes"]},
                 {pids[who]: ("cuda:0", held.get(who, 0), highest(turns, [who])[0]) for who in among}, "by process")


def check_turns(turns, n):
    output, pids = record_turns(turns, [0] * n)
    (found,) = peak_of(output, "cuda:0")["shared"]
    expect_shared(found, turns, range(n), pids, UUID.format(0))
    return output, pids, found


def expect_everywhere(output, found):
    page = read_report("report", output)
    schema.expect_fits("report", page)
    expect_equal(page["devices"]["shared"], [found], "the page's")
    expect_equal(peak_of(output, "all")["shared"], [found], "with all")
    for text in (torsh("peak", output, "--device", "cuda:0"), torsh("report", output, "--verbose")):
        assert f"{found['uuid']} was used by {len(found['processes'])} processes" in text, text
        assert f"{found['peak_bytes']:,} bytes" in text, text
    limit = found["peak_bytes"]
    torsh("check", output, "--max-device-peak", str(limit))
    torsh("check", output, "--max-device-peak", str(limit - 1), "--device", "cuda:0", expect=1)


@case
def two_processes_on_one_device_have_a_common_peak():
    output, pids, found = check_turns(TOGETHER, 2)
    expect_everywhere(output, found)
    # Of one process alone there is none.
    expect_equal(peak_of(output, "cuda:0", "--pid", str(pids[1]))["shared"], [], "with --pid")


@case
def three_processes_on_one_device_have_a_common_peak():
    check_turns(THREE, 3)


@case
def memory_of_a_process_that_ended_counts_no_more():
    check_turns(ENDED, 3)


@case
def devices_with_the_same_number_are_distinguished():
    output, pids = record_turns(APART, [4, 5, 4])
    (found,) = peak_of(output, "cuda:0")["shared"]
    expect_shared(found, APART, (0, 2), pids, UUID.format(4))
    highest_one = json.loads(torsh("check", output, "--max-device-peak", "1T", "--json"))["checks"][0]
    expect_equal(highest_one["value"], 9 * MB, "the other device has more by itself")


@case
def without_cupti_devices_are_the_same_by_their_numbers():
    output, pids = record_turns(TOGETHER, [0, 0], SIMCUDA_FAULTS="cuptiSubscribe*=39")
    (found,) = peak_of(output, "cuda:0")["shared"]
    expect_shared(found, TOGETHER, range(2), pids, None)
    assert "the same device by its number alone" in torsh("peak", output, "--device", "cuda:0")


if __name__ == "__main__":
    main()
