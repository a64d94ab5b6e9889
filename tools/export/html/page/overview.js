// SPDX-License-Identifier: Apache-2.0 OR MIT
// The tab Overview: what ran, how it ended, the worst findings, memory and time on one screen.

import {h} from "./dom.js";
import {findingList, worst} from "./findings.js";
import {bytes, count, middle, plural, time, visible} from "./format.js";
import {memoryChart} from "./memory.js";
import {phaseStrip} from "./steps.js";

const HELPER_SHARE = 0.01, FOLDED_FROM = 4;

/** "python train.py --steps 400": the command without the interpreter's path. */
export function commandOf(process) {
	const [first, ...rest] = process.arguments.length ? process.arguments : [process.program ?? "?"];
	return visible([first.split("/").pop(), ...rest].join(" "));
}

/** The process that the page describes: the one with most allocations. */
export function mainProcess(data) {
	return data.processes.reduce((most, process) => (process.allocs ?? 0) > (most.allocs ?? 0) ? process : most);
}

/** What is missing, in red; null: nothing. */
export function lossAlert(data) {
	const {recording, events} = data;
	if (!recording.loss && !recording.is_damaged && !events.losses.length)
		return null;
	return h("div", {class: "alert", role: "alert"}, h("b", {}, visible(recording.loss ?? "The recording lacks something.")),
		recording.is_damaged && " A part of the file could not be read.",
		events.losses.length > 0 && h("ul", {}, events.losses.map((text) => h("li", {}, visible(text)))));
}

function fact(name, value, more, isBad) {
	return h("div", {class: "fact"}, h("div", {class: "name"}, name), h("div", {class: `value${isBad ? " bad" : ""}`}, value), more && h("div", {class: "more"}, more));
}

function factBoxes(data) {
	const {peak, leaks} = data, rss = Math.max(...data.processes.map((process) => process.rss_peak_bytes ?? 0));
	const steps = data.steps, failed = data.processes.filter((process) => process.is_bad_end).length;
	const duration = Math.max(...data.processes.map((process) => process.end_ns ?? data.recording.end_ns ?? 0)) - Math.min(...data.processes.map((process) => process.start_ns));
	return h("div", {class: "facts"},
		fact("Run", time(duration), data.processes.length === 1 ? data.processes[0].end : `${plural(data.processes.length, "process", "processes")}${failed ? `, ${failed} failed` : ""}`,
			data.processes.length === 1 && data.processes[0].is_bad_end),
		leaks.bytes !== null && fact("Leaked", bytes(leaks.bytes), leaks.bytes ? `in ${plural(leaks.blocks, "block")}` : "nothing", leaks.bytes > 1 << 20),
		peak.bytes !== null && fact("Heap peak", bytes(peak.bytes), `at ${time(peak.at_ns)}, ${plural(peak.blocks, "block")}`),
		rss > 0 && fact("Resident peak", bytes(rss), "heap, caches of allocators, libraries, files"),
		steps?.n > 0 && fact("Steps", count(steps.n), `median ${time(steps.median_ns)}`),
		data.device_memory.slice(0, 2).map(([process, place, peak, at]) => fact(`Peak of ${place}`, bytes(peak), `at ${time(at)}, ${data.processes[process].pid}`)));
}

function endBadge(process) {
	if (process.not_followed)
		return h("span", {class: "badge", title: process.not_followed}, "not followed");
	return h("span", {class: `badge ${process.is_bad_end ? "bad" : process.end === "exit 0" ? "good" : ""}`}, process.end);
}

function processLine(data, process) {
	const facts = [process.end_ns !== null && process.end_ns !== undefined && time(process.end_ns - process.start_ns), process.peak_bytes && `peak ${bytes(process.peak_bytes)}`,
		process.leaked_bytes && `leaked ${bytes(process.leaked_bytes)}`, process.rank !== null && (process.world_size ? `rank ${process.rank} of ${process.world_size}` : `rank ${process.rank}`)].filter(Boolean);
	return h("div", {class: "process"}, endBadge(process), h("bdi", {class: "command", title: commandOf(process)}, middle(commandOf(process), 240)),
		h("span", {class: "soft nowrap"}, process.pid), h("span", {class: "soft"}, facts.join(" · ")),
		(process.not_followed || process.heap_problem) && h("span", {class: "soft"}, visible(process.not_followed || process.heap_problem)));
}

/** The tree of processes; an exec takes the place of the image that it replaced. */
function childrenOf(data) {
	const children = new Map(), roots = [], byNumber = new Map(data.processes.filter((process) => process.number !== null).map((process) => [process.number, process]));
	for (const process of data.processes) {
		const parent = byNumber.get(process.executed_from) ?? byNumber.get(process.forked_from)
			?? data.processes.find((other) => other !== process && other.pid === process.parent_pid && other.start_ns <= process.start_ns);
		if (parent)
			children.set(parent, [...children.get(parent) ?? [], process]);
		else
			roots.push(process);
	}
	return {children, roots};
}

function processTree(data, list, children, seen = new Set()) {
	const largest = Math.max(...data.processes.map((process) => process.alloc_bytes ?? 0), 1);
	const isHelper = (process) => !children.get(process) && !process.is_bad_end && (process.alloc_bytes ?? 0) < largest * HELPER_SHARE;
	const helpers = list.filter(isHelper), isFolded = helpers.length >= FOLDED_FROM, shown = isFolded ? list.filter((process) => !isHelper(process)) : list;
	const item = (process) => {
		if (seen.has(process))
			return null;
		seen.add(process);
		return h("li", {}, processLine(data, process), children.get(process) && processTree(data, children.get(process), children, seen));
	};
	return h("ul", {class: "processes"}, shown.map(item), isFolded && h("li", {}, h("details", {},
		h("summary", {}, `${plural(helpers.length, "helper")}: ${[...new Set(helpers.map((process) => process.name))].slice(0, 6).join(", ")}`),
		h("ul", {class: "processes"}, helpers.map(item)))));
}

export function overviewTab(data) {
	const {children, roots} = childrenOf(data), findings = worst(data);
	return h("div", {}, lossAlert(data), factBoxes(data),
		h("div", {class: "grid"},
			h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, "Worth a look"), findings.length > 3 && h("a", {href: "#findings"}, `all ${findings.length}`)),
				findings.length ? findingList(findings.slice(0, 3)) : h("p", {}, "Nothing stands out.")),
			h("section", {class: "panel", id: "processes"}, h("h2", {}, data.processes.length > 1 ? "Processes" : "Process"), processTree(data, roots, children)),
			h("section", {class: "panel wide"}, h("div", {class: "head"}, h("h2", {}, "Memory over time"), h("a", {href: "#memory"}, "who held it")), memoryChart(data, {height: 240})),
			phaseStrip(data)));
}
