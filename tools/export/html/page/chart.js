// SPDX-License-Identifier: Apache-2.0 OR MIT
// Curves over time by uPlot (vendor/), which draws ten thousand points within milliseconds, and zooms.

import {h, replace} from "./dom.js";
import {bytes} from "./format.js";

function cssColour(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(values, more) {
	return {stroke: cssColour("--soft"), grid: {stroke: cssColour("--line"), width: 1}, ticks: {stroke: cssColour("--line"), width: 1, size: 4},
		font: "11px system-ui, sans-serif", values, ...more};
}

/** Axis ticks at multiples of 1024: the axis counts in MiB, as the tables do. */
function byteSteps(plot, axisNumber, least, most, increment) {
	const power = 2 ** Math.ceil(Math.log2(Math.max(1, increment))), out = [];
	for (let at = Math.ceil(least / power) * power; at <= most; at += power)
		out.push(at);
	return out;
}

/** Vertical lines with labels: [{at, text, colour}]. */
function marker(marks) {
	return (plot) => {
		const {ctx} = plot, {left, top, width, height} = plot.bbox, scale = window.devicePixelRatio || 1;
		ctx.save();
		ctx.font = `${11 * scale}px system-ui, sans-serif`;
		for (const [i, {at, text, colour}] of marks.entries()) {
			const x = plot.valToPos(at, "x", true), isRight = x > left + width * 0.7;
			if (x < left - 1 || x > left + width + 1)
				continue;
			ctx.strokeStyle = ctx.fillStyle = cssColour(colour);
			ctx.setLineDash([4 * scale, 3 * scale]);
			ctx.beginPath();
			ctx.moveTo(x, top);
			ctx.lineTo(x, top + height);
			ctx.stroke();
			ctx.textAlign = isRight ? "right" : "left";
			// A border in the colour of the ground keeps the words readable on a curve.
			ctx.setLineDash([]);
			ctx.lineWidth = 4 * scale;
			ctx.strokeStyle = cssColour("--panel");
			ctx.strokeText(text, x + (isRight ? -5 : 5) * scale, top + (11 + 14 * (i % 3)) * scale);
			ctx.lineWidth = scale;
			ctx.fillText(text, x + (isRight ? -5 : 5) * scale, top + (11 + 14 * (i % 3)) * scale);
		}
		ctx.restore();
	};
}

/**
 * A chart that fills its container. times: x, in seconds; series: {label, values, colour, fill, isSolid, paths, format,
 * own: the values that the legend shows, if others than those that are drawn};
 * marks: lines, redrawn by refresh(); onpick(x, event): the user clicked at a time; format: for values.
 */
export function curves({times, series, marks = [], onpick, format = bytes, height = 260, label, xFormat = (x) => `${x} s`, isBytes = true}) {
	const place = h("div", {class: "chart", role: "img", "aria-label": label});
	let plot = null;
	const draw = () => {
		const width = place.clientWidth;
		if (!width)
			return;
		plot?.destroy();
		replace(place);
		plot = new uPlot({
			width, height, legend: {live: width > 500}, cursor: {drag: {x: true, y: false}, points: {size: 6}}, scales: {x: {time: false}, y: {range: (u, low, high) => [0, (high || 1) * 1.06]}},
			axes: [axis((u, splits) => splits.map(xFormat)), axis((u, splits) => splits.map((value) => format(value)), {size: 68, ...(isBytes ? {splits: byteSteps} : {})})],
			series: [{label: "at", value: (u, value) => value === null ? "–" : xFormat(Number(value.toFixed(3)))}, ...series.map((one) => ({
				label: one.label, stroke: cssColour(one.colour), width: one.width ?? 1.5, points: {show: false}, spanGaps: true, paths: one.paths,
				fill: one.isSolid ? cssColour(one.colour) : one.fill ? `${cssColour(one.colour)}22` : undefined,
				value: (u, value, i, at) => format(one.own && value !== null ? one.own[at] : value), show: one.isShown ?? true}))],
			hooks: {draw: [marker(marks)]},
		}, [times, ...series.map((one) => one.values)], place);
		if (onpick)
			plot.over.addEventListener("click", (event) => onpick(plot.posToVal(event.offsetX, "x"), event));
	};
	place.refresh = () => plot?.redraw(false);
	let seen = 0;
	new ResizeObserver(() => {
		if (place.clientWidth !== seen) {
			seen = place.clientWidth;
			draw();
		}
	}).observe(place);
	document.addEventListener("torsh-theme", draw);
	return place;
}

/** Bars with a name before and a number after each: [{name, value, text}]. */
export function bars(rows, colour = "--accent") {
	const most = Math.max(...rows.map((row) => row.value), 1);
	return h("div", {class: "bars"}, rows.map((row) => [
		h("span", {class: "soft nowrap"}, row.name),
		h("span", {class: "track"}, h("span", {class: "fill", style: {width: `${row.value / most * 100}%`, background: `var(${row.colour ?? colour})`}})),
		h("span", {class: "number"}, row.text)]));
}
