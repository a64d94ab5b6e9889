// SPDX-License-Identifier: Apache-2.0 OR MIT
// Numbers and names as text, in the same units as the commands print.

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const POWERS = ["", "k", "M", "G", "T", "P"];
const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const UNKNOWN = "–";

/** Three significant digits. */
function digits(number) {
	const size = Math.abs(number);
	return number.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function scaled(number, base, units) {
	let n = number, i = 0;
	while (Math.abs(n) >= base * 0.99995 && i < units.length - 1) {
		n /= base;
		i++;
	}
	return [i ? digits(n) : String(Math.round(n)), units[i]];
}

/** 26214400 is "25.0 MiB". */
export function bytes(number) {
	return number === null || number === undefined ? UNKNOWN : scaled(number, 1024, SIZES).join(" ");
}

/** A change, with its sign. */
export function signedBytes(number) {
	return number > 0 ? `+${bytes(number)}` : number < 0 ? `−${bytes(-number)}` : "0 B";
}

/** 1234567 is "1,234,567". */
export function count(number) {
	return number === null || number === undefined ? UNKNOWN : Math.round(number).toLocaleString("en-US");
}

/** 1234567 is "1.23 M". */
export function si(number) {
	return number === null || number === undefined ? UNKNOWN : scaled(number, 1000, POWERS).join(" ").trim();
}

/** Nanoseconds in the unit that fits. */
export function time(ns) {
	if (ns === null || ns === undefined)
		return UNKNOWN;
	const [factor, unit] = TIMES.find(([factor]) => Math.abs(ns) >= factor) ?? TIMES[3];
	return `${factor === 1 ? Math.round(ns) : digits(ns / factor)} ${unit}`;
}

/** 0.123 is "12.3 %". */
export function percent(share) {
	if (!Number.isFinite(share))
		return UNKNOWN;
	const number = share * 100;
	return `${number && Math.abs(number) < 0.1 ? "< 0.1" : number.toFixed(1)} %`;
}

/** "1 step", "2 steps". */
export function plural(number, one, several = `${one}s`) {
	return `${count(number)} ${Math.round(number) === 1 ? one : several}`;
}

const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Escape invisible characters, and those that change the text direction. */
export function visible(text) {
	return String(text).replace(INVISIBLE,
		(letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** At most n characters: the middle is cut. */
export function middle(text, n) {
	return text.length <= n ? text : `${text.slice(0, Math.ceil(n / 2) - 1)}…${text.slice(text.length - Math.floor(n / 2))}`;
}
