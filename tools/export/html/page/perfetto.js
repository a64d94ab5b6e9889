// SPDX-License-Identifier: Apache-2.0 OR MIT
// Sends spans to ui.perfetto.dev when the user clicks: in a separate window, by messages
// (https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui). The page itself requests nothing.

const ADDRESS = "https://ui.perfetto.dev", DEVICE_SPAN = 4, EVERY_MS = 100, TRIES = 300;

/** The spans as Chrome trace events. */
export function traceEvents(data, window) {
	const {pid} = data.processes[window.process];
	return {traceEvents: window.rows.map((row) => ({
		ph: "X", name: row.fullName, pid: row.kind === DEVICE_SPAN ? `device ${row.device}` : pid, tid: row.kind === DEVICE_SPAN ? `stream ${row.lane}` : row.lane,
		ts: (window.from_ns + row.start) / 1000, dur: row.duration / 1000,
	}))};
}

/** Open the spans of a window in Perfetto. */
export function openInPerfetto(data, window) {
	const there = open(ADDRESS), buffer = new TextEncoder().encode(JSON.stringify(traceEvents(data, window))).buffer;
	let n = 0;
	const timer = there && setInterval(() => {
		if (n++ > TRIES)
			clearInterval(timer);
		there.postMessage("PING", ADDRESS);
	}, EVERY_MS);
	const answer = (event) => {
		if (event.source !== there || event.data !== "PONG")
			return;
		clearInterval(timer);
		removeEventListener("message", answer);
		there.postMessage({perfetto: {buffer, title: `torsh: ${window.title}`}}, ADDRESS);
	};
	addEventListener("message", answer);
}
