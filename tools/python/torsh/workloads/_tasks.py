# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What there is to run: a workload in a variant on a device is a task, with a folder and a result of its own."""

import hashlib
import json
import os

from torsh.workloads import VARIANTS, WORKLOADS, path_of

RESULT = "result.json"
DEVICES = ("cpu", "cuda")
VERSION = 1  # of the results: others are made again


class Task:
    """One run: its folder, and what its result depends on."""

    def __init__(self, folder, workload, variant, device, options):
        self.label = os.path.splitext(os.path.basename(workload))[0]
        self.workload, self.variant, self.device = workload, variant, device
        self.folder = os.path.join(folder, self.label, f"{device}-{variant}")
        self.result_path = os.path.join(self.folder, RESULT)
        self.key = {"version": VERSION, "workload": workload, "variant": variant, "device": device, "size": options.size,
                    "warmup_iters": options.warmup_iters, "measure_iters": options.measure_iters, "python": options.python,
                    "launcher": options.launcher, "counters": options.counters, "source": digest_of(path_of(workload))}

    def result(self):
        """The result of a run that has ended, or None where there is none, or one of something else."""
        found = read_result(self.result_path)
        return found if found and found.get("key") == self.key else None


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def read_result(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def write_result(path, result):
    """As a whole or not at all: a run that is killed leaves none."""
    with open(path + ".part", "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def reason_against(workload, variant, device):
    """Why a workload has no such variant, or None. Of a user's file nothing is known: it may take all."""
    if variant == "channels_last" and workload in WORKLOADS and not WORKLOADS[workload][1]:
        return "its inputs are no images"
    if variant == "cudagraphs" and device != "cuda":
        return "there are no CUDA graphs on a CPU"
    return None


def plan(folder, workloads, variants, devices, options):
    """All tasks, workload by workload."""
    return [Task(folder, workload, variant, device, options) for workload in workloads for device in devices
            for variant in variants if not reason_against(workload, variant, device)]


def results_of(folder, labels):
    """All results below the folder, by workload as in the list, then as they are called."""
    order = {name: i for i, name in enumerate(WORKLOADS)}
    places = {f"{device}-{variant}": (device, i) for device in DEVICES for i, variant in enumerate(VARIANTS)}
    found = []
    for label in sorted(os.listdir(folder), key=lambda name: (order.get(name, len(order)), name)):
        place = os.path.join(folder, label)
        if (labels and label not in labels) or not os.path.isdir(place):
            continue
        for name in sorted(places.keys() & set(os.listdir(place)), key=places.get):
            result = read_result(os.path.join(place, name, RESULT))
            if result and result.get("key", {}).get("version") == VERSION:
                found.append((label, result))
    return found
