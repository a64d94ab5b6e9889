// SPDX-License-Identifier: Apache-2.0 OR MIT
// Flame graphs are computed from the document's trees: filtered, inverted, subtracted. A graph has the columns
// of a tree: parent, frame, own and total, and children as lists of numbers.

import {KIND} from "./frames.js";

/** A graph that grows by paths from the root. */
class Builder {
	constructor(frames) {
		this.frames = frames;
		this.parent = [-1];
		this.frame = [-1];
		this.own = [0];
		this.index = new Map();
	}

	child(parent, frame) {
		const key = parent * this.frames.length + frame;
		let node = this.index.get(key);
		if (node === undefined) {
			node = this.parent.length;
			this.index.set(key, node);
			this.parent.push(parent);
			this.frame.push(frame);
			this.own.push(0);
		}
		return node;
	}

	finish() {
		return finish(this.frames, this.parent, this.frame, this.own);
	}
}

/** Compute totals, and children with the largest first. */
function finish(frames, parent, frame, own) {
	const n = parent.length, total = Float64Array.from(own), size = Float64Array.from(own, Math.abs);
	const children = Array.from({length: n}, () => []), depth = new Int32Array(n);
	for (let i = n - 1; i > 0; i--) {
		total[parent[i]] += total[i];
		size[parent[i]] += size[i];
	}
	for (let i = 1; i < n; i++) {
		depth[i] = depth[parent[i]] + 1;
		if (size[i] > 0)
			children[parent[i]].push(i);
	}
	for (const list of children)
		list.sort((a, b) => size[b] - size[a]);
	return {frames, n, parent, frame, own, total, size, children, depth};
}

/** Which frames a path includes: all, Python lines only, or all but the import system. */
export const FILTERS = {
	all: () => true,
	python: (frame) => frame.kind !== KIND.NATIVE,
	noImports: (frame) => frame.category !== "imports",
};

/** The graph of one weight of a tree; own(i) is the weight of stacks that end at node i. */
export function graphOf(tree, own, keep = FILTERS.all) {
	const builder = new Builder(tree.frames), place = new Int32Array(tree.n);
	for (let i = 1; i < tree.n; i++) {
		const around = place[tree.parent[i]], isShown = keep(tree.frames[tree.frame[i]]);
		place[i] = isShown ? builder.child(around, tree.frame[i]) : around;
		builder.own[place[i]] += own(i);
	}
	builder.own[0] += own(0);
	return builder.finish();
}

/** A graph inverted, from the innermost frame outwards. */
export function inverted(graph) {
	const builder = new Builder(graph.frames);
	for (let i = 1; i < graph.n; i++) {
		if (!graph.own[i])
			continue;
		let at = 0;
		for (let node = i; node > 0; node = graph.parent[node]) {
			at = builder.child(at, graph.frame[node]);
		}
		builder.own[at] += graph.own[i];
	}
	return builder.finish();
}

/** Frames of a node from the innermost one outwards. */
export function stackOf(tree, node) {
	const frames = [];
	for (; node > 0; node = tree.parent[node])
		frames.push(tree.frames[tree.frame[node]]);
	return frames;
}

/** The nodes with matching frames, and their total: matches within a match count once. */
export function search(graph, matches) {
	const found = new Uint8Array(graph.n), inside = new Uint8Array(graph.n);
	let total = 0, n = 0;
	for (let i = 1; i < graph.n; i++) {
		found[i] = matches(graph.frames[graph.frame[i]]) ? 1 : 0;
		inside[i] = found[i] || inside[graph.parent[i]];
		n += found[i];
		if (found[i] && !inside[graph.parent[i]])
			total += graph.total[i];
	}
	return {found, total, n};
}

/** A predicate for frames: a regular expression between slashes, else a text in any case. */
export function matcher(text) {
	const parts = /^\/(.+)\/$/.exec(text);
	if (parts) {
		try {
			const expression = new RegExp(parts[1], "i");
			return (frame) => expression.test(frame.fullName) || expression.test(frame.fullPlace);
		} catch {
			return () => false;
		}
	}
	const wanted = text.toLowerCase();
	return (frame) => frame.fullName.toLowerCase().includes(wanted) || frame.fullPlace.toLowerCase().includes(wanted);
}
