// SPDX-License-Identifier: Apache-2.0 OR MIT
// The activity of threads and streams in one step, drawn on a canvas: inner spans of a lane below outer ones.

import {choice, h, replace} from "./dom.js";
import {count, plural, time, visible} from "./format.js";
import {shortFunction} from "./frames.js";
import {openInPerfetto} from "./perfetto.js";
import {Detail, windowPicker} from "./served/served.js";

const SPAN_ROW = 17, HEAD = 20, AXIS = 22, SPAN_TEXT_MIN = 26;
const KINDS = [["operators", "--forward"], ["modules", "--loss"], ["ranges", "--data"], ["calls of CUDA", "--setup"], ["devices", "--optimizer"],
	["Python's garbage collector", "--backward"]];
const DEVICE = 4;

/** Lanes with their spans and depths: [{title, rows, depth}]. */
function lanesOf(data, window) {
	const lanes = new Map(), {threads = []} = data.processes[window.process];
	const names = new Map(threads.map(([tid, name]) => [tid, name]));
	for (const row of window.rows) {
		const key = row.kind === DEVICE ? `device ${row.device}, stream ${row.lane}` : `thread ${row.lane}`;
		const title = row.kind === DEVICE || !names.get(row.lane) ? key : `${names.get(row.lane)} (${row.lane})`;
		if (!lanes.has(key))
			lanes.set(key, {title, isDevice: row.kind === DEVICE, rows: []});
		lanes.get(key).rows.push(row);
	}
	return [...lanes.values()].sort((a, b) => a.isDevice - b.isDevice || b.rows.length - a.rows.length).map(nest);
}

function nest(lane) {
	const open = [];
	lane.rows.sort((a, b) => a.start - b.start || b.duration - a.duration);
	lane.depth = 0;
	for (const row of lane.rows) {
		while (open.length && open[open.length - 1].start + open[open.length - 1].duration <= row.start)
			open.pop();
		row.depth = open.length;
		open.push(row);
		lane.depth = Math.max(lane.depth, open.length);
	}
	return lane;
}

class Timeline {
	constructor(tip) {
		this.tip = tip;
		this.canvas = h("canvas", {tabindex: "0", role: "img", "aria-label": "timeline"});
		this.element = h("div", {class: "timeline"}, this.canvas);
		this.canvas.addEventListener("mousemove", (event) => this.hover(event));
		this.canvas.addEventListener("mouseleave", () => this.tip.hide());
		this.canvas.addEventListener("mousedown", (event) => this.grab(event));
		this.canvas.addEventListener("dblclick", (event) => this.zoomTo(this.rowAt(event)));
		this.canvas.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
		this.canvas.addEventListener("keydown", (event) => this.key(event));
		new ResizeObserver(() => this.draw()).observe(this.element);
		document.addEventListener("torsh-theme", () => this.draw());
	}

	/** marked: what of it shows a finding, [from, until] after its begin; or null. */
	show(data, window, marked = null) {
		Object.assign(this, {data, window, marked});
		this.layOut(window);
		this.view(0, window.duration_ns);
	}

	layOut(window) {
		this.lanes = lanesOf(this.data, window);
		this.height = AXIS + this.lanes.reduce((sum, lane) => sum + HEAD + lane.depth * SPAN_ROW, 0) + 4;
	}

	/** Draw these spans instead of the document's, in the visible range. */
	fill(rows) {
		this.layOut({...this.window, rows});
		this.draw();
	}

	view(from, to) {
		const whole = this.window.duration_ns, length = Math.min(whole, Math.max(50, to - from));
		this.from = Math.max(0, Math.min(from, whole - length));
		this.to = this.from + length;
		this.draw();
		this.onview?.();
	}

	zoom(factor, centre) {
		const length = (this.to - this.from) * factor, share = (centre - this.from) / (this.to - this.from);
		this.view(centre - length * share, centre + length * (1 - share));
	}

	zoomTo(row) {
		if (row)
			this.view(row.start - row.duration * 0.05, row.start + row.duration * 1.05);
	}

	draw() {
		const {element, canvas} = this, width = element.clientWidth, scale = window.devicePixelRatio || 1;
		if (!this.lanes || !width)
			return;
		const style = getComputedStyle(element), of = (name) => style.getPropertyValue(name).trim(), context = canvas.getContext("2d");
		canvas.width = width * scale;
		canvas.height = this.height * scale;
		canvas.style.width = `${width}px`;
		canvas.style.height = `${this.height}px`;
		context.scale(scale, scale);
		context.font = style.font;
		context.textBaseline = "middle";
		this.boxes = [];
		this.pixel = width / (this.to - this.from);
		this.drawAxis(context, width, of);
		this.drawMark(context, of);
		let y = AXIS;
		for (const lane of this.lanes) {
			context.fillStyle = of("--soft");
			context.fillText(visible(lane.title), 4, y + HEAD / 2);
			this.drawLane(context, lane, y + HEAD, width, of);
			y += HEAD + lane.depth * SPAN_ROW;
		}
	}

	drawMark(context, of) {
		if (!this.marked)
			return;
		const [from, until] = this.marked;
		context.fillStyle = of("--warn");
		context.globalAlpha = 0.25;
		context.fillRect((from - this.from) * this.pixel, AXIS, Math.max((until - from) * this.pixel, 2), this.height - AXIS);
		context.globalAlpha = 1;
	}

	drawAxis(context, width, of) {
		const wanted = (this.to - this.from) / Math.max(2, width / 120), power = 10 ** Math.floor(Math.log10(wanted));
		const step = power * [1, 2, 5, 10].find((factor) => factor * power >= wanted);
		context.fillStyle = of("--soft");
		context.strokeStyle = of("--line");
		for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
			const x = (at - this.from) * this.pixel;
			context.beginPath();
			context.moveTo(x + 0.5, AXIS - 6);
			context.lineTo(x + 0.5, this.height);
			context.stroke();
			context.fillText(time(at), x + 4, AXIS / 2);
		}
	}

	drawLane(context, lane, top, width, of) {
		for (const row of lane.rows) {
			const x = (row.start - this.from) * this.pixel, w = Math.max(row.duration * this.pixel, 0.5);
			if (x > width || x + w < 0)
				continue;
			const left = Math.max(x, 0), shown = Math.min(x + w, width) - left, y = top + row.depth * SPAN_ROW;
			context.fillStyle = of(KINDS[row.kind][1]);
			context.globalAlpha = 0.8;
			context.fillRect(left, y, Math.max(shown - 0.7, 0.5), SPAN_ROW - 2);
			context.globalAlpha = 1;
			this.boxes.push([row, left, y, Math.max(shown, 2)]);
			if (shown > SPAN_TEXT_MIN)
				this.drawText(context, row.label, left + 4, y + SPAN_ROW / 2 - 1, shown - 8, of("--flame-text"));
		}
	}

	drawText(context, text, x, y, width, colour) {
		const each = this.letterWidth ??= context.measureText("abcdefghijklmnop").width / 16, n = Math.floor(width / each);
		context.fillStyle = colour;
		if (n > 1)
			context.fillText(text.length > n ? `${text.slice(0, n - 1)}…` : text, x, y);
	}

	rowAt(event) {
		const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
		return this.boxes.find(([, left, top, w]) => x >= left && x <= left + w && y >= top && y < top + SPAN_ROW)?.[0];
	}

	hover(event) {
		const row = this.rowAt(event);
		if (!row)
			this.tip.hide();
		else
			this.tip.show(event.clientX, event.clientY, [row.fullName, `${time(row.duration)}, ${time(row.start)} after the step began`, KINDS[row.kind][0]]);
	}

	grab(event) {
		const begin = event.clientX, {from, to} = this;
		const move = (moved) => this.view(from - (moved.clientX - begin) / this.pixel, to - (moved.clientX - begin) / this.pixel);
		const end = () => {
			removeEventListener("mousemove", move);
			removeEventListener("mouseup", end);
		};
		addEventListener("mousemove", move);
		addEventListener("mouseup", end);
	}

	wheel(event) {
		if (!event.ctrlKey && !event.metaKey)
			return;
		event.preventDefault();
		const x = event.clientX - this.canvas.getBoundingClientRect().left;
		this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.from + x / this.pixel);
	}

	/** As in Perfetto: w and s zoom, a and d move; 0 shows all. */
	key(event) {
		const length = this.to - this.from, middle = this.from + length / 2;
		const actions = {
			w: () => this.zoom(0.7, middle), "+": () => this.zoom(0.7, middle), s: () => this.zoom(1.4, middle), "-": () => this.zoom(1.4, middle),
			a: () => this.view(this.from - length / 5, this.to - length / 5), d: () => this.view(this.from + length / 5, this.to + length / 5),
			ArrowLeft: () => actions.a(), ArrowRight: () => actions.d(), 0: () => this.view(0, this.window.duration_ns),
		};
		if (!actions[event.key] || event.ctrlKey || event.metaKey)
			return;
		actions[event.key]();
		event.preventDefault();
		event.stopPropagation();
	}
}

/** Decode a span of the document. */
export function decodeSpan([kind, lane, name, start, duration, device], text) {
	const fullName = visible(text(name) ?? "?");
	return {kind, lane, fullName, label: shortFunction(fullName), start, duration, device};
}

function titleOf(window) {
	if (window.finding !== null)
		return `finding ${window.finding}`;
	return window.step === null ? window.title : `${window.title} (step ${window.step}, ${time(window.duration_ns)})`;
}

/** The window of the finding that the address names, or the first. */
function windowOf(data, wanted) {
	return data.windows.find((window) => window.finding === wanted) ?? data.windows[0];
}

/** What shows the finding of a window, after its begin. */
function markOf(data, window) {
	return data.findings[window.finding - 1]?.shown?.map((at) => at - window.from_ns) ?? null;
}

/** The panel of the timeline; null: nothing was recorded over time. */
export function timelinePanel(data, tip, parameters) {
	if (!data.windows.some((window) => window.rows.length))
		return null;
	const wanted = Number(parameters?.get("finding")) || null;
	const timeline = new Timeline(tip), words = h("span", {class: "soft", role: "status"}), state = {window: windowOf(data, wanted)};
	const found = h("p", {class: "soft", id: "shown-finding"});
	const describe = ({rows, omitted}) => replace(words, `${plural(rows.length, "span")} of ${data.processes[state.window.process].name} (${data.processes[state.window.process].pid})`
		+ (omitted ? `, the ${count(omitted)} shortest are left out` : ""));
	const show = (window) => {
		state.window = window;
		timeline.show(data, window, markOf(data, window));
		replace(found, window.finding ? visible(data.findings[window.finding - 1].sentence) : "");
		describe(window);
	};
	if (data.served)
		new Detail(data, timeline, (fetched, error) => fetched ? describe(fetched) : replace(words, error.message));
	show(state.window);
	if (wanted && state.window.finding !== wanted)
		replace(found, `The spans of finding ${wanted} are not on this page.`);
	return h("section", {class: "panel", id: "timeline"}, h("div", {class: "head"}, h("h2", {}, "Timeline"), words),
		h("div", {class: "controls"}, data.windows.length > 1 && choice("Step", data.windows.map((window, i) => [String(i), titleOf(window)]), String(data.windows.indexOf(state.window)), (i) => show(data.windows[i])),
			data.served && windowPicker(data, state.window, show),
			h("button", {type: "button", class: "plain", onclick: () => openInPerfetto(data, state.window)}, "Open this in Perfetto")),
		found, timeline.element,
		h("div", {class: "legend"}, KINDS.map(([title, colour]) => h("span", {}, h("i", {style: {background: `var(${colour})`}}), title)),
			h("span", {}, "Drag to move, Ctrl and wheel or w and s to zoom, double-click a span, 0 for all.")),
		h("p", {class: "soft"}, "The whole run, for ", h("a", {href: "https://ui.perfetto.dev", rel: "noreferrer noopener", target: "_blank"}, "ui.perfetto.dev"), ":"),
		h("div", {class: "command-line"}, `torsh export ${visible(data.recording.file ?? "DIR")} --format perfetto -o trace.pftrace`));
}
