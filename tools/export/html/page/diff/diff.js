// SPDX-License-Identifier: Apache-2.0 OR MIT
// The page of torsh diff: the changed totals, a flame graph of changed leaks, and a table for each kind of
// row.

import {append, choice, h, replace} from "../dom.js";
import {bytes, count, percent, si, time, visible} from "../format.js";
import {describe, KIND, LABEL} from "../frames.js";
import {Icicle, Tip} from "../icicle.js";
import {table} from "../table.js";
import {themeButton} from "../theme.js";
import {matcher} from "../tree.js";

const TOTALS = [["leaked_bytes", "Leaked", bytes], ["leaked_blocks", "Leaked blocks", count], ["peak_bytes", "Heap peak", bytes], ["growth_bytes_per_step", "Growth, per step", bytes]];
const KINDS = [
	{id: "sites", title: "Leaks", amounts: [["bytes", "Bytes", bytes], ["blocks", "Blocks", count]]},
	{id: "peak", title: "Held at the peak", amounts: [["bytes", "Bytes", bytes], ["blocks", "Blocks", count]]},
	{id: "ops", title: "Operators", amounts: [["self_cpu_ns", "Own time", time], ["self_flops_all", "FLOPs", si]]},
	{id: "modules", title: "Modules", amounts: [["total_ns", "Time", time], ["flops_all", "FLOPs", si]]},
	{id: "kernels", title: "Kernels", amounts: [["total_ns", "Time", time], ["calls", "Calls", count]]},
	{id: "lines", title: "Lines of yours", amounts: [["self_cpu_ns", "Own time of operators", time], ["self_flops_all", "FLOPs", si]]},
	{id: "stacks", title: "Operators by stack", amounts: [["self_cpu_ns", "Own time", time], ["self_flops_all", "FLOPs", si]]},
];
const WORDS = {fixed: "less", better: "less", new: "more", worse: "more", same: "soft"};

function changeOf({before, after}) {
	return before === null || after === null ? null : after - before;
}

function signed(value, text) {
	return value === null ? "–" : value > 0 ? `+${text(value)}` : value < 0 ? `−${text(-value)}` : "=";
}

function changeText(figure, text) {
	return figure.is_change ? signed(changeOf(figure), text) : "=";
}

/* ---- changes as a graph ---- */

function frameOf(frame) {
	return describe({function: frame.function, file: frame.file ?? "", module: frame.module ?? "", line: frame.line ?? 0, category: frame.category,
		kind: frame.language === "python" ? KIND.PYTHON : KIND.NATIVE});
}

function labelOf(text) {
	return describe({function: text, file: "", module: "", line: 0, category: LABEL, kind: KIND.LABEL});
}

/** Rows of stacks as paths from the outermost frame, with what was there before and after. */
function stackPaths(rows, amount) {
	const frames = new Map();
	const known = (key, make) => frames.get(key) ?? frames.set(key, make()).get(key);
	const label = (text) => known(text, () => labelOf(text));
	const numbered = (frame) => known(JSON.stringify([frame.function, frame.file ?? frame.module, frame.line]), () => frameOf(frame));
	return rows.map((row) => ({before: row[amount].before, after: row[amount].after,
		path: row.name ? [label(row.name)] : [...row.stack.toReversed().map(numbered), ...row.operator ? [label(row.operator)] : []]}));
}

/** Modules as paths by their names, "0.attn:Attention": what is in no inner module is a module's own. */
function modulePaths(rows) {
	const byPath = new Map(rows.map((row) => [row.name.replace(/:.*$/, ""), {row, label: labelOf(row.name), inner: {before: 0, after: 0}}]));
	const parentOf = (path) => {
		do
			path = path.includes(".") ? path.replace(/\.[^.]*$/, "") : "";
		while (path && !byPath.has(path));
		return path;
	};
	for (const [path, {row}] of byPath) {
		const around = byPath.get(parentOf(path));
		for (const side of around ? ["before", "after"] : [])
			around.inner[side] += row.total_ns[side];
	}
	return [...byPath].map(([path, {row, inner}]) => {
		const labels = [];
		for (let at = path; at; at = parentOf(at))
			labels.unshift(byPath.get(at).label);
		return {path: labels, before: Math.max(0, row.total_ns.before - inner.before), after: Math.max(0, row.total_ns.after - inner.after)};
	});
}

/** Paths of both sides as one tree by functions and places; a node is as wide as the side that is chosen. */
function changeGraph(paths, side) {
	const frames = [], numbers = new Map(), graph = {frames, parent: [-1], frame: [-1], before: [0], after: [0], depth: [0], children: [[]]}, index = new Map();
	const number = (frame) => {
		if (!numbers.has(frame))
			numbers.set(frame, frames.push(frame) - 1);
		return numbers.get(frame);
	};
	const child = (parent, frame) => {
		const key = `${parent} ${frame}`;
		let node = index.get(key);
		if (node === undefined) {
			index.set(key, node = graph.parent.length);
			graph.parent.push(parent);
			graph.frame.push(frame);
			graph.before.push(0);
			graph.after.push(0);
			graph.depth.push(graph.depth[parent] + 1);
			graph.children.push([]);
			graph.children[parent].push(node);
		}
		return node;
	};
	for (const {path, before, after} of paths) {
		let node = 0;
		for (const frame of [null, ...path]) {
			node = frame ? child(node, number(frame)) : 0;
			graph.before[node] += before;
			graph.after[node] += after;
		}
	}
	graph.n = graph.parent.length;
	graph.total = graph.after.map((after, i) => after - graph.before[i]);
	graph.size = Float64Array.from(side === "both" ? graph.after.map((after, i) => Math.max(after, graph.before[i])) : graph[side]);
	/* Of the larger side a node may be narrower than what is inside of it. */
	for (let i = graph.n - 1; i >= 0 && side === "both"; i--)
		graph.size[i] = Math.max(graph.size[i], graph.children[i].reduce((sum, one) => sum + graph.size[one], 0));
	for (const list of graph.children)
		list.sort((a, b) => graph.size[b] - graph.size[a]);
	graph.children = graph.children.map((list) => list.filter((one) => graph.size[one] > 0));
	return graph;
}

/** What the flame graph can show: [id, title, name of the root, paths, text of an amount]. */
function sourcesOf(diff) {
	const time_ = diff.stacks.length ? stackPaths(diff.stacks, "self_cpu_ns") : stackPaths(diff.ops, "self_cpu_ns");
	return [
		["sites", "leaks", "all leaks", stackPaths(diff.sites, "bytes"), bytes],
		["peak", "the peak", "held at the peak", stackPaths(diff.peak, "bytes"), bytes],
		["stacks", "operators", "time in operators", time_, time],
		["modules", "modules", "time in modules", modulePaths(diff.modules), time],
	].filter(([, , , paths]) => paths.some(({before, after}) => before || after));
}

function flamePanel(diff, tip) {
	const sources = sourcesOf(diff);
	if (!sources.length)
		return null;
	const words = h("p", {class: "soft", role: "status"}), heading = h("h2", {}, "Where it changed"), state = {};
	const linesOf = (graph, node) => {
		const [, , root, , text] = state.source, before = graph.before[node], after = graph.after[node], frame = graph.frames[graph.frame[node]];
		return [frame ? frame.fullName : root, frame?.fullPlace ?? "", `before ${text(before)}, after ${text(after)}`, signed(after - before, text)];
	};
	const icicle = new Icicle({tip, describe: linesOf, onselect: (graph, node) => replace(words, linesOf(graph, node).filter(Boolean).join(" · "))});
	const show = (change) => {
		Object.assign(state, change);
		icicle.rootName = state.source[2];
		icicle.show(changeGraph(state.source[3], state.side), true);
	};
	const search = h("input", {type: "search", class: "filter", id: "flame-search", placeholder: "Search", "aria-label": "Search frames",
		oninput: (event) => icicle.find(event.target.value ? matcher(event.target.value) : null)});
	document.addEventListener("torsh-theme", () => icicle.draw());
	const isAfter = sources[0][3].some(({after}) => after), first = {source: sources[0], side: isAfter ? "after" : "before"};
	const panel = h("section", {class: "panel", id: "flame"}, h("div", {class: "head"}, heading, h("span", {class: "soft"}, "red grew, blue shrank")),
		h("div", {class: "controls"},
			choice("Of", sources.map(([id, title]) => [id, title]), first.source[0], (id) => show({source: sources.find((one) => one[0] === id)})),
			choice("Width", [["before", "before"], ["after", "after"], ["both", "the larger"]], first.side, (side) => show({side})), search), icicle.element, words);
	show(first);
	return panel;
}

/* ---- tables ---- */

function totalsPanel(diff) {
	const rows = [...TOTALS.map(([name, title, text]) => ({name, title, text, figure: diff.totals[name]})), {name: "median_ns", title: "Step, median", text: time, figure: diff.steps.median_ns}]
		.filter(({figure}) => figure.before !== null);
	const {runs} = diff, sets = runs.before + runs.after > 2 ? `medians of ${runs.before} and ${runs.after} runs; within the spread is no change` : "";
	return h("section", {class: "panel", id: "totals"}, h("div", {class: "head"}, h("h2", {}, "In all"), h("span", {class: "soft"}, sets)), h("table", {"aria-label": "totals"},
		h("thead", {}, h("tr", {}, ["", "Before", "After", "Change", "Spread"].map((title) => h("th", {scope: "col", class: "number"}, title)))),
		h("tbody", {}, rows.map(({title, text, figure}) => h("tr", {}, h("td", {class: "text"}, title), h("td", {class: "number"}, text(figure.before)), h("td", {class: "number"}, text(figure.after)),
			h("td", {class: `number ${figure.is_change ? changeOf(figure) > 0 ? "more" : "less" : ""}`}, changeText(figure, text)), h("td", {class: "number"}, figure.spread === null ? "" : `±${text(figure.spread)}`))))),
	diff.notes.map((note) => h("p", {class: "soft"}, `${visible(note)}.`)));
}

function lineText(frame) {
	return frame ? `${(frame.file ?? "").split("/").pop()}:${frame.line} ${frame.function ?? ""}` : "";
}

function whereText(row) {
	if (row.name)
		return row.name;
	const place = lineText(row.user_frame) || (row.stack?.[0]?.function ?? "?");
	return [row.operator ? `${row.operator} at ${place}` : place, row.moved_from && `was at ${lineText(row.moved_from)}`, row.renamed && `${row.renamed.to} was ${row.renamed.from}`].filter(Boolean).join(", ");
}

function stackOfRow(row) {
	return row.stack?.length ? h("ol", {class: "stack"}, row.stack.map((frame) => h("li", {class: "code"}, h("bdi", {}, frameOf(frame).label)))) : null;
}

function tablePanel(diff, {id, title, amounts}) {
	const rows = diff[id], changed = rows.filter((row) => row.status !== "same").length, [[main, heading, text], [second, other, otherText]] = amounts;
	if (!rows.length)
		return null;
	const left = diff.omitted[id];
	return h("section", {class: "panel", id}, h("div", {class: "head"}, h("h2", {}, title), h("span", {class: "soft"}, `${count(changed)} changed, ${count(rows.length - changed)} the same`)),
		table({rows, label: title, first: 25, sortBy: 4, filterText: whereText, details: rows.some((row) => row.stack) ? stackOfRow : undefined, note: left ? `${count(left)} more are left out` : null, columns: [
			{title: "Status", isText: true, value: (row) => row.status, cell: (row) => h("span", {class: WORDS[row.status]}, row.status)},
			{title: `${heading} before`, value: (row) => row[main].before, text},
			{title: "after", value: (row) => row[main].after, text},
			{title: "Share", isMinor: true, value: (row) => row[main].before ? changeOf(row[main]) / row[main].before : null, text: (value) => value === null ? "" : percent(value)},
			{title: "Change", value: (row) => Math.abs(changeOf(row[main])), cell: (row) => changeText(row[main], text)},
			...rows.some((row) => row[main].spread !== null) ? [{title: "Spread", isMinor: true, value: (row) => row[main].spread, text: (value) => value === null ? "" : `±${text(value)}`}] : [],
			...rows.some((row) => row[second].before || row[second].after) ? [{title: other, isMinor: true, value: (row) => changeOf(row[second]), cell: (row) => changeText(row[second], otherText)}] : [],
			{title: "Where", isText: true, value: whereText, cell: (row) => h("bdi", {class: "code"}, whereText(row))},
		]}));
}

function start() {
	const {before, after, diff, categories} = JSON.parse(document.getElementById("data").textContent), tip = new Tip(document.getElementById("tip"));
	const names = (paths) => h("bdi", {class: "code", title: paths.join("\n")}, paths.length > 1 ? `${paths[0]} and ${paths.length - 1} more` : paths[0]);
	for (const [id, stacks] of Object.entries(categories))
		stacks.forEach((list, row) => list.forEach((category, i) => diff[id][row].stack[i].category = category));
	document.title = "torsh diff";
	document.documentElement.classList.add("diff");
	append(document.getElementById("top"), h("div", {class: "title"}, h("span", {class: "mark"}, "torsh"), h("h1", {}, names(before), " → ", names(after)), h("span", {class: "spring"}), themeButton()));
	replace(document.getElementById("main"), totalsPanel(diff), flamePanel(diff, tip), KINDS.map((kind) => tablePanel(diff, kind)));
	document.documentElement.dataset.ready = "true";
}

start();
