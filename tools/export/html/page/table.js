// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tables that sort by their headings, filter while the user types, and open rows.

import {h, replace} from "./dom.js";
import {count} from "./format.js";

const FIRST_ROWS = 100;

/**
 * columns: {title, value(row), text(value, row), bar, sum, isText, isMinor, help, cell(row)} each: rows are sorted
 * by value, text is shown, cell creates an element instead; bar: a bar of the value's share of the largest. options:
 * {rows, columns, sortBy (index of a column), label, filterText(row), details(row), note, first (rows that are shown
 * before "more")}.
 */
export function table({rows, columns, sortBy = 0, label, filterText, details, note, first = FIRST_ROWS}) {
	const state = {sortBy, isDescending: !columns[sortBy].isText, wanted: "", n: first, open: new Set()};
	const body = h("tbody"), head = h("thead"), more = h("div", {class: "more"});
	const redraw = () => drawBody(body, more, state, chosenRows(rows, columns, state, filterText), columns, details, redraw);
	const redrawHead = () => replace(head, h("tr", {}, columns.map((column, i) => heading(column, i, state, () => {
		redrawHead();
		redraw();
	}))));
	redrawHead();
	redraw();
	return h("div", {class: "table-block"},
		h("div", {class: "table-top"},
			filterText && rows.length > 8 && filterBox(label, (wanted) => {
				Object.assign(state, {wanted, n: first});
				redraw();
			}),
			note && h("span", {class: "note"}, note)),
		h("div", {class: "table-scroll", tabindex: "0", role: "region", "aria-label": label},
			h("table", {"aria-label": label}, head, body)),
		more);
}

function filterBox(label, onchange) {
	return h("input", {type: "search", class: "filter", placeholder: "Filter", "aria-label": `Filter ${label}`,
		oninput: (event) => onchange(event.target.value.toLowerCase())});
}

/** Minor columns are hidden on narrow screens. */
function classOf(column) {
	return `${column.isText ? "text" : "number"}${column.isMinor ? " minor" : ""}`;
}

function heading(column, i, state, redraw) {
	const isSorted = state.sortBy === i, direction = isSorted ? state.isDescending ? "descending" : "ascending" : "none";
	const sort = () => {
		state.isDescending = isSorted ? !state.isDescending : !column.isText;
		state.sortBy = i;
		redraw();
	};
	return h("th", {class: classOf(column), "aria-sort": direction, scope: "col", title: column.help},
		h("button", {type: "button", onclick: sort}, column.title,
			h("span", {class: "arrow", "aria-hidden": "true"}, isSorted ? state.isDescending ? "▾" : "▴" : "")));
}

function compare(a, b) {
	if (a === null || a === undefined || b === null || b === undefined)
		return (a === null || a === undefined ? 1 : 0) - (b === null || b === undefined ? 1 : 0);
	return typeof a === "string" ? a.localeCompare(b) : a - b;
}

function chosenRows(rows, columns, state, filterText) {
	const {value} = columns[state.sortBy], sign = state.isDescending ? -1 : 1;
	const chosen = state.wanted ? rows.filter((row) => filterText(row).toLowerCase().includes(state.wanted)) : [...rows];
	const isKnown = (row) => value(row) !== null && value(row) !== undefined;
	return chosen.sort((a, b) => isKnown(a) && isKnown(b) ? sign * compare(value(a), value(b)) : compare(value(a), value(b)));
}

function drawBody(body, more, state, rows, columns, details, redraw) {
	const largest = columns.map((column) => column.bar ? Math.max(...rows.map((row) => Math.abs(column.value(row) ?? 0)), 0) : 0);
	const shown = rows.slice(0, state.n);
	replace(body, shown.map((row) => drawRow(row, columns, largest, state, details, redraw)));
	if (!rows.length)
		body.append(h("tr", {}, h("td", {colspan: columns.length, class: "nothing"}, "Nothing matches.")));
	replace(more, rows.length > shown.length && h("button", {type: "button", onclick: () => {
		state.n = state.n * 4;
		redraw();
	}}, `${count(rows.length - shown.length)} more rows`));
}

function drawRow(row, columns, largest, state, details, redraw) {
	const isOpen = state.open.has(row), content = details && isOpen ? details(row) : null;
	const toggle = () => {
		if (isOpen)
			state.open.delete(row);
		else
			state.open.add(row);
		redraw();
	};
	const line = h("tr", {class: details ? "opens" : null, onclick: details && ((event) => {
		if (!event.target.closest("a, button") && !String(getSelection()))
			toggle();
	})}, columns.map((column, i) => drawCell(row, column, largest[i], i === 0 && details ? opener(isOpen, toggle) : null)));
	return content ? [line, h("tr", {class: "details"}, h("td", {colspan: columns.length}, content))] : line;
}

function opener(isOpen, toggle) {
	return h("button", {type: "button", class: "opener", "aria-expanded": String(isOpen), "aria-label": "Stacks", onclick: toggle},
		isOpen ? "▾" : "▸");
}

function drawCell(row, column, largest, before) {
	const value = column.value(row), text = column.cell ? column.cell(row) : column.text ? column.text(value, row) : value ?? "–";
	const width = column.bar && largest ? Math.abs(value ?? 0) / largest * 100 : 0;
	return h("td", {class: classOf(column)}, before,
		column.bar ? h("span", {class: "with-bar"}, h("span", {class: "bar", style: {width: `${width}%`}}), h("span", {}, text)) : text);
}
