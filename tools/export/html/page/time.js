// SPDX-License-Identifier: Apache-2.0 OR MIT
// The tab Time: phases, steps, operators, modules and kernels.

import {h} from "./dom.js";
import {bytes, count, percent, plural, si, time} from "./format.js";
import {shortFunction} from "./frames.js";
import {phaseStrip, stepPanels} from "./steps.js";
import {wholeButton} from "./served/served.js";
import {table} from "./table.js";
import {timelinePanel} from "./timeline.js";

/** Returns whether the document has data for the tab. */
export function hasTime(data) {
	return data.operators.rows.length + data.modules.rows.length + data.kernels.rows.length + data.steps.n > 0;
}

function panel(id, title, words, ...content) {
	return h("section", {class: "panel", id}, h("div", {class: "head"}, h("h2", {}, title), h("span", {class: "soft"}, words)), content);
}

function omitted(data, list, what) {
	return list.omitted ? [`${plural(list.omitted, `smaller ${what}`)} not on this page `, wholeButton(data, "time", "Show all")] : null;
}

/** Returns the columns, or none if no row has a value. */
function where(rows, ...columns) {
	return columns.filter((column) => rows.some((row) => column.value(row)));
}

function name(row, text = row.name) {
	return h("bdi", {class: "code", title: row.name ?? ""}, text ?? "(in no module)");
}

function operators(data) {
	const {rows, self_cpu_ns: all, self_device_ns: device} = data.operators;
	if (!rows.length)
		return null;
	return panel("operators", "Operators", `${plural(data.operators.calls, "call")}, ${time(all)} on the host${device ? `, ${time(device)} on devices` : ""}`,
		table({rows, label: "operators", first: 25, note: omitted(data, data.operators, "operator"), filterText: (row) => row.name ?? "", columns: [
			{title: "Own time", value: (row) => row.own, text: time, bar: true, help: "on the host, without the operators inside"},
			{title: "Share", value: (row) => row.own / all, text: percent},
			{title: "Time", isMinor: true, value: (row) => row.cpu, text: time, help: "on the host, with the operators inside"},
			{title: "Calls", isMinor: true, value: (row) => row.calls, text: count},
			{title: "Median", isMinor: true, value: (row) => row.half, text: time},
			{title: "99 %", isMinor: true, value: (row) => row.p99, text: time},
			{title: "Longest", isMinor: true, value: (row) => row.most, text: time},
			...where(rows, {title: "Own device time", value: (row) => row.ownDevice, text: time, bar: true},
				{title: "FLOPs", isMinor: true, value: (row) => row.flops, text: (value) => value ? si(value) : ""},
				{title: "Allocated", isMinor: true, value: (row) => row.allocated, text: (value) => value ? bytes(value) : ""}),
			{title: "Operator", isText: true, value: (row) => row.name ?? "", cell: (row) => name(row)},
		]}));
}

/** Returns how many enclosing modules are listed: "encoder.layer.0:Block" is below "encoder.layer:ModuleList". */
function depthOf(row, names) {
	const path = (row.name ?? "").split(":")[0].split(".");
	let depth = 0;
	for (let n = 1; n < path.length; n++)
		depth += names.has(path.slice(0, n).join(".")) ? 1 : 0;
	return depth;
}

/** Modules in the order of their paths, with numbers compared as numbers: a tree. */
function modules(data) {
	const {rows} = data.modules, names = new Set(rows.map((row) => (row.name ?? "").split(":")[0]));
	if (!rows.some((row) => row.name))
		return null;
	const label = (row) => {
		const [path, type] = (row.name ?? ":").split(":"), depth = depthOf(row, names);
		return h("span", {class: "tree-name", style: {paddingLeft: `${depth * 16}px`}, title: row.name ?? ""},
			row.name ? [h("bdi", {class: "code"}, depth ? path.split(".").pop() : path), path !== type && h("bdi", {class: "soft"}, ` ${type}`)] : "(in no module)");
	};
	const byPath = new Map([...rows].sort((a, b) => (a.name ?? "~").localeCompare(b.name ?? "~", "en", {numeric: true})).map((row, i) => [row, i]));
	return panel("modules", "Modules", "forward, backward, FLOPs and device with the modules inside", table({rows, label: "modules", sortBy: 0, first: 40, note: omitted(data, data.modules, "module"), filterText: (row) => row.name ?? "", columns: [
		{title: "Module", isText: true, value: (row) => byPath.get(row), cell: label},
		{title: "Forward", value: (row) => row.forward, text: time, bar: true},
		{title: "Own", isMinor: true, value: (row) => row.own, text: time, help: "without the modules inside"},
		{title: "Backward", value: (row) => row.backward, text: time, bar: true},
		{title: "Calls", isMinor: true, value: (row) => row.calls, text: count},
		...where(rows, {title: "Device", value: (row) => row.device, text: time, bar: true},
			{title: "FLOPs", isMinor: true, value: (row) => row.flops, text: (value) => value ? si(value) : ""},
			{title: "Allocated", isMinor: true, value: (row) => row.allocated, text: (value) => value ? bytes(value) : "", help: "without the modules inside"}),
	]}));
}

function kernels(data) {
	const {rows, total_ns: total} = data.kernels;
	if (!rows.length)
		return null;
	return panel("kernels", "Kernels and copies", `${time(total)}, ${percent(total ? data.kernels.attributed_ns / total : 0)} of it with a known operator`,
		table({rows, label: "kernels", first: 25, note: omitted(data, data.kernels, "kernel"), filterText: (row) => `${row.name} ${row.operator ?? ""} ${row.what}`, columns: [
			{title: "Time", value: (row) => row.total, text: time, bar: true},
			{title: "Share", value: (row) => row.total / total, text: percent},
			{title: "Calls", isMinor: true, value: (row) => row.calls, text: count},
			{title: "Average", isMinor: true, value: (row) => row.timed ? row.total / row.timed : null, text: time},
			{title: "Longest", isMinor: true, value: (row) => row.most, text: time},
			...where(rows, {title: "Bytes", isMinor: true, value: (row) => row.bytes, text: (value) => value ? bytes(value) : ""}),
			{title: "Operator", isText: true, value: (row) => row.operator ?? "", cell: (row) => row.operator ? h("span", {}, h("bdi", {class: "code"}, row.operator), h("span", {class: "soft"}, ` ${row.confidence}`)) : ""},
			{title: "Name", isText: true, value: (row) => row.name, cell: (row) => name(row, `${row.what === "kernel" ? "" : `${row.what} `}${shortFunction(row.name)}`)},
		]}));
}

export function timeTab(data, tip, parameters) {
	return h("div", {}, phaseStrip(data), stepPanels(data), timelinePanel(data, tip, parameters), operators(data), modules(data), kernels(data));
}
