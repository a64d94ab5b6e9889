#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh validate: claims of a brief, in both of its forms, by one run and by several of each side; results that are equal, different
and not known; what is no brief. The slow programs of PyTorch are in e2e/torch/cures.py.
"""

import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

RUNS = 3
# Collections of many objects in each step; CURED: of few. Its values are those of a loss that falls.
PROGRAM = """
import gc, sys, torsh
form, rate, status = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
kept = [[i] for i in range(150000)]
gc.collect()
if form == "cured":
    gc.freeze()
value = 2.0
for step in range(12):
    torsh.step(step)
    gc.collect() if form == "slow" else sum(range(2000))
    value *= rate
    torsh.scalar("loss", value)
    torsh.scalar("seconds", step * (2 if form == "slow" else 1))
print(f"loss: {value:.6f} after {step + 1} steps")
sys.exit(status)
"""
MODULES = {"PYTHONPATH": str(ROOT / "tools/python")}


def run_program(form, output, rate=0.9, status=0):
    result, _ = record([sys.executable, "-c", PROGRAM, form, str(rate), str(status)], output, env=MODULES)
    expect_equal(result.returncode, status, f"status ({result.stderr.decode()[-1000:]})")
    return result.stdout


def recorded():
    """Folders before/N and after/N with a run each, the briefs of the first, and what the program printed; made once."""
    def make(folder):
        for form, side in (("slow", "before"), ("cured", "after")):
            for number in range(RUNS):
                (folder / side / str(number)).mkdir(parents=True)
                (folder / f"{side}.txt").write_bytes(run_program(form, folder / side / str(number)))
        torsh("brief", folder / "before/0", "-o", folder / "brief.md")
        torsh("brief", folder / "before/0", "--json", "-o", folder / "brief.json")
        return str(folder)
    return pathlib.Path(once("validated", make))


def validated(*arguments, expect=0):
    found = json.loads(torsh("validate", "--value", "loss", "--json", *arguments, expect=expect))
    expect_fits("validate", found)
    return found


def claim_of(found, rule="gc_pauses"):
    return next(claim for claim in found["claims"] if claim["rule"] == rule)


@case
def a_claim_held_in_both_forms_of_the_brief_and_without_one():
    folder = recorded()
    options = (["--brief", folder / "brief.md"], ["--brief", folder / "brief.json"], [])
    found = [validated(*option, folder / "before/0", folder / "after/0") for option in options]
    for one in found:
        claim = claim_of(one)
        expect_equal((claim["verdict"], claim["cause"], claim["figure"], one["holds"]), ("held", "gone", "step_time", True), "the claim")
        expect_equal(claim["change"]["spread"], None, "single runs have no spread")
        change = claim["change"]
        assert abs(claim["seen_pct"] - 100 * (1 - change["after"] / change["before"])) < 1e-6, claim
    predicted = [claim_of(one)["predicted_pct"] for one in found]
    expect_equal(predicted[1], predicted[2], "the JSON form and the recording itself")
    assert abs(predicted[0] - predicted[1]) < 0.01, predicted
    brief = json.loads((folder / "brief.json").read_text())
    assert any(abs(one["gain_pct"] - predicted[1]) < 1e-9 for one in brief["hypotheses"] if one["rule"] == "gc_pauses"), brief


@case
def several_runs_have_a_median_and_a_spread():
    folder = recorded()
    singles = [[validated(folder / f"{side}/{number}", folder / "after/0", expect=0 if side == "before" else 1)["figures"]["step_time"]["before"]
                for number in range(RUNS)] for side in ("before", "after")]
    runs = [folder / f"{side}/{number}" for side in ("before", "after") for number in range(RUNS)]
    by_runs = validated("--brief", folder / "brief.md", *runs[:RUNS], "--", *runs[RUNS:])
    by_folders = validated("--brief", folder / "brief.md", folder / "before", folder / "after")
    expect_equal((by_folders["claims"], by_folders["figures"]), (by_runs["claims"], by_runs["figures"]), "folders stand for their runs")
    expect_equal([len(by_folders[side]) for side in ("before", "after")], [RUNS, RUNS], "runs")
    change = claim_of(by_folders)["change"]
    expect_equal([change["before"], change["after"]], [statistics.median(side) for side in singles], "medians")
    # At least as far as two runs of one side lie apart.
    assert change["spread"] >= max(max(side) - min(side) for side in singles), (change, singles)
    expect_equal(change["is_change"], abs(change["before"] - change["after"]) > change["spread"], "beyond the spread")
    text = torsh("validate", folder / "before", folder / "after", "--value", "loss", "--brief", folder / "brief.md")
    assert f"over {RUNS} and {RUNS} runs" in text and "gc_pauses: predicted at most" in text, text


@case
def a_cause_that_stays_was_not_tried_and_one_that_comes_is_no_claim():
    folder = recorded()
    same = validated(folder / "before/0", folder / "before/1", expect=1)
    expect_equal((claim_of(same)["verdict"], claim_of(same)["cause"], same["holds"]), ("not tried", "there", False), "the same program")
    reverse = validated("--brief", folder / "brief.md", folder / "after/0", folder / "before/0", expect=1)
    expect_equal(claim_of(reverse)["verdict"], "not known", "a claim that the recordings before don't show")
    assert "don't show its cause" in claim_of(reverse)["reason"], reverse


@case
def a_claim_fails_where_the_cause_is_gone_and_time_is_not():
    folder, output = recorded(), scratch()
    text = PROGRAM.replace("sum(range(2000))", "[sum(range(200)) for _ in range(100000)]")
    result, _ = record([sys.executable, "-c", text, "cured", "0.9", "0"], output, env=MODULES)
    expect_equal(result.returncode, 0, "status")
    found = validated("--brief", folder / "brief.md", folder / "before/0", output, expect=1)
    claim = claim_of(found)
    expect_equal((claim["cause"], claim["verdict"], found["holds"]), ("gone", "failed", False), "the claim")


@case
def results_are_compared_by_what_was_recorded():
    folder, other = recorded(), scratch("other")
    run_program("cured", other, rate=0.91)
    equal = validated(folder / "before", folder / "after")["results"]
    expect_equal((equal["verdict"], equal["reason"], [row["name"] for row in equal["values"]]), ("equal", None, ["loss"]), "results")
    expect_equal((equal["status_before"], equal["status_after"]), (0, 0), "statuses")
    loss = 2 * 0.9 ** 12
    assert abs(equal["values"][0]["before"]["last"] - loss) < 1e-9, equal
    different = validated(folder / "before/0", other, expect=1)
    row = different["results"]["values"][0]
    # The last value differs most: 0.91 ** 12 to 0.9 ** 12.
    assert abs(row["difference"] - (1 - (0.9 / 0.91) ** 12)) < 1e-6, row
    expect_equal((different["results"]["verdict"], different["holds"], claim_of(different)["verdict"]), ("different", False, "held"), "results")
    expect_equal(validated("--tolerance", "0.2", folder / "before/0", other)["results"]["verdict"], "equal", "with a larger tolerance")
    # Without --value those that measure time count, too.
    whole = json.loads(torsh("validate", folder / "before", folder / "after", "--json", expect=1))
    expect_equal({row["name"]: row["verdict"] for row in whole["results"]["values"]}, {"loss": "equal", "seconds": "different"}, "all values")


@case
def results_are_compared_by_what_was_printed():
    folder, texts = recorded(), scratch("texts")
    words = ("--value", "none", "--printed-before", folder / "before.txt", "--printed-after")
    equal = json.loads(torsh("validate", folder / "before/0", folder / "after/0", *words, folder / "after.txt", "--json"))["results"]
    expect_equal((equal["verdict"], equal["printed"]["numbers"], equal["printed"]["difference"]), ("equal", 2, 0), "numbers")
    for text, line, verdict in (("loss:  0.564860   after 12 steps", None, "equal"), ("loss: 0.7 after 12 steps", 1, "different"),
                                ("lost: 0.564860 after 12 steps", 1, "different"), ("", 1, "different"),
                                ("loss: 0.564860 after 12 steps\nmore", 2, "different"), ("loss: 0.564860", 1, "different")):
        other = texts / "other.txt"
        other.write_text(text)
        found = json.loads(torsh("validate", folder / "before/0", folder / "after/0", *words, other, "--json",
                                 expect=0 if verdict == "equal" else 1))["results"]
        expect_equal(found["verdict"], verdict, f"results of {text!r}")
        assert (found["printed"]["first_different_line"] is None) == (line is None), (text, found)


@case
def results_are_not_known_without_values_and_files():
    folder = recorded()
    found = json.loads(torsh("validate", folder / "before", folder / "after", "--value", "none", "--json"))["results"]
    expect_equal(found["verdict"], "not known", "results")
    assert "recorded no values" in found["reason"], found
    assert "Results: not known; the program recorded no values" in torsh("validate", folder / "before", folder / "after", "--value", "none")


@case
def another_exit_status_is_another_result():
    folder, other = recorded(), scratch("other")
    run_program("cured", other, status=3)
    results = validated(folder / "before/0", other, expect=1)["results"]
    expect_equal((results["verdict"], results["status_before"], results["status_after"]), ("different", 0, 3), "results")


@case
def leaks_are_claims():
    before, after = scratch("before"), scratch("after")
    record([PROGRAMS / "entries"], before)
    record([sys.executable, "-c", "pass"], after)
    found = json.loads(torsh("validate", before, after, "--json"))
    claim = claim_of(found, "leak")
    leaked = json.loads(torsh("leaks", before, "--json"))["leaked_bytes"]
    expect_equal((claim["verdict"], claim["figure"], claim["change"]["before"]), ("held", "leaked", leaked), "the claim")


@case
def runs_of_different_numbers_of_steps_have_to_be_chosen():
    folder, other = recorded(), scratch("other")
    result, _ = record([sys.executable, "-c", PROGRAM.replace("range(12)", "range(6)"), "cured", "0.9", "0"], other, env=MODULES)
    expect_equal(result.returncode, 0, "status")
    undecided = claim_of(validated(folder / "before/0", other, expect=1))
    expect_equal(undecided["verdict"], "not known", "without --per")
    assert "--per" in undecided["reason"], undecided
    found = {per: validated("--per", per, folder / "before/0", other, expect=1) for per in ("step", "run")}
    expect_equal([claim_of(one)["figure"] for one in found.values()], ["step_time", "steps_time"], "what was compared")
    expect_equal([claim_of(one)["verdict"] for one in found.values()], ["held", "held"], "the claims")


@case
def what_is_no_brief_is_refused():
    folder, briefs = recorded(), scratch("briefs")
    claims = '<!-- torsh-claims [{"rule":"gc_pauses","figure":"step_time","gain_pct":50}] -->'
    faults = {"empty": "", "text": "# no brief\n", "torn": "x\n" + claims[:40], "object": "{}", "number": '{"hypotheses": 1}',
              "nameless": '{"hypotheses": [{"gain_pct": 3}]}', "deep": '{"hypotheses": ' + "[" * 1000, "nul": "x\n\0" + claims,
              "many": '{"hypotheses": [' + ",".join(['{"rule":"x"}'] * 300) + "]}"}
    for name, text in faults.items():
        file = briefs / f"{name}.md"
        file.write_text(text)
        torsh("validate", folder / "before/0", folder / "after/0", "--brief", file, expect=2)
    torsh("validate", folder / "before/0", folder / "after/0", "--brief", briefs / "none.md", expect=2)
    torsh("validate", folder / "before/0", folder / "after/0", "--brief", briefs, expect=2)
    torsh("validate", folder / "before/0", briefs / "none", expect=2)
    torsh("validate", folder / "before/0", expect=2)
    torsh("validate", folder / "before/0", folder / "after/0", "--tolerance", "x", expect=2)
    torsh("validate", folder / "before/0", folder / "after/0", "--printed-before", briefs / "x", expect=2)
    # Of a rule of another version nothing is known; what a program prints into a brief is no claim.
    strange = briefs / "strange.md"
    strange.write_text(f"x\n{claims.replace('gc_pauses', 'none_such')}\n")
    found = validated("--brief", strange, folder / "before/0", folder / "after/0", expect=1)
    expect_equal([claim["verdict"] for claim in found["claims"]], ["not known"], "a claim of an unknown rule")


main()
