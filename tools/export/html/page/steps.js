// SPDX-License-Identifier: Apache-2.0 OR MIT
// Steps: their phases, their durations in order and as a histogram, and the table of all.

import {bars, curves} from "./chart.js";
import {h} from "./dom.js";
import {bytes, percent, plural, si, time} from "./format.js";
import {wholeButton} from "./served/served.js";
import {table} from "./table.js";

const CLASSES = 24;

function strip(rows, total) {
	return h("div", {class: "strip", role: "img", "aria-label": "time by phase"}, rows.map(([name, ns]) =>
		h("span", {style: {flexGrow: String(ns / total), background: `var(--${name})`}, title: `${name} ${time(ns)}`})));
}

/** Time by phase, over all steps; null: no phases are known. */
export function phaseStrip(data) {
	const rows = data.phases.list.filter(([, ns]) => ns), total = rows.reduce((sum, [, ns]) => sum + ns, 0);
	if (!total)
		return null;
	return h("section", {class: "panel wide", id: "phases"}, h("div", {class: "head"}, h("h2", {}, "Time by phase"), h("span", {class: "soft"}, data.phases.words)),
		strip(rows, total), h("div", {class: "legend"}, rows.map(([name, ns]) => h("span", {}, h("i", {style: {background: `var(--${name})`}}),
			`${name} ${percent(ns / total)}, ${time(ns)}`))));
}

function quantile(sorted, share) {
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** A histogram of durations with bins of equal width up to the 99th percentile, and the rest. */
function distribution(durations) {
	const most = quantile(durations, 0.99), least = durations[0], width = Math.max(1, (most - least) / CLASSES), sums = [];
	for (const ns of durations) {
		const i = Math.min(CLASSES, Math.floor((ns - least) / width));
		sums[i] = (sums[i] ?? 0) + 1;
	}
	return bars(Array.from({length: sums.length}, (_, i) => ({name: `${i === CLASSES ? "more than" : ""} ${time(least + i * width)}`, value: sums[i] ?? 0,
		text: String(sums[i] ?? 0)})), "--backward");
}

function stepTable(data, median) {
	const {rows} = data.steps, hasMany = new Set(rows.map((step) => step.process)).size > 1;
	const phases = data.steps.phases.map((name, i) => ({title: name, isMinor: true, value: (step) => step.phases[i], text: (ns) => ns ? time(ns) : ""}))
		.filter((column) => rows.some((step) => column.value(step)));
	return table({rows, label: "steps", sortBy: 1, first: 12, filterText: (step) => String(step.number), note: data.steps.omitted ? [`${plural(data.steps.omitted, "more step")} not on this page `, wholeButton(data, "time", "Show all")] : null, columns: [
		{title: "Step", value: (step) => step.number},
		{title: "Time", value: (step) => step.duration, text: time, bar: true},
		{title: "× median", value: (step) => step.duration / median, text: (value) => value.toFixed(2)},
		...phases,
		{title: "other", isMinor: true, value: (step) => step.other, text: (ns) => ns ? time(ns) : ""},
		...rows.some((step) => step.device) ? [{title: "Device", value: (step) => step.device, text: time}] : [],
		...rows.some((step) => step.peak) ? [{title: "Tensors' peak", isMinor: true, value: (step) => step.peak, text: bytes}] : [],
		...rows.some((step) => step.flops) ? [{title: "FLOPs", isMinor: true, value: (step) => step.flops, text: si}] : [],
		...hasMany ? [{title: "Process", value: (step) => data.processes[step.process].pid}] : [],
	]});
}

/** The panels of the steps. */
export function stepPanels(data) {
	const {steps} = data;
	if (!steps.n)
		return h("section", {class: "panel", id: "steps"}, h("h2", {}, "Steps"), h("p", {class: "soft"}, `No steps are known: ${steps.rule}.`));
	const durations = steps.rows.map((step) => step.duration).sort((a, b) => a - b), shown = steps.rows.filter((step) => step.process === steps.rows[0].process);
	const slowest = durations[durations.length - 1];
	return h("div", {class: "grid", id: "steps"},
		h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, "Steps"), h("span", {class: "soft"},
			`${plural(steps.n, "step")}, median ${time(steps.median_ns)}, 99 % within ${time(quantile(durations, 0.99))}, slowest ${time(slowest)}: ${steps.rule}`)),
		curves({label: "time of each step", height: 330, isBytes: false, format: time, xFormat: (x) => `${x}`, times: shown.map((step) => step.number),
			series: [{label: "time", values: shown.map((step) => step.duration), colour: "--backward", fill: true, paths: uPlot.paths.stepped?.({align: 1})}]})),
		h("section", {class: "panel"}, h("h2", {}, "How long they took"), distribution(durations)),
		h("section", {class: "panel wide"}, stepTable(data, steps.median_ns)));
}
