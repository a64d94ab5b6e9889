// SPDX-License-Identifier: Apache-2.0 OR MIT
// Steps: their phases and their times.

import {h} from "./dom.js";
import {percent, time} from "./format.js";

/** Time by phase, over all steps; null: no phases are known. */
export function phaseStrip(data) {
	const phases = data.phases;
	if (!phases)
		return null;
	const rows = phases.list.filter(([, ns]) => ns), total = rows.reduce((sum, [, ns]) => sum + ns, 0);
	if (!total)
		return null;
	return h("section", {class: "panel wide"}, h("div", {class: "head"}, h("h2", {}, "Time by phase"), h("span", {class: "soft"}, phases.words)),
		h("div", {class: "strip", role: "img", "aria-label": "time by phase"}, rows.map(([name, ns]) =>
			h("span", {style: {flexGrow: String(ns / total), background: `var(--${name})`}, title: `${name} ${time(ns)}`}))),
		h("div", {class: "legend"}, rows.map(([name, ns]) => h("span", {}, h("i", {style: {background: `var(--${name})`}}), `${name} ${percent(ns / total)}, ${time(ns)}`))));
}
