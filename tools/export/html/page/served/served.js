// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the page can fetch from `torsh serve`: all rows of a part, and any window of the timeline.

import {h, replace} from "../dom.js";

const DELAY_MS = 250;

/** A button that fetches all of a part ("memory" or "time"); null if the page is a file. */
export function wholeButton(data, part, text) {
	const {served} = data;
	if (!served)
		return null;
	const button = h("button", {type: "button", class: "whole", onclick: async () => {
		button.disabled = true;
		replace(button, "Reading the recording …");
		try {
			await served.whole(part);
		} catch (error) {
			replace(button, error.message);
		}
	}}, text);
	return button;
}

/** Fetches the spans of a timeline's visible range, once it has stopped moving. */
export class Detail {
	constructor(data, timeline, onfetched) {
		Object.assign(this, {data, timeline, onfetched, n: 0});
		timeline.onview = () => this.later();
	}

	later() {
		clearTimeout(this.timer);
		if (this.timeline.window.omitted)
			this.timer = setTimeout(() => this.fetch(), DELAY_MS);
	}

	async fetch() {
		const {timeline} = this, {window} = timeline, mine = ++this.n;
		try {
			const fetched = await this.data.served.window(window.process, window.from_ns + timeline.from, window.from_ns + timeline.to);
			if (mine !== this.n || timeline.window !== window)
				return;
			const shift = fetched.from_ns - window.from_ns;
			timeline.fill(fetched.rows.map((row) => ({...row, start: row.start + shift})));
			this.onfetched(fetched);
		} catch (error) {
			this.onfetched(null, error);
		}
	}
}

/** An input for a number of seconds. */
function seconds(label, ns) {
	return h("input", {type: "number", class: "seconds", min: 0, step: "any", "aria-label": label, value: String(ns / 1e9)});
}

/** Controls for a custom window: a step, or times in seconds since the recording began. */
export function windowPicker(data, current, onpick) {
	const from = seconds("from", current.from_ns), to = seconds("to", current.from_ns + current.duration_ns), problem = h("span", {class: "soft", role: "status"});
	const step = h("input", {type: "number", class: "seconds", min: 0, "aria-label": "step", placeholder: "step", onchange: () => {
		const found = data.steps.rows.find((one) => one.number === Number(step.value));
		if (found)
			Object.assign(picked, {process: found.process, step: found.number});
		from.value = found ? String(found.start / 1e9) : from.value;
		to.value = found ? String((found.start + found.duration) / 1e9) : to.value;
	}});
	const picked = {process: current.process, step: null};
	const show = async () => {
		const window = {process: picked.process, from_ns: Math.round(from.value * 1e9), to_ns: Math.round(to.value * 1e9)};
		replace(problem, "Reading the recording …");
		try {
			onpick(await data.served.window(window.process, window.from_ns, window.to_ns));
			replace(problem);
		} catch (error) {
			replace(problem, error.message);
		}
	};
	return h("form", {class: "labelled window-picker", onsubmit: (event) => {
		event.preventDefault();
		show();
	}}, h("span", {class: "label"}, "Window"), data.steps.n > 0 && step, from, "to", to, "s", h("button", {type: "submit"}, "Show"), problem);
}
