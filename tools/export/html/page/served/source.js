// SPDX-License-Identifier: Apache-2.0 OR MIT
// Where the data comes from: all of it is in the page, or the page is empty and `torsh serve` answers.

class EmbeddedSource {
	constructor(text) {
		this.text = text;
		this.isServed = false;
	}

	async document() {
		return this.text;
	}
}

class ServedSource {
	constructor() {
		this.isServed = true;
	}

	document() {
		return this.get("document");
	}

	/** All that the document cuts of a part: "memory" or "time". */
	part(name) {
		return this.get(name);
	}

	/** The spans of a process between two times. */
	window(process, fromNs, toNs) {
		return this.get(`window?process=${process}&from=${Math.floor(fromNs)}&to=${Math.ceil(toNs)}`);
	}

	/** The answer as text; an error has the server's sentence. */
	async get(path) {
		const answer = await fetch(path, {cache: "no-store", credentials: "omit", redirect: "error"}), text = await answer.text();
		if (!answer.ok)
			throw new Error(text.trim() || `the server answered ${answer.status}`);
		return text;
	}
}

const embedded = document.getElementById("data").textContent;

/** The page's one source. */
export const source = embedded ? new EmbeddedSource(embedded) : new ServedSource();
