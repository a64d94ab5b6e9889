# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares the variants of each workload with the plain one: time, peak memory, FLOPs and operators of a step."""

FIGURES = ("step_ns", "device_ns", "peak_bytes", "flops", "operators")


def _difference(seen, plain):
    """The largest difference of two outputs, by the largest number of the plain one; None and why."""
    ours, theirs = (one and one.get("output") for one in (seen, plain))
    if seen["is_simulated"]:
        return None, "kernels of a simulated device compute nothing"
    if not ours or not theirs:
        return None, "there is no tensor among the results, or no plain run"
    if ours["shape"] != theirs["shape"]:
        return None, f"the shapes differ: {ours['shape']} and {theirs['shape']}"
    scale = max(map(abs, theirs["sample"]), default=0) or 1
    return max((abs(a - b) for a, b in zip(ours["sample"], theirs["sample"])), default=0) / scale, None


def _ratios(measured, plain):
    if not measured or not plain:
        return {name: None for name in FIGURES}
    return {name: measured[name] / plain[name] if measured[name] is not None and plain[name] else None for name in FIGURES}


def rows_of(results):
    """A row for each result: [{workload, device, variant, ...}]."""
    plain = {(label, result["key"]["device"]): result for label, result in results
             if result["key"]["variant"] == "eager" and result["status"] == "ok"}
    rows = []
    for label, result in results:
        key, seen, measured = result["key"], result["seen"], result["measured"]
        of = plain.get((label, key["device"]))
        row = {"workload": label, "device": key["device"], "variant": key["variant"], "status": result["status"],
               "reason": result["reason"], "device_name": seen and seen["device_name"],
               "is_simulated": bool(seen and seen["is_simulated"]), "seconds": result["seconds"],
               "model_flops": seen and seen["model_flops"], "difference": None, "difference_reason": "it failed"}
        row.update(measured if measured and result["status"] == "ok" else
                   {name: None for name in (*FIGURES, "flops_all", "steps")})
        row["ratios"] = _ratios(measured, of and of["measured"]) if result["status"] == "ok" else _ratios(None, None)
        if result["status"] == "ok":
            row["difference"], row["difference_reason"] = _difference(seen, of and of["seen"])
        rows.append(row)
    return rows


def _scaled(value, units, base):
    for unit in units:
        if abs(value) < base or unit == units[-1]:
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
        value /= base
    return ""


def _time(ns):
    return _scaled(ns, ("ns", "µs", "ms", "s"), 1000)


def _bytes(n):
    return _scaled(n, ("B", "KiB", "MiB", "GiB", "TiB"), 1024)


def _flops(n):
    return _scaled(n, ("", "k", "M", "G", "T"), 1000).strip()


def _cell(row, name, shown):
    """A figure, with its ratio to the plain one."""
    if row[name] is None:
        return "-"
    ratio = row["ratios"][name]
    return shown(row[name]) + ("" if ratio is None or row["variant"] == "eager" else f" ×{ratio:.2f}")


def table_of(rows):
    """The rows as text."""
    heads = ("workload", "device", "variant", "step", "on device", "peak", "FLOPs", "operators", "differs by")
    lines, failed, before = [heads], [], None
    for row in rows:
        place = row["workload"], row["device"]
        device = row["device"] + (" (simulated)" if row["is_simulated"] else "")
        first = ("", "") if place == before else (row["workload"], device)
        before = place
        if row["status"] != "ok":
            failed.append(row)
            lines.append((*first, row["variant"], "failed", "", "", "", "", ""))
            continue
        lines.append((*first, row["variant"], _cell(row, "step_ns", _time),
                      _cell(row, "device_ns", _time) if row["device"] != "cpu" else "-", _cell(row, "peak_bytes", _bytes),
                      _cell(row, "flops", _flops), _cell(row, "operators", str),
                      "-" if row["difference"] is None or row["variant"] == "eager" else f"{row['difference']:.1e}"))
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    text = ["  ".join(cell.ljust(width) if i < 3 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))).rstrip()
            for line in lines]
    return "\n".join(text + _notes(rows) + [f"\n{name_of(row)} failed: {row['reason']}" for row in failed])


def name_of(row):
    return f"{row['workload']} {row['variant']} on {row['device']}"


def _notes(rows):
    notes = []
    if any(row["is_simulated"] for row in rows):
        notes.append("Times of a simulated device are made up: only its bytes, FLOPs, operators and numbers of kernels are true.")
    lacking = [row for row in rows if row["flops"] is not None and row["model_flops"] and row["flops"] < row["model_flops"]]
    if lacking:
        names = ", ".join(sorted({f"{row['workload']} {row['variant']}" for row in lacking}))
        notes.append(f"Fewer FLOPs were recorded than the model has: {names}. Kernels that torch.compile made, and what a CUDA graph replays, have no operator to count.")
    return ["", *notes] if notes else []
