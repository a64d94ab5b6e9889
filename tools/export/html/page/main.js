// SPDX-License-Identifier: Apache-2.0 OR MIT
// The page: its heading, its tabs, and the address. "#memory/leaks?what=leaked" opens a tab at a panel.

import {load, loadPart} from "./data.js";
import {append, h, replace} from "./dom.js";
import {devicesTab, hasDevices} from "./devices.js";
import {findingsTab, worst} from "./findings.js";
import {middle} from "./format.js";
import {Tip} from "./icicle.js";
import {memoryTab} from "./memory.js";
import {commandOf, mainProcess, overviewTab} from "./overview.js";
import {hasProcessor, processorTab} from "./processor.js";
import {hasRanks, ranksTab} from "./ranks.js";
import {recordedTab} from "./recorded.js";
import {hasRss, rssTab} from "./memory/rss.js";
import {source} from "./served/source.js";
import {themeButton} from "./theme.js";
import {hasTime, timeTab} from "./time.js";

const TABS = [
	{id: "overview", title: "Overview", make: overviewTab},
	{id: "memory", title: "Memory", make: memoryTab},
	{id: "rss", title: "RSS", make: rssTab, has: hasRss},
	{id: "time", title: "Time", make: timeTab, has: hasTime},
	{id: "cpu", title: "CPU", make: processorTab, has: hasProcessor},
	{id: "devices", title: "Devices", make: devicesTab, has: hasDevices},
	{id: "ranks", title: "Ranks", make: ranksTab, has: hasRanks},
	{id: "findings", title: "Findings", make: findingsTab, number: (data) => worst(data).length},
	{id: "recorded", title: "How it was recorded", make: recordedTab},
];

/** Parse the part of the address after #: tab, panel, parameters. */
function route() {
	const [path, query] = location.hash.slice(1).split("?"), [tab, panel] = path.split("/");
	return {tab, panel, parameters: new URLSearchParams(query)};
}

class Page {
	constructor(data) {
		this.data = data;
		if (source.isServed)
			data.served = {
				whole: (part) => this.whole(part),
				window: async (...window) => loadPart(await source.window(...window)).windows[0],
			};
		this.tip = new Tip(document.getElementById("tip"));
		this.made = new Map();
		this.tabs = TABS.filter((tab) => tab.has?.(data) ?? true);
		this.drawHead();
		addEventListener("hashchange", () => this.open());
		addEventListener("keydown", (event) => this.key(event));
		this.open();
		document.documentElement.dataset.ready = "true";
	}

	drawHead() {
		const {data} = this, main = mainProcess(data);
		document.title = `${middle(commandOf(main), 120)} – torsh`;
		this.bar = h("div", {class: "tabs", role: "tablist", "aria-label": "Parts of the report"}, this.tabs.map((tab) => h("button", {
			type: "button", role: "tab", id: `tab-${tab.id}`, "aria-controls": "main", onclick: () => this.go(tab.id)},
		tab.title, tab.number && h("span", {class: "n"}, tab.number(data)))));
		append(document.getElementById("top"), h("div", {class: "title"}, h("span", {class: "mark"}, "torsh"),
			h("h1", {}, h("bdi", {title: commandOf(main)}, middle(commandOf(main), 160))), h("span", {class: "soft"}, data.recording.host ?? ""), h("span", {class: "spring"}), themeButton()), this.bar);
	}

	/** Fetch a part, and use it instead of the document's shortened one. */
	async whole(part) {
		Object.assign(this.data, loadPart(await source.part(part)));
		this.made.clear();
		this.open();
	}

	go(id) {
		location.hash = id;
	}

	/** Show what the address selects; a tab is created when it is first shown. */
	open() {
		const {tab: wanted, panel, parameters} = route(), tab = this.tabs.find((one) => one.id === wanted) ?? this.tabs[0];
		const key = `${tab.id}?${parameters}`;
		if (!this.made.has(key))
			this.made.set(key, tab.make(this.data, this.tip, parameters));
		this.tip.hide();
		this.shown = tab;
		for (const button of this.bar.children) {
			const isShown = button.id === `tab-${tab.id}`;
			button.setAttribute("aria-selected", String(isShown));
			button.tabIndex = isShown ? 0 : -1;
		}
		const main = document.getElementById("main");
		main.setAttribute("role", "tabpanel");
		main.setAttribute("aria-labelledby", `tab-${tab.id}`);
		replace(main, this.made.get(key));
		const place = panel && document.getElementById(panel);
		if (place)
			place.scrollIntoView();
		else
			scrollTo(0, 0);
	}

	/** Digits open tabs, "/" searches, arrows move between tabs. */
	key(event) {
		if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey)
			return;
		const at = this.tabs.indexOf(this.shown), isInTabs = event.target.getAttribute("role") === "tab";
		const wanted = /^[1-9]$/.test(event.key) ? this.tabs[event.key - 1]
			: isInTabs && event.key === "ArrowRight" ? this.tabs[(at + 1) % this.tabs.length]
				: isInTabs && event.key === "ArrowLeft" ? this.tabs[(at + this.tabs.length - 1) % this.tabs.length] : null;
		if (event.key === "/") {
			document.querySelector("main input[type=search]")?.focus();
			event.preventDefault();
		} else if (wanted) {
			this.go(wanted.id);
			if (isInTabs)
				document.getElementById(`tab-${wanted.id}`).focus();
		}
	}
}

try {
	new Page(load(await source.document()));
} catch (error) {
	replace(document.getElementById("main"), h("p", {role: "alert"}, `This page can't be shown: ${error.message}`));
	throw error;
}
