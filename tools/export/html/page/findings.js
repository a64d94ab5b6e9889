// SPDX-License-Identifier: Apache-2.0 OR MIT
// The most important findings, in sentences, and the tab of all findings.

import {h} from "./dom.js";
import {bytes, count, percent, plural, time, visible} from "./format.js";
import {leakRows} from "./memory.js";
import {blame, charge} from "./sites.js";

const SEVERITIES = ["Low", "Medium", "High", "Critical"];
const LEAK_MIN = 64 * 1024;

function nameOf(row) {
	return row.imported ? `what importing ${row.imported} keeps` : row.frame ? row.frame.place || row.frame.name : "code without a recorded stack";
}

function leakFindings(data) {
	return leakRows(data).filter((row) => row.bytes >= LEAK_MIN && (!row.imported || row.growth)).slice(0, 3).map((row) => ({
		rank: 3 + (row.growth ? 1 : 0) + row.bytes / Math.max(1, data.peak.bytes ?? row.bytes), badge: "leak", level: "bad",
		text: `${bytes(row.bytes)} in ${plural(row.blocks, "block")} leaked at ${nameOf(row)}${row.growth ? `, ${bytes(row.growth)} a step` : ""}`
			+ `${row.steps ? `, in steps ${row.steps[0]} to ${row.steps[1]}` : ""}.`,
		then: row.frame?.fullPlace, link: "#memory/leaks", where: "leaks",
	}));
}

/** Growth that is freed at the end, as a list's, and so is no leak. */
function growthFindings(data) {
	const leaked = new Set(leakRows(data).map((row) => row.key));
	return data.growth.rows.filter((row) => !leaked.has(blame(data.trees.merged, row.node).key)).slice(0, 2).map((row) => ({
		rank: 2.5, badge: "growth", level: "warn", link: "#memory/growth", where: "growth",
		text: `${bytes(row.bytes / (row.lateSteps || 1))} more are held after each step, though they are freed in the end.`,
	}));
}

function endFindings(data) {
	return data.processes.filter((process) => process.is_bad_end).slice(0, 2).map((process) => ({
		rank: 2, badge: "end", level: "warn", link: "#overview/processes", where: "processes",
		text: `${process.name} (${process.pid}) ended with ${process.end}${process.end_ns === null ? "" : ` after ${time(process.end_ns - process.start_ns)}`}.`,
	}));
}

/** The evidence of a finding as text. */
export function evidenceText({name, value, unit, limit}) {
	const format = unit === "ns" ? time : unit === "bytes" ? bytes : (number) => `${Number(number.toPrecision(4)).toLocaleString("en-US")} ${unit}`;
	return `${name.replace(/_(pct|ns|bytes)$/, "").replaceAll("_", " ")} ${format(value)}${limit ? ` (${limit.side} ${format(limit.value)})` : ""}`;
}

function ruleFindings(data) {
	return (data.findings ?? []).filter((finding) => !finding.is_remark).map((finding) => ({
		rank: SEVERITIES.indexOf(finding.severity) + (finding.share ?? 0) / 1000, badge: finding.severity.toLowerCase(),
		level: finding.severity === "Low" || finding.severity === "Medium" ? "warn" : "bad",
		text: finding.sentence,
		then: finding.suggestion, link: "#findings", where: "all findings",
	}));
}

function holderFinding(data) {
	const [row] = data.trees.merged.weights.peak ? charge(data.trees.merged, "peak") : [];
	return row && data.peak.bytes ? [{rank: 0.1, badge: "peak", level: "", link: "#memory", where: "memory",
		text: `At the peak ${bytes(row.bytes)} of ${bytes(data.peak.bytes)} (${percent(row.bytes / data.peak.bytes)}) were ${row.imported ? nameOf(row) : `held by ${nameOf(row)}`}.`,
		then: row.frame?.fullPlace}] : [];
}

/** The findings of all kinds, the worst first. */
export function worst(data) {
	return [...leakFindings(data), ...growthFindings(data), ...endFindings(data), ...ruleFindings(data), ...holderFinding(data)]
		.sort((a, b) => b.rank - a.rank);
}

/** Findings as a list of sentences. */
export function findingList(findings) {
	return h("ul", {class: "findings"}, findings.map(({badge, level, text, then, link, where}) => h("li", {},
		h("span", {class: `badge ${level}`}, badge), h("span", {}, visible(text), " ", link && h("a", {href: link}, `See ${where}.`)),
		then && h("span", {class: "then"}, h("bdi", {}, visible(then))))));
}

function whereOf({where, place}) {
	return place || [where.kernel, where.api, where.operator && `in ${where.operator}`, where.device !== null && `device ${where.device}`, where.line]
		.filter(Boolean).join(", ");
}

/** What a finding would gain, as text. */
function gainText({gain_ns: ns, gain_bytes: size, no_gain: reason}) {
	if (reason)
		return `What it would gain is not known: ${reason}.`;
	return `It would gain ${ns === null ? bytes(size) : time(ns)} at most.`;
}

function findingCard(data, finding, i) {
	const isShown = data.windows.some((window) => window.finding === i + 1);
	return h("section", {class: "panel", id: `finding-${i + 1}`},
		h("div", {class: "head"}, h("h2", {}, h("span", {class: `badge ${finding.severity === "Low" || finding.severity === "Medium" ? "warn" : "bad"}`}, finding.severity), " ",
			h("bdi", {}, visible(finding.sentence))), h("span", {class: "soft"}, finding.share === null ? "" : `${percent(finding.share / 100)} of ${finding.share_of}`)),
		whereOf(finding) && h("p", {class: "code"}, h("bdi", {}, visible(whereOf(finding)))),
		h("p", {}, finding.evidence.map(evidenceText).join(", ")),
		h("p", {}, gainText(finding), isShown && [" ", h("a", {href: `#time/timeline?finding=${i + 1}`}, "Show it in the timeline.")]),
		finding.note && h("p", {}, finding.note), h("p", {class: "soft"}, finding.suggestion),
		h("p", {class: "soft"}, "Next: ", h("code", {}, finding.next)),
		h("p", {class: "soft code"}, finding.rule));
}

/** Rules that could not be evaluated, by reason. */
function undecided(rules) {
	const byReason = new Map();
	for (const rule of rules)
		byReason.set(rule.reason ?? "", [...byReason.get(rule.reason ?? "") ?? [], rule.description]);
	return h("details", {}, h("summary", {}, `${plural(rules.length, "rule")} could not be decided`), [...byReason].map(([reason, list]) => [
		h("p", {}, reason), h("ul", {class: "soft"}, list.map((text) => h("li", {}, text)))]));
}

/** The tab Findings: sentences, then the findings by rule, then the rules that could not be evaluated. */
export function findingsTab(data) {
	const {rules, findings} = data, clear = rules.filter((rule) => rule.state === "clear"), open = rules.filter((rule) => rule.state === "not_judged");
	return h("div", {},
		h("section", {class: "panel"}, h("h2", {}, "In short"), findingList(worst(data).slice(0, 8))),
		findings.map((finding, i) => findingCard(data, finding, i)),
		h("section", {class: "panel"}, h("div", {class: "head"}, h("h2", {}, "Rules"),
			h("span", {class: "soft"}, `${count(rules.filter((rule) => rule.state === "fired").length)} of ${rules.length} found something`)),
		clear.length > 0 && [h("p", {class: "soft"}, `${plural(clear.length, "rule")} found nothing:`), h("ul", {}, clear.map((rule) => h("li", {}, rule.description)))],
		open.length > 0 && undecided(open)));
}
