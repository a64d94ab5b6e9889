// SPDX-License-Identifier: Apache-2.0 OR MIT
// The tab Memory: curves, the flame graph of a moment, what holds memory, leaks, growth, sizes.

import {bars, curves} from "./chart.js";
import {choice, h, replace} from "./dom.js";
import {bytes, count, percent, plural, signedBytes, time} from "./format.js";
import {Icicle} from "./icicle.js";
import {Moments, momentText} from "./moments.js";
import {risePanel} from "./memory/rise.js";
import {wholeButton} from "./served/served.js";
import {blame, charge, chargedTable, stackList} from "./sites.js";
import {FILTERS, graphOf, inverted, matcher} from "./tree.js";

const WEIGHTS = [
	["peak", "At the peak", "held when the heap was largest"],
	["leaked", "Leaked", "not freed when the process ended, without what libraries keep on purpose"],
	["live", "At the end", "not freed when the process ended, all of it"],
	["moment", "A moment", "held at the moment that is chosen above"],
	["change", "Peak − end", "at the peak less at the end: what was given back"],
	["allocated", "Ever allocated", "all blocks that were ever allocated"],
	["temporary", "Temporary", "freed by their own thread before it allocated another"],
	["mapped", "Address space", "mapped when most was: arenas of CPython, stacks, files"],
];
const FRAMES = [
	["merged", "Merged", "Python in place of the interpreter's own frames"],
	["python", "Python lines", "lines of Python only"],
	["native", "Native", "native frames only"],
	["scopes", "Module, operator", "by nn.Module, operator and line"],
];
const LEGEND = [["own", "own code"], ["library", "Python libraries"], ["native", "native libraries"], ["runtime", "C library, interpreter"],
	["imports", "import system"]];

/** The own values of the graph: ownOf(tree, what)(i) is the weight of stacks that end at node i. */
function ownOf(tree, what) {
	const {weights} = tree, none = () => 0;
	if (what !== "change")
		return weights[what] ? (i) => weights[what].bytes[i] : none;
	const peak = weights.peak?.bytes, live = weights.live?.bytes;
	return (i) => (peak?.[i] ?? 0) - (live?.[i] ?? 0);
}

/** Caches the graphs that were shown, because inverting one takes a while. */
class Graphs {
	constructor(data) {
		Object.assign(this, {data, made: new Map()});
	}

	tree(frames) {
		const {trees} = this.data;
		return trees[frames === "python" ? "merged" : frames] ?? trees.merged;
	}

	/** Drop the graphs of a moment after another one was chosen. */
	forgetMoment() {
		for (const key of [...this.made.keys()].filter((one) => one.startsWith("moment ")))
			this.made.delete(key);
	}

	get({what, frames, isInverted, withImports}) {
		const key = `${what} ${frames} ${isInverted} ${withImports}`;
		if (!this.made.has(key)) {
			const keep = frames === "python" ? FILTERS.python : FILTERS.all;
			const test = withImports ? keep : (frame) => keep(frame) && FILTERS.noImports(frame);
			const graph = graphOf(this.tree(frames), ownOf(this.tree(frames), what), test);
			this.made.set(key, isInverted ? inverted(graph) : graph);
		}
		return this.made.get(key);
	}
}

/** Returns whether the graph shows changes, which may be negative. */
function isDifference({what, moment}) {
	return what === "change" || (what === "moment" && moment?.since !== null);
}

function describeNode(state) {
	const isChange = isDifference(state), number = isChange ? signedBytes : bytes;
	return (graph, node) => {
		const frame = graph.frames[graph.frame[node]], total = graph.total[node];
		const share = isChange ? "" : `, ${percent(total / graph.total[0])} of all`;
		return [frame?.fullName ?? "all", ...frame?.fullPlace ? [frame.fullPlace] : [],
			`${number(total)}${share}`, ...graph.own[node] ? [`${number(graph.own[node])} end here`] : []];
	};
}

/** The panel of the flame graph. state: {what, frames, isInverted, withImports}. */
function flamePanel(data, tip, state, onwhat) {
	const graphs = new Graphs(data), found = h("span", {class: "note", role: "status"}), selection = h("div", {class: "selection"});
	let describe = describeNode(state);
	const icicle = new Icicle({tip, describe: (graph, node) => describe(graph, node), onselect: (graph, node) =>
		replace(selection, node ? describe(graph, node).join("  ·  ") : "Click a frame to zoom, arrows and Enter with the keyboard, Escape for all.")});
	const find = () => {
		const result = icicle.find(search.value ? matcher(search.value) : null);
		replace(found, result && `${plural(result.n, "frame")}, ${isDifference(state) ? signedBytes(result.total) : `${bytes(result.total)}, ${percent(result.total / icicle.graph.total[0])}`}`);
	};
	const search = h("input", {type: "search", class: "filter", placeholder: "Search, or /expression/", "aria-label": "Search the flame graph",
		id: "flame-search", value: state.search, oninput: find});
	const show = () => {
		describe = describeNode(state);
		icicle.rootName = state.what === "moment" && isDifference(state) ? "what changed between the moments that are chosen above"
			: WEIGHTS.find(([what]) => what === state.what)?.[2];
		icicle.show(graphs.get(state), isDifference(state));
		find();
	};
	const set = (change) => {
		Object.assign(state, change);
		if (change.moment)
			graphs.forgetMoment();
		weights.mark(state.what);
		show();
		onwhat(state);
	};
	const available = WEIGHTS.filter(([what]) => what !== "moment" || state.moment).filter(([what]) => what === "change" ? data.trees.merged.weights.live : data.trees.merged.weights[what]);
	const views = FRAMES.filter(([frames]) => frames === "python" ? data.trees.native : data.trees[frames]);
	const weights = choice("Memory", available, state.what, (what) => set({what}));
	const panel = h("section", {class: "panel", id: "flame"},
		h("div", {class: "controls"},
			weights,
			choice("Frames", views, state.frames, (frames) => set({frames})),
			choice("From", [["root", "the root"], ["leaf", "the allocation"]], state.isInverted ? "leaf" : "root", (from) => set({isInverted: from === "leaf"})),
			h("label", {class: "labelled"}, h("input", {type: "checkbox", checked: !state.withImports,
				onchange: (event) => set({withImports: !event.target.checked})}), "hide the import system"),
			search, found),
		icicle.element, selection,
		h("div", {class: "legend"}, LEGEND.map(([category, text]) => h("span", {}, h("i", {style: {background: `var(--flame-${category})`}}), text)),
			data.trees.merged.leftOut > 0 && h("span", {}, "Frames with less than a share of what is shown are one frame, “others”, with their total. ", wholeButton(data, "memory", "Show all"))));
	document.addEventListener("torsh-theme", () => icicle.draw());
	show();
	return {panel, set, icicle};
}

/**
 * The curves of a process. onpick(ns, process, event): the user clicked at a time; onprocess(process): another
 * process is shown. setPicks([{at, text, colour}]) draws lines in addition to the peak's.
 */
export function memoryChart(data, {onpick, onprocess, height}) {
	const list = data.curves, {peak} = data, place = h("div");
	let marks = [], nOwn = 0;
	const show = (i) => {
		const {points, process} = list[i], column = (k) => points.map((point) => point[k]);
		marks = peak.at_ns !== null && (peak.process === null || peak.process === process)
			? [{at: peak.at_ns / 1e9, text: `peak ${bytes(peak.bytes)}`, colour: "--bad"}] : [];
		nOwn = marks.length;
		const series = [
			{label: "heap", values: column(1), colour: "--heap", fill: true, width: 2},
			{label: "resident", values: column(3), colour: "--rss"},
			{label: "mapped", values: column(2), colour: "--mapped"},
			...(data.tensor_curves ?? []).filter((one) => one.process === process).map((one) => ({
				label: one.name, values: alignTo(points, one.points), colour: one.is_tensors ? "--tensor" : "--device"})),
		].filter((one) => one.values.some((value) => value));
		// Address space that is reserved, as CUDA does by the GiB, would flatten what holds memory: it waits in the legend.
		const most = (one) => one.values.reduce((found, value) => Math.max(found, value), 0), [mapped, held] = [
			series.find((one) => one.label === "mapped"), Math.max(...series.filter((one) => one.label !== "mapped").map(most), 0)];
		if (mapped && held && most(mapped) > 2 * held)
			Object.assign(mapped, {isShown: false, label: "mapped (hidden: click)"});
		replace(place, curves({label: "memory over time", times: points.map((point) => point[0] / 1e6), series, marks, height,
			onpick: onpick && ((at, event) => onpick(at * 1e9, process, event))}));
	};
	if (!list.length)
		return h("p", {class: "soft"}, "No samples of memory over time were recorded.");
	show(0);
	const chart = h("div", {}, list.length > 1 && h("div", {class: "controls"}, h("select", {"aria-label": "Process", onchange: (event) => {
		show(Number(event.target.value));
		onprocess?.(list[event.target.value].process);
	}},
		list.map((one, i) => h("option", {value: i}, `${data.processes[one.process].name} (${data.processes[one.process].pid})`)))), place);
	chart.setPicks = (picks) => {
		marks.splice(nOwn, marks.length, ...picks);
		place.firstChild.refresh();
	};
	return chart;
}

/** Selects the moment to show, and the one to subtract, from lists. onchoose({process, at, since}). */
class MomentPicker {
	constructor(moments, process, onchoose) {
		Object.assign(this, {moments, onchoose});
		this.at = h("select", {id: "moment-at", "aria-label": "Moment", onchange: () => this.choose()});
		this.since = h("select", {id: "moment-since", "aria-label": "less", onchange: () => this.choose()});
		this.element = h("div", {class: "controls", id: "moments"});
		this.show(process);
	}

	/** List the moments of a process; none is chosen. */
	show(process) {
		const list = this.moments.of(process), kept = list.filter((one) => !["start", "peak", "end"].includes(one.kind)).length;
		const options = () => list.map((moment, i) => h("option", {value: i}, momentText(moment)));
		this.process = process;
		replace(this.at, options());
		replace(this.since, h("option", {value: ""}, "nothing"), options());
		this.at.value = String(Math.max(0, list.findIndex((one) => one.kind === "peak")));
		replace(this.element, list.length > 0 && [h("span", {class: "labelled"}, h("span", {class: "label"}, "Moment"), this.at),
			h("span", {class: "labelled"}, h("span", {class: "label"}, "less"), this.since),
			h("span", {class: "soft"}, kept ? "Click the curve to choose a moment, with Shift the one that is subtracted." : "No moments between were recorded.")]);
	}

	/** {process, at, since}: numbers of moments; null: none. */
	get chosen() {
		return this.moments.of(this.process).length ? {process: this.process, at: Number(this.at.value),
			since: this.since.value === "" ? null : Number(this.since.value)} : null;
	}

	/** Choose the moment nearest to a time. */
	pick(ns, process, isSince) {
		if (process !== this.process)
			this.show(process);
		const near = this.moments.near(process, ns);
		if (near < 0)
			return;
		(isSince ? this.since : this.at).value = String(near);
		this.choose();
	}

	choose() {
		this.onchoose(this.chosen);
	}
}

/** Returns another curve's values at the times of these points: the latest value before each. */
function alignTo(points, others) {
	let k = -1;
	return points.map(([at]) => {
		while (k + 1 < others.length && others[k + 1][0] <= at)
			k++;
		return k < 0 ? 0 : others[k][1];
	});
}

/** Returns the steps and times of the leaks at the nodes of a row. */
function stepsOf(rowsByNode, row) {
	const rows = row.parts.flatMap((part) => rowsByNode.get(part.node) ?? []).filter((one) => one.firstStep !== null && one.lastStep !== null);
	return rows.length ? [Math.min(...rows.map((one) => one.firstStep)), Math.max(...rows.map((one) => one.lastStep))] : null;
}

function byNode(rows) {
	const map = new Map();
	for (const row of rows)
		map.set(row.node, [...map.get(row.node) ?? [], row]);
	return map;
}

/** Rows of leaks, with the steps that allocated them and their growth per step. */
export function leakRows(data) {
	const leaked = byNode(data.leaks.rows), grown = new Map();
	/* Similar stacks are one leak: growth is matched by the attributed line. */
	for (const one of data.growth.rows) {
		const {key} = blame(data.trees.merged, one.node);
		grown.set(key, (grown.get(key) ?? 0) + one.bytes / (one.lateSteps || 1));
	}
	return charge(data.trees.merged, "leaked").map((row) => ({...row, steps: stepsOf(leaked, row), growth: grown.get(row.key) ?? 0}));
}

function leaksPanel(data) {
	const {leaks} = data, rows = leakRows(data), kept = [...leaks.bookkeeping, ...leaks.imports, ...leaks.first_uses, ...leaks.suppressed].filter(([, size]) => size).sort((a, b) => b[1] - a[1]);
	const more = [
		{title: "A step", value: (row) => row.growth || null, text: (value) => value ? bytes(value) : "", help: "what grows from step to step"},
		{title: "Steps", value: (row) => row.steps?.[0] ?? null, text: (value, row) => row.steps ? row.steps.join(" – ") : ""},
	].filter((column) => rows.some((row) => column.value(row) !== null));
	return h("section", {class: "panel", id: "leaks"},
		h("div", {class: "head"}, h("h2", {}, "Leaks"), h("span", {class: "soft"}, leaks.bytes === null ? "the heap was not recorded"
			: `${bytes(leaks.bytes)} in ${plural(leaks.blocks, "block")} were not freed`)),
		rows.length > 0 && chargedTable({tree: data.trees.merged, rows, total: leaks.bytes, label: "leaks", more}),
		rows.length === 0 && leaks.bytes !== null && h("p", {}, "No leaks."),
		kept.length > 0 && h("details", {}, h("summary", {}, `${bytes(leaks.bookkeeping_bytes + leaks.imports_bytes + leaks.first_uses_bytes + leaks.suppressed_bytes)} more are kept on purpose, by imports, libraries and interpreters`),
			h("div", {class: "table-scroll"}, h("table", {}, h("tbody", {}, kept.map(([what, size, blocks]) => h("tr", {},
				h("td", {class: "number"}, bytes(size)), h("td", {class: "number"}, plural(blocks, "block")), h("td", {class: "text code"}, what))))))));
}

function growthPanel(data) {
	const {growth} = data;
	const perStep = (row) => row.bytes / (row.lateSteps || 1);
	const words = !growth.steps ? "No steps are known: nothing showed where one began."
		: !growth.is_enough ? `${plural(growth.steps, "step")} are too few to show what grows.`
			: growth.rows.length ? `over ${plural(growth.steps, "step")}` : `Nothing grows, over ${plural(growth.steps, "step")}.`;
	return h("section", {class: "panel", id: "growth"},
		h("div", {class: "head"}, h("h2", {}, "Growth from step to step"), h("span", {class: "soft"}, words)),
		growth.rows.map((row) => h("div", {}, h("p", {class: "stack-total"},
			h("b", {}, `${bytes(perStep(row))} a step`), ` in ${plural(row.blocks / (row.lateSteps || 1), row.isOfTensors ? "tensor" : "block")}: `,
			`${bytes(row.bytes)} over ${plural(row.lateSteps, "step")}`, row.operator && `, in ${row.operator}`, row.module && `, module ${row.module}`),
		stackList(data.trees.merged, row.node))));
}

function sizesPanel(data) {
	const sum = [];
	for (const process of data.processes)
		(process.sizes ?? []).forEach((n, i) => sum[i] = (sum[i] ?? 0) + n);
	const first = sum.findIndex(Boolean), last = sum.findLastIndex(Boolean);
	if (first < 0)
		return null;
	const rows = sum.slice(first, last + 1).map((n, k) => {
		const i = first + k;
		return {name: i ? `${bytes(2 ** (i - 1))} –` : "0 B", value: n, text: count(n)};
	});
	return h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, "Sizes of blocks"), h("span", {class: "soft"}, "blocks ever allocated, by size")), bars(rows, "--heap"));
}

/** Lifetimes of the blocks that were freed. */
function lifetimesPanel(data) {
	const sums = new Map();
	for (const [from, blocks] of data.processes.flatMap((process) => process.lifetimes ?? []))
		sums.set(from, (sums.get(from) ?? 0) + blocks);
	const list = [...sums].sort((a, b) => a[0] - b[0]), first = list.findIndex(([, blocks]) => blocks);
	if (first < 0)
		return null;
	return h("section", {class: "panel", id: "lifetimes"}, h("div", {class: "head"}, h("h2", {}, "Lifetimes of blocks"), h("span", {class: "soft"}, "blocks that ended, by how long they lived")),
		bars(list.slice(first).map(([from, blocks]) => ({name: from ? `${time(from)} –` : "0", value: blocks, text: count(blocks)})), "--tensor"));
}

/** Ages at the end of blocks that were never freed, and short-lived blocks. */
function agesPanel(data) {
	const {rows} = data.leaks, ends = data.processes.map((process) => process.end_ns ?? data.recording.end_ns ?? 0);
	const known = rows.filter((row) => row.firstNs !== null), allocs = data.processes.reduce((sum, process) => sum + (process.allocs ?? 0), 0);
	const temporary = data.processes.reduce((sum, process) => sum + (process.temporary ?? 0), 0);
	const classes = [[0, 0.25, "last quarter of the run"], [0.25, 0.5, "third quarter"], [0.5, 0.75, "second quarter"], [0.75, 1.01, "first quarter"]];
	const share = (row) => 1 - row.firstNs / Math.max(1, ends[row.process]);
	return h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, "Ages of leaks"), h("span", {class: "soft"}, "when those of each stack began")),
		bars(classes.toReversed().map(([from, to, name]) => {
			const size = known.filter((row) => share(row) >= from && share(row) < to).reduce((total, row) => total + row.bytes, 0);
			return {name, value: size, text: bytes(size)};
		}), "--tensor"),
		allocs > 0 && h("p", {class: "soft"}, `${count(temporary)} of ${count(allocs)} blocks (${percent(temporary / allocs)}) were temporary: freed by their own thread before it allocated another.`));
}

/** What held memory at a moment, by line, or what changed between two. */
function momentHolders(data, moments, {process, at, since}) {
	const tree = data.trees.merged, list = moments.of(process), rows = charge(tree, "moment").filter((row) => row.bytes || row.blocks);
	const total = rows.reduce((sum, row) => sum + row.bytes, 0), isChange = since !== null;
	const words = isChange ? `${momentText(list[at])}, less ${momentText(list[since])}` : momentText(list[at]);
	return [h("div", {class: "head"}, h("h2", {}, isChange ? "What changed, by line" : "At this moment, by line"), h("span", {class: "soft"}, words)),
		chargedTable({tree, rows, total, label: "who held memory then", isChange, note: `${isChange ? signedBytes(total) : bytes(total)} in all`})];
}

/** The tab. parameters: what and search, from a link. */
export function memoryTab(data, tip, parameters) {
	const state = {what: parameters.get("what") ?? (data.trees.merged.weights.peak ? "peak" : "live"), frames: parameters.get("frames") ?? "merged",
		isInverted: parameters.get("from") === "leaf", withImports: false, search: parameters.get("search") ?? ""};
	const holders = h("section", {class: "panel", id: "holders"}), moments = new Moments(data);
	const showHolders = ({what, moment}) => {
		const [, title, text] = WEIGHTS.find(([name]) => name === what), tree = data.trees.merged;
		if (what === "moment")
			return replace(holders, momentHolders(data, moments, moment));
		const rows = what === "change" ? null : charge(tree, what), total = rows?.reduce((sum, row) => sum + row.bytes, 0);
		replace(holders, h("div", {class: "head"}, h("h2", {}, `${title}, by line`), h("span", {class: "soft"}, text)), rows
			? chargedTable({tree, rows, total, label: `${title}, by line`, note: `${bytes(total)} in all`})
			: h("p", {class: "soft"}, "A difference is shown as a flame graph: red was held at the peak and is gone at the end, green came after the peak."));
	};
	const picker = new MomentPicker(moments, data.curves[0]?.process ?? 0, (moment) => {
		const list = moments.of(moment.process), at = list[moment.at], since = list[moment.since];
		moments.weigh(moment.process, moment.at, moment.since);
		flame.set({what: "moment", moment});
		chart.setPicks?.([{at: at.at / 1e9, text: bytes(at.bytes), colour: "--accent"}, ...since ? [{at: since.at / 1e9, text: "less", colour: "--accent"}] : []]);
	});
	state.moment = picker.chosen;
	if (state.moment)
		moments.weigh(state.moment.process, state.moment.at);
	const flame = flamePanel(data, tip, state, showHolders);
	const chart = memoryChart(data, {height: 200, onpick: (ns, process, event) => picker.pick(ns, process, event.shiftKey), onprocess: (process) => {
		picker.show(process);
		replace(rise, risePanel(data, moments, process));
	}});
	const rise = h("section", {class: "panel", id: "rise"}, risePanel(data, moments, picker.process));
	showHolders(state);
	return h("div", {},
		h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, "Memory over time"),
			h("span", {class: "soft"}, data.peak.bytes === null ? "" : `peak ${bytes(data.peak.bytes)} in ${plural(data.peak.blocks, "block")} at ${time(data.peak.at_ns)}`)),
		chart, picker.element),
		rise, flame.panel, holders, leaksPanel(data), growthPanel(data), h("div", {class: "grid"}, sizesPanel(data), lifetimesPanel(data), agesPanel(data)));
}
