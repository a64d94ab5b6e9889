// SPDX-License-Identifier: Apache-2.0 OR MIT
// The tab How it was recorded: what the recording contains, what is missing, and why.

import {h} from "./dom.js";
import {bytes, count, time, visible} from "./format.js";
import {commandOf, lossAlert} from "./overview.js";
import {table} from "./table.js";

function definitions(pairs) {
	return h("dl", {class: "list"}, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
		.map(([name, value]) => [h("dt", {}, name), h("dd", {}, h("bdi", {}, typeof value === "string" ? visible(value) : value))]));
}

function threads(data) {
	const rows = data.processes.flatMap((process) => (process.threads ?? []).map(([tid, name, start, end, allocs, size, frees, dropped]) =>
		({process, tid, name: name ?? "", start, end, allocs, size, frees, dropped})));
	return h("section", {class: "panel"}, h("h2", {}, "Threads"), table({rows, label: "threads", sortBy: 2, filterText: (row) => `${row.tid} ${row.name} ${row.process.name}`, columns: [
		{title: "Thread", isText: true, value: (row) => row.name, cell: (row) => h("bdi", {}, `${visible(row.name)} (${row.tid})`)},
		{title: "Process", isText: true, value: (row) => `${row.process.name} (${row.process.pid})`},
		{title: "Allocated", value: (row) => row.size, text: bytes, bar: true},
		{title: "Allocations", value: (row) => row.allocs, text: count},
		{title: "Frees", value: (row) => row.frees, text: count},
		{title: "Dropped", value: (row) => row.dropped, text: (value) => value ? count(value) : ""},
		{title: "Began", value: (row) => row.start, text: time},
	]}));
}

export function recordedTab(data) {
	const {recording, events} = data, notes = [...new Set(data.processes.flatMap((process) => process.notes))];
	const waited = data.processes.reduce((sum, process) => sum + process.waited_ns, 0);
	return h("div", {}, lossAlert(data),
		h("div", {class: "grid"},
			h("section", {class: "panel"}, h("h2", {}, "Recording"), definitions([
				["File", recording.file], ["Size", bytes(recording.size_bytes)], ["Host", recording.host],
				["Began", recording.start_realtime_ms === null ? null : new Date(recording.start_realtime_ms).toLocaleString()],
				["Written by", `agent ${recording.agent_version ?? "?"}, this page by ${recording.made_by}`],
				["Heap", recording.record === "full" ? "every event" : "folded by stack"],
				["Whole", recording.is_whole ? "yes" : recording.is_being_written ? "it is still being written" : "no"],
				["Ended early", recording.reasons.join("; ")],
				["Pauses", recording.pauses.map(([from, until]) => `${time(from)} to ${until === null ? "the end" : time(until)}`).join(", ")],
				["Events", `${count(events.produced)} made, ${count(events.delivered)} recorded, ${count(events.dropped)} lost`],
				["Waiting for the recorder", time(waited)], ["Nodes of the call tree", recording.stacks === null ? null : count(recording.stacks)],
				["Writer's memory", recording.writer_bytes === null ? null : bytes(recording.writer_bytes)],
				["On this page", data.n_halved ? `the limits of lists and trees were halved ${data.n_halved} times, so that the file stays small` : null],
			])),
			h("section", {class: "panel"}, h("h2", {}, "What to keep in mind"), notes.length ? h("ul", {}, notes.map((note) => h("li", {}, visible(note)))) : h("p", {class: "soft"}, "Nothing was left out."),
				h("h3", {}, "Commands"), h("p", {class: "soft"}, "The whole recording is read by these:"),
				["report", "leaks", "peak", "ops", "steps"].map((name) => h("div", {class: "command-line"}, `torsh ${name} ${visible(recording.file ?? "DIR")}`,
					data.served && h("a", {href: `json/${name}?limit=0`, target: "_blank", rel: "noreferrer noopener"}, "JSON"))))),
		h("section", {class: "panel"}, h("h2", {}, "Processes"), data.processes.map((process) => h("details", {open: data.processes.length === 1}, h("summary", {class: "code"}, `${process.pid}  ${commandOf(process)}`), definitions([
			["Program", process.program], ["Command", process.arguments.join(" ")], ["End", process.end], ["Allocator", process.allocator],
			["Resident peak", process.rss_peak_bytes === null ? null : `${bytes(process.rss_peak_bytes)} (${process.rss_peak_source ?? ""})`],
			["Not followed", process.not_followed], ["Heap", process.heap_problem],
			["Counters", data.counters.filter(([i]) => data.processes[i] === process).map(([, name, value]) => `${name} ${count(value)}`).join(", ")],
		])))), threads(data));
}
