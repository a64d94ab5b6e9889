#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Other clients of CUPTI in the recorded process, on the simulated CUDA: they receive what they
receive without the agent, and the agent records what was done."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from timeline import events  # noqa: E402
from simcuda import LIBRARIES, PROFILED, QUIET_END, cuda_python, need_simcuda, of_kind, preload_names, read_truth  # noqa: E402

CLIENT = PROGRAMS / "cuda_client"
KINDS = {"kernel": "kernel", "memcpy": "copy", "memset": "memset"}
N_WINDOWS = 10 if IS_QUICK else 100


def simulated(command, agent, preloads=None, timeout=120):
    """Output of a command on the simulated CUDA, with the agent or without; its recording, and the truth."""
    need_simcuda()
    truth, output = scratch("truth") / "truth", scratch()
    variables = agent_environment(output) if agent else clean_environment()
    before = [variables["LD_PRELOAD"]] if agent else []
    variables["LD_PRELOAD"] = ":".join([*before, *(str(LIBRARIES / name) for name in preloads or preload_names())])
    variables.update({"LD_LIBRARY_PATH": str(LIBRARIES), "SIMCUDA_LOG": str(truth), **QUIET_END})
    result = run(command, variables, timeout=timeout)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-3000:]}\n")
    return result.stdout.decode(), output, read_truth(truth)


def expect_recorded(output, truth):
    """Everything that was done, once, in the mode that has it all."""
    found = [event for event in events(output) if event["event"] in KINDS.values()]
    done = of_kind(truth, *KINDS)
    expect_equal(sorted((event["correlation"], event["event"]) for event in found),
                 sorted((line["correlation"], KINDS[line["kind"]]) for line in done), "what was recorded")
    expect_equal(of_kind(truth, "violation"), [], "violations")
    (process,) = read_report("kernels", output)["processes"]
    expect_equal(process["mode"], "CUPTI", "mode")
    return found, done


@case
def another_subscriber_receives_what_it_receives_alone():
    for when in ("before", "after"):
        for how in ("symbol", "dlsym"):
            alone, _, _ = simulated([CLIENT, when, how], agent=False)
            beside, output, truth = simulated([CLIENT, when, how], agent=True)
            assert "cuLaunchKernel: 5 5" in alone, alone
            expect_equal(beside, alone, f"what a client receives that subscribes {when} by {how}")
            expect_recorded(output, truth)


def device_events(path):
    """What a trace of torch.profiler has of devices: names, sizes and where, in the order of their launches."""
    trace = json.loads(path.read_text())["traceEvents"]
    found = [event for event in trace if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return sorted((event["args"]["correlation"], event["name"], event["cat"], event["args"].get("bytes")) for event in found)


@case
@needs("torch")
def torch_profiler_has_all_of_its_records_a_hundred_times():
    python, traces = cuda_python(), scratch("traces")
    _, output, truth = simulated([python, "-c", PROFILED, traces, N_WINDOWS], agent=True, timeout=600)
    expect_recorded(output, truth)
    done = {line["correlation"]: line for line in of_kind(truth, *KINDS)}
    for window in range(N_WINDOWS):
        seen = device_events(traces / f"{window}.json")
        numbers = [number for number, *_ in seen]
        # Five times an addition, a copy to the host and one back, without anything of before or after.
        expect_equal([category for _, _, category, _ in seen], ["kernel", "gpu_memcpy", "gpu_memcpy"] * 5,
                     f"what torch.profiler has in window {window}")
        expect_equal(numbers, [number for number in sorted(done) if numbers[0] <= number <= numbers[-1]], "correlations")
        expect_equal([size for *_, size in seen if size is not None],
                     [done[number]["bytes"] for number in numbers if done[number]["kind"] == "memcpy"], "bytes")


if __name__ == "__main__":
    main()
