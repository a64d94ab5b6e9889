// SPDX-License-Identifier: Apache-2.0 OR MIT
// A flame graph with the root at the top, drawn on a canvas of the size of its window. Nodes narrower than a
// pixel are not drawn, so that any number of nodes is fast. d3-flame-graph has an element per node and
// requires d3; with tens of thousands of nodes it is too slow to scroll.

import {h, replace} from "./dom.js";
import {search} from "./tree.js";

const ROW = 19, GAP = 1, MIN_WIDTH = 0.7, TEXT_MIN = 28, PAD = 5;
const HUES = {own: "--flame-own", library: "--flame-library", native: "--flame-native", runtime: "--flame-runtime",
	imports: "--flame-imports", label: "--flame-label"};

/** A small change of brightness by name, which distinguishes neighbours. */
function shade(name) {
	let hash = 0;
	for (let i = 0; i < name.length && i < 40; i++)
		hash = hash * 31 + name.charCodeAt(i) | 0;
	return (hash >>> 4 & 7) / 7;
}

export class Icicle {
	/** describe(graph, node): lines for the tooltip; onselect(graph, node): a node was chosen. */
	constructor({describe, onselect, tip}) {
		this.canvas = h("canvas", {tabindex: "0", role: "img", "aria-label": "flame graph"});
		this.spacer = h("div", {class: "icicle-space"}, this.canvas);
		this.element = h("div", {class: "icicle"}, this.spacer);
		Object.assign(this, {describe, onselect, tip, zoomed: 0, selected: 0, hovered: -1, query: null, rectangles: []});
		this.element.addEventListener("scroll", () => this.draw());
		this.canvas.addEventListener("mousemove", (event) => this.hover(event));
		this.canvas.addEventListener("mouseleave", () => this.leave());
		this.canvas.addEventListener("click", (event) => this.click(event));
		this.canvas.addEventListener("keydown", (event) => this.key(event));
		new ResizeObserver(() => this.draw()).observe(this.element);
	}

	/** Show another graph; isDifference: own and total are changes. */
	show(graph, isDifference = false) {
		Object.assign(this, {graph, isDifference, zoomed: 0, selected: 0, hovered: -1, path: [0], names: new Map()});
		this.find(this.query);
		this.zoom(0);
	}

	/** Highlight matching frames; null: end the search. Returns the matches. */
	find(matches) {
		this.query = matches;
		this.result = matches ? search(this.graph, matches) : null;
		this.draw();
		return this.result;
	}

	/** Fill the width with a node, and show its callers above it. */
	zoom(node) {
		this.zoomed = node;
		this.selected = node;
		this.path = [];
		for (let at = node; at > 0; at = this.graph.parent[at])
			this.path.unshift(at);
		this.path.unshift(0);
		this.rows = this.path.length + this.deepest(node);
		this.spacer.style.height = `${this.rows * ROW + 2}px`;
		this.element.scrollTop = Math.max(0, (this.path.length - 3) * ROW);
		this.draw();
		this.onselect?.(this.graph, node);
	}

	/** Returns how many rows of visible width are below a node. */
	deepest(node) {
		const {graph} = this, least = graph.size[node] * MIN_WIDTH / Math.max(300, this.element.clientWidth || 1200);
		let deepest = 0;
		for (const pending = [node]; pending.length;) {
			const at = pending.pop();
			deepest = Math.max(deepest, graph.depth[at] - graph.depth[node]);
			for (const child of graph.children[at])
				if (graph.size[child] > least)
					pending.push(child);
		}
		return deepest;
	}

	/** Returns the rectangles in the window: [node, x, y, width]. */
	layOut(width, top, height) {
		const {graph} = this, out = [], first = this.path.length - 1;
		for (let i = 0; i < first; i++)
			out.push([this.path[i], 0, i * ROW - top, width]);
		const pending = [[this.zoomed, 0, width, first]];
		while (pending.length) {
			const [node, x, w, row] = pending.pop();
			if (row * ROW - top > height)
				continue;
			if ((row + 1) * ROW > top)
				out.push([node, x, row * ROW - top, w]);
			let at = x;
			for (const child of graph.children[node]) {
				const part = w * graph.size[child] / graph.size[node];
				if (part < MIN_WIDTH)
					break;
				pending.push([child, at, part, row + 1]);
				at += part;
			}
		}
		return out.filter(([, , y]) => y > -ROW && y < height);
	}

	colours() {
		const style = getComputedStyle(this.element), of = (name) => style.getPropertyValue(name).trim();
		const colours = {text: of("--flame-text"), dim: of("--flame-dim"), found: of("--flame-found"), line: of("--accent"),
			less: of("--flame-less"), more: of("--flame-more"), same: of("--flame-runtime"), by: {}};
		for (const [category, name] of Object.entries(HUES))
			colours.by[category] = of(name);
		return colours;
	}

	draw() {
		const {graph, element, canvas} = this, width = element.clientWidth, height = element.clientHeight;
		if (!graph || !width || !height)
			return;
		const scale = window.devicePixelRatio || 1, context = canvas.getContext("2d");
		canvas.width = width * scale;
		canvas.height = height * scale;
		canvas.style.width = `${width}px`;
		canvas.style.height = `${height}px`;
		context.scale(scale, scale);
		context.font = getComputedStyle(element).font;
		context.textBaseline = "middle";
		const colours = this.colours();
		this.rectangles = this.layOut(width, element.scrollTop, height);
		for (const rectangle of this.rectangles)
			this.drawNode(context, colours, ...rectangle);
	}

	colourOf(colours, node, frame) {
		if (this.result)
			return this.result.found[node] ? colours.found : colours.dim;
		if (!this.isDifference)
			return frame ? colours.by[frame.category] : colours.by.label;
		const change = this.graph.total[node];
		return change > 0 ? colours.more : change < 0 ? colours.less : colours.same;
	}

	drawNode(context, colours, node, x, y, w) {
		const {graph} = this, frame = graph.frames[graph.frame[node]];
		context.fillStyle = this.colourOf(colours, node, frame);
		context.globalAlpha = (frame ? 0.84 + 0.16 * shade(frame.name) : 1) * (graph.depth[node] < this.path.length - 1 ? 0.6 : 1);
		context.fillRect(x, y, Math.max(w - GAP, 0.6), ROW - GAP);
		context.globalAlpha = 1;
		if (node === this.selected || node === this.hovered) {
			context.strokeStyle = colours.line;
			context.lineWidth = 1.5;
			context.strokeRect(x + 0.75, y + 0.75, Math.max(w - GAP - 1.5, 0.5), ROW - GAP - 1.5);
		}
		if (w < TEXT_MIN)
			return;
		context.fillStyle = colours.text;
		context.fillText(this.fit(context, frame ? frame.label : this.rootName ?? "all", w - 2 * PAD), x + PAD, y + ROW / 2);
	}

	/** Returns as much of a text as fits; the width is estimated from the font, and checked once. */
	fit(context, text, width) {
		const each = this.letterWidth ??= context.measureText("abcdefghijklmnopqrstuvwxyz_.").width / 28;
		let n = Math.floor(width / each * 1.15);
		if (text.length <= n && context.measureText(text).width <= width)
			return text;
		for (n = Math.min(n, text.length); n > 1; n -= Math.max(1, n >> 4)) {
			const cut = `${text.slice(0, n - 1)}…`;
			if (context.measureText(cut).width <= width)
				return cut;
		}
		return "";
	}

	nodeAt(event) {
		const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
		const hit = this.rectangles.find(([, left, top, w]) => x >= left && x < left + w && y >= top && y < top + ROW);
		return hit ? hit[0] : -1;
	}

	hover(event) {
		const node = this.nodeAt(event);
		if (node !== this.hovered) {
			this.hovered = node;
			this.draw();
		}
		this.canvas.style.cursor = node > 0 ? "pointer" : "default";
		if (node < 0)
			this.tip.hide();
		else
			this.tip.show(event.clientX, event.clientY, this.describe(this.graph, node));
	}

	leave() {
		this.hovered = -1;
		this.tip.hide();
		this.draw();
	}

	click(event) {
		const node = this.nodeAt(event);
		if (node >= 0)
			this.zoom(node);
	}

	/** Arrows select neighbours, Enter zooms, Escape shows all again. */
	key(event) {
		const {graph, selected} = this, siblings = graph.children[graph.parent[selected]] ?? [selected];
		const place = siblings.indexOf(selected);
		const moves = {
			ArrowUp: graph.parent[selected], ArrowDown: graph.children[selected][0],
			ArrowLeft: siblings[place - 1], ArrowRight: siblings[place + 1],
		};
		if (event.key === "Enter")
			this.zoom(selected);
		else if (event.key === "Escape" || event.key === "Backspace")
			this.zoom(event.key === "Escape" ? 0 : Math.max(0, graph.parent[this.zoomed]));
		else if (event.key in moves)
			this.select(moves[event.key]);
		else
			return;
		event.preventDefault();
	}

	select(node) {
		if (node === undefined || node < 0)
			return;
		this.selected = node;
		const y = this.graph.depth[node] * ROW, {scrollTop, clientHeight} = this.element;
		if (y < scrollTop || y + ROW > scrollTop + clientHeight)
			this.element.scrollTop = y - clientHeight / 2;
		this.draw();
		this.onselect?.(this.graph, node);
	}
}

/** The tooltip near the mouse: one element for the page. */
export class Tip {
	constructor(element) {
		this.element = element;
	}

	/** lines: the first one is the title. */
	show(x, y, [title, ...lines]) {
		const {element} = this;
		replace(element, h("b", {}, title), lines.map((line) => h("div", {}, line)));
		element.hidden = false;
		const {offsetWidth, offsetHeight} = element, {clientWidth, clientHeight} = document.documentElement;
		element.style.left = `${Math.max(4, Math.min(x + 14, clientWidth - offsetWidth - 6))}px`;
		element.style.top = `${y + 18 + offsetHeight > clientHeight ? Math.max(4, y - offsetHeight - 10) : y + 18}px`;
	}

	hide() {
		this.element.hidden = true;
	}
}
