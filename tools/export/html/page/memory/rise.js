// SPDX-License-Identifier: Apache-2.0 OR MIT
// Who rose when: the heap over time, stacked by the lines that its memory is charged to.

import {curves} from "../chart.js";
import {h} from "../dom.js";
import {bytes, count, middle, plural, time} from "../format.js";
import {blame, chargedText} from "../sites.js";

const LINES_STACKED = 8, LABEL_CHARACTERS = 30;
const LAYER_COLOURS = ["--heap", "--tensor", "--device", "--mapped", "--optimizer", "--backward", "--data", "--loss"];

/**
 * The lines that had most at one moment, and what each had at all: {times, lines: [{text, values, most}], others}.
 * times in seconds; others: the values of all other lines together, null without such lines.
 */
export function linesOverTime(data, moments, process) {
	const tree = data.trees.merged, byNode = new Map(), byKey = new Map();
	const keys = moments.groups.merged.map((node) => {
		if (!byNode.has(node))
			byNode.set(node, blame(tree, node));
		return byNode.get(node);
	});
	const list = moments.of(process), none = () => new Float64Array(list.length);
	moments.each(process, (held, moment) => {
		for (let group = 0; group < held.length; group++) {
			if (!held[group])
				continue;
			const charged = keys[group];
			let line = byKey.get(charged.key);
			if (!line)
				byKey.set(charged.key, line = {text: chargedText(charged), values: none(), most: 0});
			line.values[moment] += held[group];
			line.most = Math.max(line.most, line.values[moment]);
		}
	});
	const lines = [...byKey.values()].sort((a, b) => b.most - a.most), rest = lines.slice(LINES_STACKED);
	const others = none();
	for (const {values} of rest)
		values.forEach((value, i) => others[i] += value);
	return {times: list.map((moment) => moment.at / 1e9), lines: lines.slice(0, LINES_STACKED), nOthers: rest.length, others: rest.length ? others : null};
}

/** Each layer's upper edge, the topmost first: that is drawn first, and the others over it. */
function stacked({lines, others, nOthers}) {
	const layers = [...lines.map((line, i) => ({label: middle(line.text, LABEL_CHARACTERS), own: line.values, colour: LAYER_COLOURS[i]})),
		...others ? [{label: `${plural(nOthers, "other line")}`, own: others, colour: "--other"}] : []];
	let below = null;
	return layers.map((layer) => {
		below = layer.own.map((value, i) => value + (below ? below[i] : 0));
		return {...layer, values: [...below], isSolid: true, width: 0.5};
	}).reverse();
}

/** When each line had most, and what it has in the end. */
function riseTable({lines, times}) {
	const cell = (value) => h("td", {class: "number", title: `${count(value)} bytes`}, bytes(value));
	return h("div", {class: "table-scroll"}, h("table", {},
		h("thead", {}, h("tr", {}, ["Most", "at", "At the end", "Line"].map((text, i) => h("th", {class: i < 3 ? "number" : "text"}, text)))),
		h("tbody", {}, lines.map((line) => h("tr", {}, cell(line.most),
			h("td", {class: "number"}, time(times[line.values.indexOf(line.most)] * 1e9)), cell(line.values[line.values.length - 1]),
			h("td", {class: "text"}, middle(line.text, 4 * LABEL_CHARACTERS)))))));
}

/** The panel's content for a process. */
export function risePanel(data, moments, process) {
	const over = linesOverTime(data, moments, process);
	if (!over.lines.length)
		return [h("h2", {}, "Heap over time, by line"), h("p", {class: "soft"}, "No moments of the heap were recorded.")];
	return [h("div", {class: "head"}, h("h2", {}, "Heap over time, by line"),
		h("span", {class: "soft"}, `exact at ${plural(over.times.length, "moment")} of the recording, straight lines between; those with most at one of them`)),
		curves({label: "heap over time by line", times: over.times, series: stacked(over), height: 240}), riseTable(over)];
}
