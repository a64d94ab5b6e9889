// SPDX-License-Identifier: Apache-2.0 OR MIT
// Decodes the page's JSON document, in which texts and frames are numbers, and trees are columns.

import {describe} from "./frames.js";
import {decodeSpan} from "./timeline.js";

/** Decode the columns of a tree: parents precede their children; self has an array per weight. */
function decodeTree(columns, frames) {
	const n = columns.parent.length, parent = new Int32Array(n), weights = {};
	for (let i = 1; i < n; i++)
		parent[i] = i - columns.parent[i];
	parent[0] = -1;
	for (const [name, weight] of Object.entries(columns.weights))
		weights[name] = {bytes: Float64Array.from(weight.bytes), blocks: Float64Array.from(weight.blocks)};
	return {n, parent, frame: Int32Array.from(columns.frame), weights, frames, leftOut: columns.left_out};
}

function decodeFrames(columns, text) {
	return columns.function.map((name, i) => describe({
		number: i, function: text(name), file: text(columns.file[i]) ?? "", module: text(columns.module[i]) ?? "",
		line: columns.line[i], kind: columns.kind[i], category: columns.category[i],
	}));
}

const PROCESS_TEXTS = ["program", "end", "allocator", "not_followed", "rss_peak_source", "heap_problem"];
const RECORDING_TEXTS = ["file", "host", "record", "agent_version", "loss", "snapshot_of"];

function decodeProcess(process, text) {
	for (const name of PROCESS_TEXTS)
		process[name] = text(process[name]);
	process.arguments = process.arguments.map(text);
	process.notes = process.notes.map(text);
	for (const thread of process.threads ?? [])
		thread[1] = text(thread[1]);
	process.name = (process.program ?? "?").split("/").pop();
	return process;
}

function decodeMoments(moments, text) {
	for (const one of moments.processes) {
		one.items = one.items.map(([kind, mark, step, at, bytes, blocks, nChanges]) => ({kind, mark: text(mark), step, at, bytes, blocks, nChanges}));
		one.changes = {group: one.group, bytes: one.bytes, blocks: one.blocks};
	}
}

/** Decode rows of leaks or growth to objects. */
function decodeSites(list, text) {
	list.rows = list.rows.map(([node, bytes, blocks, process, operator, module, firstStep, lastStep, firstNs, lastNs,
		lateSteps, isOfTensors]) => ({node, bytes, blocks, process, operator: text(operator), module: text(module),
		firstStep, lastStep, firstNs, lastNs, lateSteps, isOfTensors}));
}

const OPERATOR = ["name", "calls", "cpu", "own", "least", "half", "p99", "most", "device", "ownDevice", "flops", "allocated"];
const MODULE = ["name", "calls", "forward", "own", "operators", "backward", "device", "flops", "allocated"];
const KERNEL = ["what", "name", "calls", "timed", "total", "least", "most", "bytes", "operator", "confidence"];
const STEP = ["process", "number", "start", "duration", "device", "peak", "flops", "other"];

/** Decode rows to objects with these names; the first n values index texts. */
function named(rows, names, text, texts) {
	return rows.map((row) => Object.fromEntries(names.map((name, i) => [name, texts.includes(name) ? text(row[i]) : row[i]])));
}

function decodeTime(data, text) {
	data.operators.rows = named(data.operators.rows, OPERATOR, text, ["name"]);
	data.modules.rows = named(data.modules.rows, MODULE, text, ["name"]);
	data.kernels.rows = named(data.kernels.rows, KERNEL, text, ["what", "name", "operator", "confidence"]);
	const {steps} = data;
	steps.rule = text(steps.rule);
	steps.rows = steps.rows.map((row) => ({...named([row], STEP, text, [])[0], phases: row.slice(STEP.length)}));
	const sums = steps.phases.map((name, i) => [name, steps.rows.reduce((sum, step) => sum + step.phases[i], 0)]);
	data.phases = steps.n
		? {words: `of ${steps.rows.length} steps`, list: [...sums, ["other", steps.rows.reduce((sum, step) => sum + step.other, 0)]]}
		: {words: "in operators; no steps are known", list: data.operator_phases.map(([name, ns]) => [text(name), ns])};
}

function decodeRss(data, text) {
	for (const account of data.rss) {
		account.undivided = text(account.undivided);
		account.owners = account.owners.map(([kind, name, ...sizes]) => [text(kind), text(name), ...sizes]);
		account.fragments = account.fragments.map(([arena, ...rest]) => [text(arena), ...rest]);
		account.unsampled = text(account.unsampled);
		for (const place of account.breaks?.places ?? [])
			[place[0], place[1], place[3]] = [text(place[0]), text(place[1]), text(place[3])];
	}
	for (const census of data.census)
		census.rows = census.rows.map(([type, ...sizes]) => [text(type), ...sizes]);
}

function decodeFindings(data, text) {
	for (const finding of data.findings) {
		for (const name of ["sentence", "place", "note"])
			finding[name] = text(finding[name]);
		for (const name of ["operator", "kernel", "api", "line"])
			finding.where[name] = text(finding.where[name]);
	}
	for (const rule of data.rules)
		rule.reason = text(rule.reason);
}

function decodeDevices(data, text) {
	for (const device of data.devices)
		Object.assign(device, {name: text(device.name), uuid: text(device.uuid)});
	for (const place of data.device_memory)
		place[1] = text(place[1]);
	for (const owner of data.device_owners)
		[owner[1], owner[2]] = [text(owner[1]), text(owner[2])];
	for (const mode of data.device_modes)
		mode.reason = text(mode.reason);
}

/** Members of the document that are also parts, which `torsh serve` sends complete. */
function decodePart(data, text) {
	if (data.trees) {
		const frames = decodeFrames(data.frames, text);
		for (const name of Object.keys(data.trees))
			data.trees[name] = decodeTree(data.trees[name], frames);
		decodeMoments(data.moments, text);
		decodeSites(data.leaks, text);
		decodeSites(data.growth, text);
		for (const kept of [...data.leaks.bookkeeping, ...data.leaks.suppressed])
			kept[0] = text(kept[0]);
		for (const kept of data.leaks.imports)
			kept[0] = `import ${text(kept[0])}`;
		for (const kept of data.leaks.first_uses)
			kept[0] = `first use of ${text(kept[0])}`;
	}
	if (data.operators)
		decodeTime(data, text);
	if (data.processor)
		data.processor.tree = decodeTree(data.processor.tree, decodeFrames(data.frames, text));
	for (const window of data.windows ?? [])
		window.rows = window.rows.map((row) => decodeSpan(row, text));
}

function parse(json) {
	const data = JSON.parse(json), text = (i) => i ? data.texts[i] : null;
	decodePart(data, text);
	return {data, text};
}

/** Decode the page's document to objects. */
export function load(json) {
	const {data, text} = parse(json);
	for (const name of RECORDING_TEXTS)
		data.recording[name] = text(data.recording[name]);
	data.recording.reasons = data.recording.reasons.map(text);
	data.events.losses = data.events.losses.map(text);
	data.processes = data.processes.map((process) => decodeProcess(process, text));
	data.counters = data.counters.map(([process, name, value]) => [process, text(name), value]);
	decodeFindings(data, text);
	decodeRss(data, text);
	decodeDevices(data, text);
	return data;
}

/** Decode a part of it, with the document's member names. */
export function loadPart(json) {
	return parse(json).data;
}
