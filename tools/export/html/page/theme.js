// SPDX-License-Identifier: Apache-2.0 OR MIT
// The button that switches between dark and light; the system's theme is the default.

import {h} from "./dom.js";

export function themeButton() {
	const root = document.documentElement, isDark = () => root.dataset.theme === "dark";
	const wanted = matchMedia("(prefers-color-scheme: dark)");
	const set = (theme) => {
		root.dataset.theme = theme;
		button.textContent = isDark() ? "Light" : "Dark";
		document.dispatchEvent(new CustomEvent("torsh-theme"));
	};
	const button = h("button", {type: "button", class: "plain", id: "theme", title: "Switch between dark and light", onclick: () => set(isDark() ? "light" : "dark")});
	wanted.addEventListener("change", () => set(wanted.matches ? "dark" : "light"));
	set(wanted.matches ? "dark" : "light");
	return button;
}
