// SPDX-License-Identifier: Apache-2.0 OR MIT
// The tab RSS: who owned the resident memory of a process, what allocators retain, where inherited pages were broken,
// and Python's objects.

import {bars} from "../chart.js";
import {h, replace} from "../dom.js";
import {bytes, count, percent, plural, time} from "../format.js";
import {table} from "../table.js";
import {censusPanel} from "./census.js";

/** Returns whether resident memory was accounted for, or Python's objects. */
export function hasRss(data) {
	return data.rss.length > 0 || data.census.length > 0;
}

function sizeText(sizeClass) {
	if (sizeClass === null)
		return "no live block";
	return sizeClass ? `${bytes(2 ** (sizeClass - 1))} to ${bytes(2 ** sizeClass)}` : "0 B";
}

/** Sums of owners by kind, the largest first. */
function kindsOf(account) {
	const sums = new Map();
	for (const [kind, , size] of account.owners)
		sums.set(kind, (sums.get(kind) ?? 0) + size);
	return [...sums].sort((a, b) => b[1] - a[1]);
}

function ownersPanel(account) {
	const rows = account.owners.map(([kind, name, size, pss]) => ({kind, name: name ?? "others, or without a name", size, pss}));
	return h("section", {class: "panel", id: "rss-owners"}, h("h2", {}, "Who owned it"),
		table({rows, label: "owners of resident memory", filterText: (row) => `${row.kind} ${row.name}`, first: 40, columns: [
			{title: "Bytes", value: (row) => row.size, text: bytes, bar: true},
			{title: "of RSS", value: (row) => row.size / account.bytes, text: percent},
			{title: "PSS", value: (row) => row.pss, text: bytes, isMinor: true, help: "about: shared pages of an area count as equally shared"},
			{title: "Kind", isText: true, value: (row) => row.kind},
			{title: "Owner", isText: true, value: (row) => row.name},
		]}));
}

function fragmentsPanel(account) {
	const rows = account.fragments.map(([arena, size, live, free, whole]) => ({arena, size, live, free, whole})).filter((row) => row.free);
	const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
	return rows.length > 0 && h("section", {class: "panel", id: "rss-free"}, h("div", {class: "head"}, h("h2", {}, "Free, and retained by allocators"),
		h("span", {class: "soft"}, `${bytes(sum("free"))}, of these ${bytes(sum("whole"))} in pages without a live block. It is no leak: the next blocks get it.`)),
	table({rows, label: "free memory by arena and size", sortBy: 2, first: 30, columns: [
		{title: "Arena", isText: true, value: (row) => row.arena},
		{title: "Live block before it", value: (row) => row.size ?? 99, text: (value, row) => sizeText(row.size)},
		{title: "Free", value: (row) => row.free, text: bytes, bar: true},
		{title: "in whole pages", value: (row) => row.whole, text: bytes},
		{title: "Live", value: (row) => row.live, text: bytes},
	]}));
}

/** What a fork wrote to, which gave it copies of the pages that it shared. */
function breaksPanel({breaks, unsampled}) {
	if (!breaks)
		return unsampled && h("section", {class: "panel", id: "rss-breaks"}, h("h2", {}, "Where it broke inherited pages"),
			h("p", {class: "soft"}, `Not known: the system forbids to sample page faults (${unsampled}).`));
	const rows = breaks.places.map(([name, file, line, module, pages, share, error]) =>
		({name: name ?? "not known", where: file ? `${file}${line === null ? "" : `:${line}`}` : module ?? "", pages, share, error}));
	return rows.length > 0 && h("section", {class: "panel", id: "rss-breaks"}, h("div", {class: "head"}, h("h2", {}, "Where it broke inherited pages"),
		h("span", {class: "soft"}, `About ${plural(breaks.pages, "page")}, of ${plural(breaks.samples, "sampled page fault")} of its first thread; ${plural(breaks.lost, "sample")} lost.`)),
	table({rows, label: "lines that broke inherited pages", filterText: (row) => `${row.name} ${row.where}`, first: 30, columns: [
		{title: "Pages", value: (row) => row.pages, text: count, bar: true},
		{title: "of all", value: (row) => row.share, text: (value, row) => `${percent(value)} ± ${percent(row.error)}`},
		{title: "Function", isText: true, value: (row) => row.name},
		{title: "Line", isText: true, value: (row) => row.where},
	]}));
}

function accountPanels(account) {
	const kinds = kindsOf(account);
	return [
		h("section", {class: "panel", id: "rss-kinds"}, h("div", {class: "head"}, h("h2", {}, bytes(account.bytes)),
			h("span", {class: "soft"}, `${time(account.at_ns)} after the start. PSS ${bytes(account.pss_bytes)}, in huge pages ${bytes(account.huge_bytes)}; beside RSS: swapped out ${bytes(account.swap_bytes)}, page tables ${bytes(account.table_bytes)}.`)),
		bars(kinds.map(([name, value]) => ({name, value, text: `${bytes(value)}  ${percent(value / account.bytes)}`}))),
		account.undivided && h("p", {class: "soft"}, `Live blocks can't be told from free memory: ${account.undivided}.`)),
		ownersPanel(account), fragmentsPanel(account), breaksPanel(account),
	];
}

function accountTitle(data, account) {
	const process = data.processes[account.process], when = account.is_peak ? "at its peak" : account.at_exit ? "at the end" : "when last looked at";
	return `${process.name} (${process.pid}), ${bytes(account.bytes)} ${when}`;
}

export function rssTab(data) {
	const place = h("div"), {rss_tree: tree} = data;
	const show = (i) => replace(place, accountPanels(data.rss[i]));
	if (data.rss.length)
		show(0);
	return h("div", {}, data.rss.length > 0 && h("div", {class: "controls"}, h("select", {id: "rss-account", "aria-label": "Process and moment", onchange: (event) => show(Number(event.target.value))},
		data.rss.map((account, i) => h("option", {value: i}, accountTitle(data, account)))),
	tree && h("span", {class: "soft"}, `${plural(tree.n, "process", "processes")} together: PSS ${bytes(tree.pss_bytes)}, where shared memory counts once; the sum of RSS is ${bytes(tree.bytes)}.`)),
	place, data.census.map((census) => censusPanel(data, census)));
}
