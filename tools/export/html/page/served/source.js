// SPDX-License-Identifier: Apache-2.0 OR MIT
// The source of the data: embedded in the page, or fetched from `torsh serve`.

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

	/** Fetch all rows of a part, which the document shortens: "memory" or "time". */
	part(name) {
		return this.get(name);
	}

	/** Fetch the spans of a process between two times. */
	window(process, fromNs, toNs) {
		return this.get(`window?process=${process}&from=${Math.floor(fromNs)}&to=${Math.ceil(toNs)}`);
	}

	/** Returns the response as text; an error has the server's message. */
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
