# SPDX-License-Identifier: Apache-2.0 OR MIT
"""torsh workloads list, run and compare. The torsh command has the help and passes its options on."""

import argparse
import json
import os
import signal
import subprocess
import sys

from torsh.workloads import SIZES, VARIANTS, VARIANTS_BY_DEFAULT, WORKLOADS, path_of
from torsh.workloads._compare import rows_of, table_of
from torsh.workloads._run import Folder, run_all
from torsh.workloads._tasks import DEVICES, plan, reason_against, results_of

DONE, FAILED, UNREADABLE = 0, 1, 2
MOST_JOBS = 4  # unless more are asked for: each takes a gigabyte, or a part of a device's memory
# Printed by a program of that Python, with the launcher: what devices PyTorch has there.
PROBE = "import torch; print('cpu', 'cuda' if torch.cuda.is_available() else '')"


def die(sentence):
    print(f"torsh: {sentence}", file=sys.stderr)
    sys.exit(UNREADABLE)


def one_of(kind, names):
    """The type of an option that lists some of these names."""
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in names:
                die(f"there is no {kind} {name}: {', '.join(names)}")
        return chosen
    return parse


def at_least(least):
    def parse(text):
        if not text.isdigit() or int(text) < least:
            die(f"{text} is no number from {least} on")
        return int(text)
    return parse


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="torsh workloads", description=__doc__)
    parser.add_argument("action", choices=("list", "run", "compare"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--output", default="torsh-workloads")
    parser.add_argument("--jobs", type=at_least(1), default=min(MOST_JOBS, len(os.sched_getaffinity(0))))
    parser.add_argument("--variants", type=one_of("variant", VARIANTS), default=list(VARIANTS_BY_DEFAULT))
    parser.add_argument("--devices", type=one_of("device", DEVICES))
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--warmup-iters", type=at_least(0), default=2)
    parser.add_argument("--measure-iters", type=at_least(1), default=5)
    parser.add_argument("--timeout", type=at_least(1), default=600)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--launcher")
    parser.add_argument("--counters")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def print_json(action, **found):
    json.dump({"version": 1, "action": action, **found}, sys.stdout, indent=1)
    print()


# ---- list ---------------------------------------------------------------------------------------------------------


def list_workloads(options):
    rows = [{"name": name, "description": text, "variants": [variant for variant in VARIANTS
                                                             if not reason_against(name, variant, "cuda")], "file": path_of(name)}
            for name, (text, _) in WORKLOADS.items() if not options.names or name in options.names]
    if options.json:
        print_json("list", workloads=rows, variants=[{"name": name, "description": text} for name, text in VARIANTS.items()])
        return DONE
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        print(f"{row['name']:{width}}  {row['description']}")
    print("\nVariants: " + "; ".join(f"{name}: {text}" for name, text in VARIANTS.items()) + ".")
    return DONE


# ---- run ----------------------------------------------------------------------------------------------------------


def find_devices(options):
    import shlex

    command = [*shlex.split(options.launcher or ""), options.python, "-c", PROBE]
    try:
        probe = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        die(f"{command[0]} can't be run: {error.strerror}")
    if probe.returncode:
        last = probe.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"status {probe.returncode}"]
        die(f"{options.python} can't use PyTorch: {last[0]}. --python names the interpreter that has it")
    there = probe.stdout.decode().split()
    for device in options.devices or ():
        if device not in there:
            die(f"PyTorch has no device {device} here")
    return options.devices or there


def check_names(names):
    try:
        return [name if name in WORKLOADS else path_of(name) for name in names] or list(WORKLOADS)
    except ValueError as error:
        die(str(error))


def run_workloads(options):
    names = check_names(options.names)
    options.output = os.path.abspath(options.output)
    devices = find_devices(options)
    folder = Folder(options.output)
    tasks = plan(options.output, names, options.variants, devices, options)
    kept = {} if options.again else {task: result for task in tasks for result in [task.result()]
                                     if result and result["status"] == "ok"}
    waiting = [task for task in tasks if task not in kept]

    def report(task, result):
        took = f"{result['seconds']:.1f} s"
        if result["status"] == "ok":
            print(f"{task.label} {task.variant} on {task.device}: {result['measured']['step_ns'] / 1e6:.3f} ms a step, {took}",
                  file=sys.stderr, flush=True)
        else:
            print(f"{task.label} {task.variant} on {task.device}: failed after {took}: {result['reason'].splitlines()[0]}",
                  file=sys.stderr, flush=True)

    done = {**kept, **(run_all(waiting, options, report) if waiting else {})}
    folder.file.close()
    failed = [task for task in tasks if done[task]["status"] != "ok"]
    if options.json:
        rows = [{"workload": task.label, "variant": task.variant, "device": task.device, "folder": task.folder,
                 "status": done[task]["status"], "reason": done[task]["reason"], "seconds": done[task]["seconds"],
                 "was_kept": task in kept, "files": done[task]["files"]} for task in tasks]
        print_json("run", folder=options.output, runs=rows)
    else:
        for task in failed:
            print(f"{task.label} {task.variant} on {task.device} failed: {done[task]['reason']}\n")
        print(f"{len(tasks) - len(failed)} of {len(tasks)} runs are in {options.output}"
              + (f", {len(kept)} of them from before" if kept else "") + (f"; {len(failed)} failed" if failed else ""))
    return FAILED if failed else DONE


# ---- compare ------------------------------------------------------------------------------------------------------


def compare_workloads(options):
    if not os.path.isdir(options.output):
        die(f"there is no folder {options.output}: torsh workloads run makes it")
    labels = {os.path.splitext(os.path.basename(name))[0] for name in options.names}
    rows = rows_of(results_of(options.output, labels))
    missing = sorted(labels - {row["workload"] for row in rows})
    if missing or not rows:
        die(f"{options.output} has no result" + (f" of {', '.join(missing)}" if missing else ""))
    if options.json:
        print_json("compare", folder=os.path.abspath(options.output), runs=rows)
    else:
        print(table_of(rows))
    return FAILED if any(row["status"] != "ok" for row in rows) else DONE


class Interrupted(BaseException):
    """A signal that ends the command, and what it runs."""


def interrupt(number, frame):
    raise Interrupted(number)


def main(arguments):
    options = parse_arguments(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        return {"list": list_workloads, "run": run_workloads, "compare": compare_workloads}[options.action](options)
    except Interrupted as interrupted:
        number = interrupted.args[0]
        print(f"torsh: interrupted by {signal.Signals(number).name}; the same command goes on", file=sys.stderr)
        return 128 + number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
