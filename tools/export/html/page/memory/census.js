// SPDX-License-Identifier: Apache-2.0 OR MIT
// Python's small objects near the peak, by type.

import {h} from "../dom.js";
import {bytes, count, percent, plural, time} from "../format.js";
import {table} from "../table.js";

/** The types of a census, each with its sizes. */
function typesOf(census) {
	const types = new Map();
	for (const [name, size, objects] of census.rows) {
		const type = types.get(name) ?? {name: name ?? "parts of objects", objects: 0, bytes: 0, sizes: []};
		type.objects += objects;
		type.bytes += objects * size;
		type.sizes.push([size, objects]);
		types.set(name, type);
	}
	return [...types.values()];
}

function sizesOf(type) {
	return h("ul", {class: "plain"}, type.sizes.map(([size, objects]) => h("li", {}, `${count(objects)} of ${bytes(size)}`)));
}

/** A panel for a process's census. */
export function censusPanel(data, census) {
	const process = data.processes[census.process], from = census.from_peak_ns;
	const left = census.changed ? ` Left out: ${plural(census.changed, "pool")} that changed meanwhile.` : "";
	return h("section", {class: "panel census"}, h("div", {class: "head"}, h("h2", {}, "Python's objects of up to 512 bytes near the peak"),
		h("span", {class: "soft"}, `${process.name} (${process.pid}): ${plural(census.objects, "object")}, ${bytes(census.bytes)} in ${bytes(census.pool_bytes)} of pools. Counted while it ran, ${time(Math.abs(from))} ${from < 0 ? "before" : "after"} its heap's peak; the heap had ${bytes(census.heap_bytes)} then, of ${bytes(census.heap_peak_bytes)}.${left}`)),
	table({rows: typesOf(census), label: "Python's objects by type", sortBy: 1, first: 30, filterText: (row) => row.name, details: sizesOf, columns: [
		{title: "Objects", value: (row) => row.objects, text: count},
		{title: "Bytes", value: (row) => row.bytes, text: bytes, bar: true},
		{title: "of all", value: (row) => row.bytes / census.bytes, text: percent},
		{title: "Type", isText: true, value: (row) => row.name},
	]}));
}
