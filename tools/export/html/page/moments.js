// SPDX-License-Identifier: Apache-2.0 OR MIT
// What held memory at any moment: the document has the changes from one moment to the next, by groups of
// stacks; a moment, or the difference of two, is computed as a weight of the trees.

import {bytes, time} from "./format.js";

const NAMES = {start: "the start", peak: "the peak", end: "the end"};

/** The name of a moment, without its time. */
function momentName(moment) {
	if (moment.kind === "mark")
		return `mark “${moment.mark ?? "?"}”`;
	if (moment.kind === "step")
		return moment.step === null ? "the first step" : `end of step ${moment.step}`;
	return NAMES[moment.kind] ?? "";
}

export function momentText(moment) {
	return `${[momentName(moment), time(moment.at)].filter(Boolean).join(", ")}: ${bytes(moment.bytes)}`;
}

export class Moments {
	constructor(data) {
		Object.assign(this, {trees: data.trees, groups: data.moments.groups, processes: data.moments.processes});
	}

	/** The moments of a process, in the order of time. */
	of(process) {
		return this.processes.find((one) => one.process === process)?.items ?? [];
	}

	/** The number of the moment nearest to a time. */
	near(process, at) {
		const distances = this.of(process).map((moment) => Math.abs(moment.at - at));
		return distances.indexOf(Math.min(...distances));
	}

	/** Call visit(bytes by group, number) for each moment of a process; the array is used again. */
	each(process, visit) {
		const {items, changes} = this.processes.find((one) => one.process === process) ?? {items: []};
		const held = new Float64Array(this.groups.merged.length);
		for (let i = 0, at = 0; i < items.length; i++) {
			for (let k = 0, group = 0; k < items[i].nChanges; k++, at++) {
				group += changes.group[at];
				held[group] = changes.bytes[at];
			}
			visit(held, i);
		}
	}

	/** Each group's usage at a moment: {bytes, blocks}. */
	values(process, number) {
		const {items, changes} = this.processes.find((one) => one.process === process), n = this.groups.merged.length;
		const held = {bytes: new Float64Array(n), blocks: new Float64Array(n)};
		for (let i = 0, at = 0; i <= number; i++) {
			for (let k = 0, group = 0; k < items[i].nChanges; k++, at++) {
				group += changes.group[at];
				held.bytes[group] = changes.bytes[at];
				held.blocks[group] = changes.blocks[at];
			}
		}
		return held;
	}

	/**
	 * Compute the weight "moment" of all trees: the usage at one moment, minus that at another one unless since is
	 * null.
	 */
	weigh(process, at, since = null) {
		const held = this.values(process, at), less = since === null ? null : this.values(process, since);
		for (const [name, tree] of Object.entries(this.trees)) {
			const weight = {bytes: new Float64Array(tree.n), blocks: new Float64Array(tree.n)}, nodes = this.groups[name];
			for (let i = 0; nodes && i < nodes.length; i++) {
				weight.bytes[nodes[i]] += held.bytes[i] - (less ? less.bytes[i] : 0);
				weight.blocks[nodes[i]] += held.blocks[i] - (less ? less.blocks[i] : 0);
			}
			tree.weights.moment = weight;
		}
	}
}
