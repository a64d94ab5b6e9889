// SPDX-License-Identifier: Apache-2.0 OR MIT
// The only place that creates elements. Text is inserted as text, so that no name can become markup, and
// invisible characters are escaped.

import {visible} from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
	for (const [name, value] of Object.entries(properties ?? {})) {
		if (value === undefined || value === null || value === false)
			continue;
		if (name.startsWith("on"))
			element.addEventListener(name.slice(2), value);
		else if (name === "style")
			Object.assign(element.style, value);
		else
			element.setAttribute(name, value === true ? "" : String(value).split("\n").map(visible).join("\n"));
	}
	append(element, children);
	return element;
}

/** Append nodes and texts; lists are flattened, and null and false are skipped. */
export function append(element, ...children) {
	for (const child of children.flat(Infinity)) {
		if (child !== null && child !== undefined && child !== false)
			element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
	}
	return element;
}

/** Create an HTML element: properties are attributes, "onclick" and the like listeners, "style" an object. */
export function h(tag, properties, ...children) {
	return fill(document.createElement(tag), properties, children);
}

/** Create an SVG element likewise. */
export function svg(tag, properties, ...children) {
	return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Replace all children of an element. */
export function replace(element, ...children) {
	element.replaceChildren();
	return append(element, children);
}

/** A group of buttons, one of which is chosen, by the user or by mark(value). options: [value, text, title] each. */
export function choice(label, options, chosen, onchoose) {
	const group = h("div", {class: "choice", role: "radiogroup", "aria-label": label});
	const mark = (value) => {
		for (const button of group.children)
			button.setAttribute("aria-checked", String(button.dataset.value === value));
	};
	const choose = (value) => {
		mark(value);
		onchoose(value);
	};
	for (const [value, text, title] of options)
		group.append(h("button", {type: "button", role: "radio", "data-value": value, title,
			"aria-checked": String(value === chosen), onclick: () => choose(value)}, text));
	const element = h("div", {class: "labelled"}, h("span", {class: "label"}, label), group);
	element.mark = mark;
	return element;
}
