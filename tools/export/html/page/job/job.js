// SPDX-License-Identifier: Apache-2.0 OR MIT
// The page of torsh ranks: who makes the others wait and why, who does something else, a heat map of ranks by steps, and tables.

import {append, h, replace, svg} from "../dom.js";
import {bytes, count, percent, plural, si, time} from "../format.js";
import {table} from "../table.js";
import {themeButton} from "../theme.js";

const CELL = 14, LABEL_WIDTH = 64, SHADES = 9;

function rankText(rank) {
	return rank === null ? "no rank" : `rank ${rank}`;
}

function panel(id, title, note, ...content) {
	return h("section", {class: "panel", id}, h("div", {class: "head"}, h("h2", {}, title), h("span", {class: "soft"}, note)), content);
}

/* ---- stragglers ---- */

function causesOf(straggler) {
	return h("ol", {class: "stack"}, straggler.causes.map((cause) => h("li", {}, `${percent(cause.share)} ${cause.kind.replaceAll("_", " ")}: ${cause.evidence}`)));
}

function stragglersPanel(job) {
	const undecided = job.collectives_undecided ? `, ${count(job.collectives_undecided)} undecided` : "";
	const note = `${count(job.collectives_compared)} of ${count(job.collectives_recorded)} collectives compared${undecided}`;
	if (!job.stragglers.length)
		return panel("stragglers", "No stragglers", note, h("p", {class: "soft"}, job.collectives_compared ? "No rank is last more than by turns." : "No collective of two ranks was recorded."));
	return panel("stragglers", "Stragglers", note, job.stragglers.map((straggler) => h("div", {class: "straggler"},
		h("p", {}, h("b", {}, rankText(straggler.rank)), ` was last in ${count(straggler.times_last)} of ${count(straggler.compared)} collectives: the job was ${time(straggler.cost_ns)} (${percent(straggler.share)}) later, the others waited ${time(straggler.waited_ns)}.`),
		causesOf(straggler))));
}

/* ---- outliers ---- */

// The innermost of a path has most of its name; the whole is its title.
function pathOf(difference) {
	return h("span", {title: difference.path}, difference.path.split(" > ").at(-1));
}

function outlierOf(outlier) {
	return h("div", {class: "outlier"},
		h("p", {}, h("b", {}, rankText(outlier.rank)), ` differs in ${percent(outlier.share)} of a step.`),
		table({rows: outlier.differences, label: `what ${rankText(outlier.rank)} does otherwise`, sortBy: 6, columns: [
			{title: "Difference", isText: true, value: (row) => row.kind},
			{title: "In", isText: true, value: (row) => row.path, cell: pathOf},
			{title: "Calls", value: (row) => row.calls, text: count},
			{title: "Others' calls", value: (row) => row.others_calls, text: count},
			{title: "A step", value: (row) => row.step_ns, text: time},
			{title: "Others' step", value: (row) => row.others_step_ns, text: time},
			{title: "Of a step", isMinor: true, value: (row) => row.share, text: percent, bar: true},
		]}));
}

function outliersPanel(job) {
	return job.outliers?.length ? panel("outliers", "Ranks that do something else than the others", "by call paths; of others the median",
		job.outliers.map(outlierOf)) : null;
}

/* ---- heat map ---- */

function heatPanel(job) {
	const rows = job.heatmap.own_ns, most = Math.max(0, ...rows.map((row) => Math.max(0, ...row))), per = job.heatmap.steps_per_bucket;
	if (!most)
		return null;
	const width = LABEL_WIDTH + CELL * Math.max(...rows.map((row) => row.length)), slow = new Set(job.stragglers.map((straggler) => straggler.rank));
	const cells = rows.flatMap((row, y) => row.map((ns, x) => ns ? svg("rect", {x: LABEL_WIDTH + x * CELL, y: y * CELL, width: CELL - 1, height: CELL - 1, fill: "currentColor", "fill-opacity": Math.ceil(ns / most * SHADES) / SHADES},
		svg("title", {}, `${rankText(job.ranks[y].rank)}, ${per > 1 ? `steps ${x * per} to ${(x + 1) * per - 1}` : `step ${x}`}: ${time(ns)}`)) : null));
	const labels = rows.map((_, y) => svg("text", {x: 0, y: y * CELL + CELL - 3, "font-size": 11, fill: "currentColor", "font-weight": slow.has(job.ranks[y].rank) ? "bold" : "normal"}, rankText(job.ranks[y].rank)));
	return panel("heat", "Ranks by steps", `a step without exposed communication, up to ${time(most)}`,
		h("div", {class: "table-scroll", tabindex: "0", role: "region", "aria-label": "ranks by steps"}, svg("svg", {width, height: rows.length * CELL, role: "img", "aria-label": "time of steps by rank"}, labels, cells)));
}

/* ---- tables ---- */

function ofStep(name) {
	return (rank) => rank.steps && rank[name] !== null ? rank[name] / rank.steps : null;
}

function known(text) {
	return (value) => value === null ? "–" : text(value);
}

function ranksPanel(job) {
	const memory = new Map(job.memory.map((row) => [row.rank, row.peak_bytes]));
	return panel("ranks", "Ranks", job.omitted_ranks ? `${count(job.omitted_ranks)} more are left out` : "on average of a step", table({rows: job.ranks, label: "ranks", sortBy: 4, first: 50, filterText: (rank) => `${rankText(rank.rank)} ${rank.host}`, columns: [
		{title: "Rank", isText: true, value: (rank) => rank.rank, text: rankText},
		{title: "Host", isText: true, value: (rank) => rank.host ?? ""},
		{title: "Device", isText: true, isMinor: true, value: (rank) => rank.device ?? ""},
		{title: "Step", value: ofStep("stepped_ns"), text: known(time)},
		{title: "Exposed communication", value: ofStep("exposed_ns"), text: known(time), bar: true},
		{title: "Communication", isMinor: true, value: ofStep("communication_ns"), text: known(time)},
		{title: "Garbage collection", isMinor: true, value: ofStep("gc_ns"), text: known(time)},
		{title: "Memory", value: (rank) => memory.get(rank.rank) ?? null, text: known(bytes)},
		{title: "Clock error", isMinor: true, value: (rank) => rank.clock.error_ns, text: known(time)},
	]}));
}

function collectivesPanel(job) {
	const rate = known((value) => `${si(value)}B/s`);
	return panel("collectives", "Collectives", "of all ranks", table({rows: job.collectives, label: "collectives", sortBy: 5, first: 25, filterText: (row) => `${row.name} ${row.group}`, columns: [
		{title: "Collective", isText: true, value: (row) => row.name},
		{title: "Group", isText: true, isMinor: true, value: (row) => row.group},
		{title: "Calls", value: (row) => row.calls, text: count},
		{title: "Each", value: (row) => row.bytes / row.calls, text: bytes},
		{title: "Time", value: (row) => row.total_ns, text: time},
		{title: "Exposed", value: (row) => row.exposed_ns, text: time, bar: true},
		{title: "Bus", value: (row) => row.bus_bytes_per_s, text: rate},
		{title: "Best", isMinor: true, value: (row) => row.best_bus_bytes_per_s, text: rate},
	]}));
}

function imbalancePanel(job) {
	return job.imbalance.length ? panel("imbalance", "Load imbalance", "(most − mean) / most", table({rows: job.imbalance, label: "imbalance", sortBy: 1, columns: [
		{title: "Phase", isText: true, value: (row) => row.phase},
		{title: "Imbalance", value: (row) => row.ratio, text: percent, bar: true},
	]})) : null;
}

function pathPanel(job) {
	const {ns, communication_ns: transfers, ranks} = job.critical_path;
	return ns ? panel("path", "Critical path", `${time(ns)} through the compared collectives, ${percent(transfers / ns)} of it transfers`, table({rows: ranks, label: "critical path", sortBy: 1, columns: [
		{title: "Through", isText: true, value: (row) => rankText(row.rank)},
		{title: "Time", value: (row) => row.ns, text: time, bar: true},
		{title: "Collectives", value: (row) => row.collectives, text: count},
	]})) : null;
}

function startJob() {
	const job = JSON.parse(document.getElementById("data").textContent);
	document.title = "torsh ranks";
	document.documentElement.classList.add("diff");
	append(document.getElementById("top"), h("div", {class: "title"}, h("span", {class: "mark"}, "torsh"), h("h1", {}, plural(job.ranks.length + job.omitted_ranks, "rank")), h("span", {class: "spring"}), themeButton()));
	replace(document.getElementById("main"), stragglersPanel(job), outliersPanel(job), heatPanel(job), ranksPanel(job), collectivesPanel(job), imbalancePanel(job), pathPanel(job));
	document.documentElement.dataset.ready = "true";
}

startJob();
