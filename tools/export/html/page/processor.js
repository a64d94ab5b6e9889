// SPDX-License-Identifier: Apache-2.0 OR MIT
// The tab CPU: where processor time went, by samples, and what threads waited for, as flame graphs.

import {choice, h, replace} from "./dom.js";
import {count, percent, plural, time} from "./format.js";
import {Icicle} from "./icicle.js";
import {wholeButton} from "./served/served.js";
import {FILTERS, graphOf, inverted, matcher} from "./tree.js";

export function hasProcessor(data) {
	return data.processor !== null;
}

/** A flame graph of one weight of the tree, with its search. what: {id, title, words, weight, unit, root}. */
function flame(data, tip, {id, title, words, weight, unit, root}) {
	const {tree} = data.processor, {bytes: ns, blocks} = tree.weights[weight], state = {frames: "merged", from: "root"};
	const found = h("span", {class: "note", role: "status"}), selection = h("div", {class: "selection"}), made = new Map();
	const describe = (graph, node) => {
		const frame = graph.frames[graph.frame[node]], total = graph.total[node];
		return [frame?.fullName ?? root, ...frame?.fullPlace ? [frame.fullPlace] : [], `${time(total)}, ${percent(total / graph.total[0])} of all`,
			...graph.own[node] ? [`${time(graph.own[node])} end here`] : []];
	};
	const icicle = new Icicle({tip, describe, onselect: (graph, node) =>
		replace(selection, node ? describe(graph, node).join("  ·  ") : "Click a frame to zoom, arrows and Enter with the keyboard, Escape for all.")});
	const find = () => {
		const result = icicle.find(search.value ? matcher(search.value) : null);
		replace(found, result && `${plural(result.n, "frame")}, ${time(result.total)}, ${percent(result.total / icicle.graph.total[0])}`);
	};
	const search = h("input", {type: "search", class: "filter", placeholder: "Search, or /expression/", "aria-label": `Search the flame graph: ${title}`, oninput: find});
	const graph = () => {
		const key = `${state.frames} ${state.from}`;
		if (!made.has(key)) {
			const whole = graphOf(tree, (i) => ns[i], FILTERS[state.frames === "python" ? "python" : "all"]);
			made.set(key, state.from === "leaf" ? inverted(whole) : whole);
		}
		return made.get(key);
	};
	const show = (change) => {
		Object.assign(state, change);
		icicle.rootName = root;
		icicle.show(graph());
		find();
	};
	document.addEventListener("torsh-theme", () => icicle.draw());
	show({});
	return h("section", {class: "panel", id},
		h("div", {class: "head"}, h("h2", {}, title), h("span", {class: "soft"}, `${words}; ${plural(blocks.reduce((sum, n) => sum + n, 0), unit)}`)),
		h("div", {class: "controls"},
			choice("Frames", [["merged", "Merged", "Python in place of the interpreter's own frames"], ["python", "Python lines", "lines of Python only"]],
				state.frames, (frames) => show({frames})),
			choice("From", [["root", "the root"], ["leaf", "the innermost frame"]], state.from, (from) => show({from})), search, found),
		icicle.element, selection,
		tree.leftOut > 0 && h("div", {class: "legend"}, h("span", {}, "Small frames are one frame, “others”, with their total. ", wholeButton(data, "time", "Show all"))));
}

export function processorTab(data, tip) {
	const {processor} = data, {weights} = processor.tree;
	return h("div", {},
		weights.cpu ? flame(data, tip, {id: "cpu-flame", title: "Processor time", weight: "cpu", unit: "sample", root: "processor time, by samples",
			words: `${time(processor.ns)} of all threads${processor.lost ? `, ${plural(processor.lost, "sample")} lost: the next one has their time` : ""}`})
			: h("section", {class: "panel"}, h("p", {class: "soft"}, "No samples were taken: record with torsh run --cpu.")),
		weights.waited && flame(data, tip, {id: "waits-flame", title: "Waits", weight: "waited", unit: "wait", root: "waited in the C library",
			words: `${time(processor.waited_ns)} of all threads in waits of 50 µs and more${processor.shorter
				? `, and ${time(processor.shorter_ns)} in ${count(processor.shorter)} shorter calls` : ""}`}));
}
