// SPDX-License-Identifier: Apache-2.0 OR MIT
// The tab Devices: the devices, their utilisation, and their memory.

import {curves} from "./chart.js";
import {h} from "./dom.js";
import {bytes, count, percent, plural, time, visible} from "./format.js";
import {table} from "./table.js";

const MODES = ["Kernels were not recorded", "Devices were timed by pairs of CUDA events", "Devices were recorded by CUPTI"];

/** Returns whether the document has data about devices. */
export function hasDevices(data) {
	return data.devices.length + data.device_memory.length + data.device_modes.length + data.kernels.rows.length > 0;
}

/** Rows about how busy a device was. */
function workRows(work) {
	const of = work.is_of_steps ? "the steps" : "the time between its first work and its last";
	return [["At work", `${time(work.busy_ns)}, ${percent(work.busy_ns / Math.max(work.scope_ns, 1))} of ${of}`],
		["Longest pause", work.longest_gap_ns ? `${time(work.longest_gap_ns)}, from ${time(work.gap_at_ns)} on` : null],
		["Collectives", work.communication_ns ? time(work.communication_ns) : null]];
}

/** The share of time in which a device was at work, over the run. */
function workCurve({from_ns: from, interval_ns: interval, intervals}) {
	return curves({label: "share of time at work", height: 130, isBytes: false, format: percent,
		times: intervals.map((busy, i) => (from + (i + 0.5) * interval) / 1e9),
		series: [{label: "at work", values: intervals.map((busy) => busy / interval), colour: "--device", fill: true}]});
}

function card(data, device) {
	return h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, h("bdi", {}, visible(device.name ?? `device ${device.device}`))),
		h("span", {class: "soft"}, `device ${device.device} of ${data.processes[device.process].name} (${data.processes[device.process].pid})`)),
	h("dl", {class: "list"}, [
		...device.work ? workRows(device.work) : [], ["Memory", bytes(device.memory_bytes)], ["Bandwidth", device.bandwidth ? `${bytes(device.bandwidth)} a second` : null],
		["Multiprocessors", `${count(device.multiprocessors)}, compute capability ${device.capability}`], ["Clock", device.clock_khz ? `${(device.clock_khz / 1e6).toFixed(2)} GHz` : null],
		["UUID", device.uuid],
	].filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, h("bdi", {}, value))])), device.work && workCurve(device.work));
}

function memory(data) {
	const rows = data.device_memory.map(([process, place, peak, at, end, tensors, allocs]) => ({process, place, peak, at, end, tensors, allocs}));
	return rows.length > 0 && h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, "Memory"), h("span", {class: "soft"}, "allocated from CUDA")),
		table({rows, label: "memory of devices", filterText: (row) => row.place, columns: [
			{title: "Peak", value: (row) => row.peak, text: bytes, bar: true},
			{title: "At", value: (row) => row.at, text: time},
			{title: "Tensors then", value: (row) => row.tensors, text: bytes},
			{title: "At the end", value: (row) => row.end, text: bytes},
			{title: "Allocations", value: (row) => row.allocs, text: count},
			{title: "Place", isText: true, value: (row) => row.place},
			{title: "Process", isText: true, value: (row) => `${data.processes[row.process].name} (${data.processes[row.process].pid})`},
		]}));
}

/** Whose the memory was when a process had most of a device. */
function owners(data) {
	const rows = data.device_owners.map(([process, place, kind, held, all]) => ({process, place, kind, held, all}));
	return rows.length > 0 && h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, "Owners of the memory at the peak"),
		h("span", {class: "soft"}, "up to what the driver counted as used, where it was queried then")),
	table({rows, label: "owners of the memory of devices", filterText: (row) => `${row.place} ${row.kind}`, columns: [
		{title: "Held", value: (row) => row.held, text: (held) => held < 0 ? `-${bytes(-held)}` : bytes(held), bar: true},
		{title: "Share", value: (row) => row.held / Math.max(row.all, 1), text: percent},
		{title: "Owner", isText: true, value: (row) => row.kind},
		{title: "Place", isText: true, value: (row) => row.place},
		{title: "Process", isText: true, value: (row) => `${data.processes[row.process].name} (${data.processes[row.process].pid})`},
	]}));
}

export function devicesTab(data) {
	return h("div", {}, data.devices.length > 0 ? h("div", {class: "grid"}, data.devices.map((device) => card(data, device)))
		: h("section", {class: "panel"}, h("h2", {}, "Devices"), h("p", {}, data.kernels.rows.length ? "They reported nothing of themselves." : "None was seen at work.")),
	memory(data),
	owners(data),
	data.device_modes.length > 0 && h("section", {class: "panel"}, h("h2", {}, "How they were recorded"), h("ul", {}, data.device_modes.map(({process, mode, reason}) =>
		h("li", {}, `${data.processes[process].name} (${data.processes[process].pid}): ${MODES[mode] ?? "unknown"}${reason ? `: ${reason}` : ""}.`)))),
	data.kernels.rows.length > 0 && h("p", {}, h("a", {href: "#time/kernels"}, plural(data.kernels.rows.length, "kernel and copy", "kernels and copies"))));
}
