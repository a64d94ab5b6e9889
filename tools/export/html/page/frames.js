// SPDX-License-Identifier: Apache-2.0 OR MIT
// The kind of a frame: the user's own code, a library, the import machinery, or the run-time system.

import {visible} from "./format.js";

export const KIND = {NATIVE: 0, PYTHON: 1, CUT: 2, LABEL: 3, OTHERS: 4, IMPORT: 5};

/* The order of enum html_frame_category in html_frames.h: which one a frame is, the writer of the page decides. */
const CATEGORIES = ["own", "library", "imports", "native", "runtime", "label"];
export const LABEL = CATEGORIES.indexOf("label");

/** "std::map<int, long>::at" is "std::map<…>::at". */
export function shortFunction(name) {
	if (!name.includes("<") || name.startsWith("<"))
		return name;
	let depth = 0, out = "";
	for (let i = 0; i < name.length; i++) {
		const letter = name[i], isOperator = name.startsWith("operator", i - 8) || name[i - 1] === "-";
		if (letter === "<" && !isOperator && depth++ === 0)
			out += "<…>";
		else if (letter === ">" && !isOperator && depth > 0)
			depth--;
		else if (depth === 0)
			out += letter;
	}
	return out || name;
}

/** A path from its package on: "torch/_ops.py"; otherwise the last two components. */
export function shortPath(path) {
	const packaged = path.split(/\/(?:site|dist)-packages\/|\/lib(?:64)?\/python3\.\d+t?\//);
	if (packaged.length > 1)
		return packaged[packaged.length - 1];
	return path.startsWith("<") ? path : path.split("/").slice(-1)[0];
}

/** Add to a frame of the document what the page shows of it. */
export function describe(frame) {
	frame.category = CATEGORIES[frame.category];
	frame.name = visible(shortFunction(frame.function || "?"));
	frame.fullName = visible(frame.function || "?");
	const file = frame.file ? visible(shortPath(frame.file)) : frame.module ? visible(shortPath(frame.module)) : "";
	frame.place = file && frame.line ? `${file}:${frame.line}` : file;
	frame.fullPlace = visible(frame.file ? frame.file + (frame.line ? `:${frame.line}` : "") : frame.module || "");
	frame.label = frame.kind >= KIND.CUT ? frame.name : frame.place ? `${frame.name}  ${frame.place}` : frame.name;
	return frame;
}
