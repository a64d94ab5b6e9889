// SPDX-License-Identifier: Apache-2.0 OR MIT
// Attribution of memory: each stack is charged to the innermost line of the user's own code; what an import
// keeps is charged to the imported package.

import {h, replace} from "./dom.js";
import {bytes, count, percent, plural, signedBytes, visible} from "./format.js";
import {KIND} from "./frames.js";
import {table} from "./table.js";
import {stackOf} from "./tree.js";

const STACKS_SHOWN = 6, RUN = {imports: 1, runtime: 3, native: 4};
const RUN_NAMES = {imports: "of the import system", runtime: "of the C library and the interpreter", native: "of native libraries"};

/** Returns the first directory of a path in site-packages, or the name of a standard library's module. */
function packageOf(frame) {
	const parts = /\/(?:site|dist)-packages\/([^/]+)/.exec(frame.file) ?? /\/python3\.\d+t?\/([^/]+)/.exec(frame.file);
	return parts ? parts[1].replace(/\.py$/, "") : null;
}

/** {key, frame, imported} of a node's stack: what its memory is charged to. */
export function blame(tree, node) {
	const frames = stackOf(tree, node);
	let imported = null, isImport = false, library = null;
	for (const frame of frames) {
		if (frame.category === "own")
			return isImport ? {key: `import ${imported}`, imported: imported ?? "modules", frame} : {key: `f${frame.number}`, frame};
		isImport ||= frame.category === "imports";
		imported = packageOf(frame) ?? imported;
		if (frame.kind === KIND.PYTHON && frame.category === "library")
			library ??= frame;
	}
	if (isImport)
		return {key: `import ${imported}`, imported: imported ?? "modules", frame: null};
	const frame = library ?? frames.find((one) => one.category === "native") ?? frames[frames.length - 1] ?? null;
	return {key: frame ? `f${frame.number}` : "none", frame};
}

/** Rows by what is charged: {key, frame, imported, bytes, blocks, parts: [{node, bytes, blocks}]}. */
export function charge(tree, weight) {
	const groups = new Map(), own = tree.weights[weight];
	for (let node = 0; own && node < tree.n; node++) {
		if (!own.bytes[node])
			continue;
		const charged = blame(tree, node);
		let group = groups.get(charged.key);
		if (!group)
			groups.set(charged.key, group = {...charged, bytes: 0, blocks: 0, parts: []});
		group.bytes += own.bytes[node];
		group.blocks += own.blocks[node];
		group.parts.push({node, bytes: own.bytes[node], blocks: own.blocks[node]});
	}
	return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

/** What is charged, as text. */
export function chargedText(row) {
	if (row.imported)
		return `kept by imports: ${row.imported}`;
	return row.frame ? `${row.frame.place || row.frame.name} ${row.frame.place ? row.frame.name : ""}`.trim() : "no stack";
}

/** What is charged, as an element. */
export function chargedElement(row) {
	if (row.imported)
		return h("span", {class: "where"}, "kept by imports: ", h("b", {}, visible(row.imported)),
			row.frame && [" ", h("bdi", {class: "place", title: row.frame.fullPlace}, row.frame.place)]);
	if (!row.frame)
		return h("span", {class: "soft"}, "no stack was recorded");
	const {frame} = row;
	return h("span", {class: "where", title: `${frame.fullName}\n${frame.fullPlace}`},
		frame.category === "own" ? h("b", {}, h("bdi", {}, frame.place || frame.name)) : h("bdi", {class: "place"}, frame.place || frame.name),
		frame.place && [" ", h("bdi", {class: "function soft"}, frame.name)]);
}

function frameLine(frame) {
	const isDim = frame.category === "runtime" || frame.category === "imports" || frame.category === "label";
	return h("li", {title: `${frame.fullName}\n${frame.fullPlace}`},
		h("bdi", {class: frame.category === "own" ? "own" : isDim ? "dim" : null}, frame.name), h("bdi", {class: "place"}, frame.place));
}

/** Fold runs of frames that a reader skips: [frames] or [frame]. */
function fold(frames) {
	const out = [];
	for (let i = 0; i < frames.length;) {
		const {category} = frames[i];
		let n = 1;
		while (i + n < frames.length && frames[i + n].category === category)
			n++;
		if (RUN[category] && n >= RUN[category])
			out.push({category, n});
		else
			out.push(...frames.slice(i, i + n));
		i += n;
	}
	return out;
}

/** The stack of a node, innermost first, as a list. */
export function stackList(tree, node) {
	const frames = stackOf(tree, node), list = h("ol", {class: "stack"});
	const show = (isFolded) => replace(list, (isFolded ? fold(frames) : frames).map((part) => part.n
		? h("li", {}, h("button", {type: "button", onclick: () => show(false)},
			`… ${plural(part.n, "frame")} ${RUN_NAMES[part.category]}`))
		: frameLine(part)));
	show(true);
	return list;
}

/** The details of a row: its largest stacks. */
export function stacks(tree, row) {
	const parts = [...row.parts].sort((a, b) => b.bytes - a.bytes), shown = parts.slice(0, STACKS_SHOWN);
	const rest = parts.slice(STACKS_SHOWN).reduce((sum, part) => sum + part.bytes, 0);
	return h("div", {}, shown.map((part) => [
		h("p", {class: "stack-total"}, `${bytes(part.bytes)} in ${plural(part.blocks, "block")}`), stackList(tree, part.node)]),
	parts.length > shown.length && h("p", {class: "soft"}, `… and ${plural(parts.length - shown.length, "more stack")} with ${bytes(rest)}`));
}

/** A table of what holds memory; more: further columns; isChange: bytes and blocks may be negative. */
export function chargedTable({tree, rows, total, label, more = [], note, isChange = false}) {
	return table({
		rows, label, note, filterText: chargedText, details: (row) => stacks(tree, row),
		columns: [
			{title: "Bytes", value: (row) => row.bytes, text: isChange ? signedBytes : bytes, bar: !isChange},
			...isChange ? [] : [{title: "Share", isMinor: true, value: (row) => row.bytes / total, text: percent}],
			{title: "Blocks", isMinor: true, value: (row) => row.blocks, text: count},
			...more,
			{title: "Where", isText: true, value: chargedText, cell: chargedElement},
		],
	});
}
