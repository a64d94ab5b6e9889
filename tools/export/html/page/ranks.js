// SPDX-License-Identifier: Apache-2.0 OR MIT
// The tab Ranks: the processes of a distributed run side by side, and their steps.

import {curves} from "./chart.js";
import {h} from "./dom.js";
import {bytes, percent, plural, time} from "./format.js";
import {table} from "./table.js";

const COLOURS = ["--forward", "--backward", "--optimizer", "--loss", "--data", "--device", "--bad", "--rss"];

/** Returns whether there are several ranks, or processes with steps. */
export function hasRanks(data) {
	return ranksOf(data).length > 1;
}

/** Processes that have a rank, or steps, in the order of their ranks. */
function ranksOf(data) {
	const withSteps = new Set(data.steps.rows.map((step) => step.process));
	return data.processes.map((process, i) => ({process, i, steps: data.steps.rows.filter((step) => step.process === i)}))
		.filter(({process, i}) => process.rank !== null || withSteps.has(i)).sort((a, b) => (a.process.rank ?? a.i) - (b.process.rank ?? b.i));
}

function summary({process, i, steps}) {
	const durations = steps.map((step) => step.duration).sort((a, b) => a - b), sum = durations.reduce((total, ns) => total + ns, 0);
	const phase = (k) => steps.reduce((total, step) => total + step.phases[k], 0);
	return {process, i, steps, median: durations.length ? durations[durations.length >> 1] : null, slowest: durations.at(-1) ?? null, sum,
		device: steps.some((step) => step.device !== null) ? steps.reduce((total, step) => total + (step.device ?? 0), 0) : null, phases: steps[0]?.phases.map((_, k) => phase(k)) ?? []};
}

function stepChart(data, ranks) {
	const shown = ranks.filter((rank) => rank.steps.length).slice(0, COLOURS.length), numbers = [...new Set(shown.flatMap((rank) => rank.steps.map((step) => step.number)))].sort((a, b) => a - b);
	if (shown.length < 2)
		return null;
	const series = shown.map((rank, k) => {
		const byNumber = new Map(rank.steps.map((step) => [step.number, step.duration]));
		return {label: `rank ${rank.process.rank ?? rank.process.pid}`, colour: COLOURS[k], values: numbers.map((number) => byNumber.get(number) ?? null)};
	});
	return h("section", {class: "panel"}, h("h2", {}, "Time of each step, by rank"),
		curves({label: "time of each step by rank", height: 240, isBytes: false, format: time, xFormat: (x) => `${x}`, times: numbers, series}));
}

export function ranksTab(data) {
	const ranks = ranksOf(data).map(summary), medians = ranks.map((rank) => rank.median).filter((ns) => ns !== null), slowest = Math.max(...medians), fastest = Math.min(...medians);
	return h("div", {},
		h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, plural(ranks.length, "rank")), medians.length > 1 && h("span", {class: "soft"},
			`the slowest one's median step is ${percent(slowest / fastest - 1)} longer than the fastest one's`)),
		table({rows: ranks, label: "ranks", sortBy: 0, filterText: (row) => `${row.process.rank} ${row.process.name}`, columns: [
			{title: "Rank", isText: true, value: (row) => row.process.rank ?? row.i, text: (value, row) => row.process.rank === null ? "–" : String(value)},
			{title: "Process", isText: true, value: (row) => `${row.process.name} (${row.process.pid})`},
			{title: "Steps", value: (row) => row.steps.length},
			{title: "Median step", value: (row) => row.median, text: time, bar: true},
			{title: "Slowest step", value: (row) => row.slowest, text: time},
			...data.steps.phases.map((name, k) => ({title: name, value: (row) => row.sum ? row.phases[k] / row.sum : null, text: (value) => value ? percent(value) : ""}))
				.filter((column) => ranks.some((row) => column.value(row))),
			{title: "Heap peak", value: (row) => row.process.peak_bytes ?? null, text: bytes},
			{title: "Leaked", value: (row) => row.process.leaked_bytes ?? null, text: bytes},
		]})), stepChart(data, ranks));
}
