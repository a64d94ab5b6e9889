/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/python/python_chain.h"

#include <string.h>

#include "agent/modules/memory_probe.h"
#include "agent/modules/module_registry.h"
#include "agent/producer/counter.h"
#include "agent/python/python_reader.h"
#include "shim/cpython/cpython.h"

#define NEVER UINT64_MAX /* no frame's instruction */
/* links among which a frame is searched: more returns between two captures are rare */
#define SEARCHED 8u
#define FRAME_BYTES 128u /* that are read of a frame, at most */

static inline uint64_t read_instruction(const struct reader *reader, uintptr_t frame)
{
	if (is_likely(reader->has_pointer))
		return word_at(frame + reader->instruction);
	return (uint64_t)(int64_t) * (const int32_t *)(frame + reader->instruction);
}

/* ---- reading new links ------ */

/* Whether a new frame can be read; its page is probed once. */
static bool is_readable(struct python_chain *chain, uintptr_t frame)
{
	uintptr_t pages[] = {torsh_probe_page(frame), torsh_probe_page(frame + bytes_read() - 1)};

	if (frame % sizeof(uintptr_t) || frame < PROBE_PAGE_BYTES)
		return false;
	for (int i = 0; i < 2; i++) {
		uintptr_t *known = &chain->pages[pages[i] / PROBE_PAGE_BYTES % CHAIN_N_PAGES];

		if (is_likely(*known == pages[i]))
			continue;
		if (!torsh_probe(pages[i]))
			return false;
		*known = pages[i];
	}
	return true;
}

/* ---- the cached links ---------------- */

void torsh_python_chain_drop_dead(struct python_chain *chain, uint64_t deaths)
{
	chain->deaths = deaths;
	for (uint32_t i = 0; i < chain->n; i++) {
		struct chain_link *link = &chain->links[i];
		uint32_t version = torsh_cpython_code_version(link->code);

		if (link->version == version)
			continue;
		chain->states[i].instruction = NEVER;
		/* If the address is the same the next code there has this one. */
		link->version = version;
	}
}

/* The number + 1 of this frame among the first n links, or 0. */
static inline uint32_t find_link(const struct python_chain *chain, uint32_t n, uintptr_t frame)
{
	uint32_t least = n > SEARCHED ? n - SEARCHED : 0;

	for (; n > least; n--) {
		if (chain->states[n].previous == frame)
			return n;
	}
	return 0;
}

/* How far the previous capture's links are still valid. */
struct proof {
	bool is_whole; /* they are the whole chain */
	uint32_t last; /* the last link that was checked */
	/* the outermost link with a changed instruction; first + 1: none */
	uint32_t lowest;
	uintptr_t next; /* if not is_whole: the frame to which the last link leads */
};

static inline bool has_moved(const struct python_chain *chain, const struct reader *reader,
			     uint32_t i, uintptr_t frame)
{
	/* A pointer identifies its code as long as no code was freed. */
	return read_instruction(reader, frame) != chain->states[i].instruction ||
	       (!reader->has_pointer && read_code(reader, frame) != chain->links[i].code);
}

/* Two words that are compared at once. */
typedef uint64_t words __attribute__((vector_size(16), may_alias));

/* What the frame of the link before *outer, which *outer names, holds now against what it held. */
static inline __attribute__((always_inline)) words
compare_state(const struct chain_state *outer, const struct reader *reader, bool is_adjacent)
{
	uintptr_t frame = outer->previous;
	words now;

	if (is_adjacent)
		memcpy(&now, (const void *)(frame + reader->previous), sizeof(now));
	else
		now = (words){word_at(frame + reader->previous),
			      word_at(frame + reader->instruction)};
	return now ^ *(const words *)(outer - 1);
}

static inline __attribute__((always_inline)) uint32_t
skip(const struct python_chain *chain, const struct reader *reader, size_t n, bool is_adjacent)
{
	while (n > chain->is_cut) {
		const struct chain_state *at = &chain->states[n], *end = at - chain->near[n - 1];
		words differs = {0};

		for (; at - end >= 4; at -= 4) {
			differs |= compare_state(at, reader, is_adjacent);
			differs |= compare_state(at - 1, reader, is_adjacent);
			differs |= compare_state(at - 2, reader, is_adjacent);
			differs |= compare_state(at - 3, reader, is_adjacent);
		}
		for (; at > end; at--)
			differs |= compare_state(at, reader, is_adjacent);
		if (!is_likely(!(differs[0] | differs[1])))
			break;
		n -= chain->near[n - 1];
	}
	return (uint32_t)n;
}

uint32_t torsh_python_chain_skip(const struct python_chain *chain, uint32_t n)
{
	const struct reader reader = make_reader();

	if (reader.instruction == reader.previous + sizeof(uintptr_t))
		return skip(chain, &reader, n, true);
	return skip(chain, &reader, n, false);
}

/* Check the previous links from number `first` outwards, as long as each leads to the next. */
static inline struct proof prove_links(const struct python_chain *chain,
				       const struct reader *reader, uint32_t first)
{
	struct proof proof = {.lowest = first + 1};
	uintptr_t frame = frame_of(chain, first);
	bool may_skip = reader->has_pointer;
	uint32_t i = first;

	/* Of a cut chain's outermost link only the frame is valid. */
	while (!(i == 0 && chain->is_cut)) {
		uintptr_t predicted = chain->states[i].previous, next = predicted;

		/*
		 * Hides that next equals the value about to be read, so that the loads stay
		 * independent.
		 */
		__asm__("" : "+r"(next));
		if (!is_likely(!has_moved(chain, reader, i, frame)))
			proof.lowest = i;
		if (!is_likely(word_at(frame + reader->previous) == predicted)) {
			proof.last = i;
			proof.next = word_at(frame + reader->previous);
			return proof;
		}
		if (i && may_skip) {
			may_skip = false;
			i = torsh_python_chain_skip(chain, i);
			next = i ? frame_of(chain, i - 1) : 0;
		}
		if (!i)
			break;
		i--;
		frame = next;
	}
	proof.is_whole = true;
	return proof;
}

/* Treat links from..to, counted from the outermost, as new, innermost first. */
static void renew_links(struct python_chain *chain, uint32_t from, uint32_t to)
{
	for (uint32_t i = to + 1; i-- > from;)
		chain->fresh[chain->n_fresh++] = frame_of(chain, i);
}

#define WALK_AGAIN UINT32_MAX

/*
 * Fill fresh with the links from frame outwards. Returns how many previous links are still valid.
 */
static inline uint32_t walk(struct python_chain *chain, const struct reader *reader,
			    uintptr_t frame)
{
	uint32_t n_left = chain->n;

	chain->n_fresh = 0;
	while (frame) {
		uint32_t found = find_link(chain, n_left, frame);

		if (found > chain->is_cut) {
			struct proof proof = prove_links(chain, reader, found - 1);
			uint32_t n_true = proof.is_whole ? proof.lowest : proof.last;

			if (chain->n_fresh + found - n_true > CHAIN_MAX_LINKS)
				return WALK_AGAIN;
			renew_links(chain, n_true, found - 1);
			if (is_likely(proof.is_whole))
				return n_true;
			n_left = n_true;
			frame = proof.next;
			continue;
		}
		if (!is_readable(chain, frame)) {
			torsh_count(COUNTER_python_cut);
			return 0;
		}
		if (chain->n_fresh == CHAIN_MAX_LINKS)
			return WALK_AGAIN;
		chain->fresh[chain->n_fresh++] = frame;
		frame = word_at(frame + reader->previous);
	}
	return 0;
}

/*
 * For a chain deeper than the limit: keep as many inner links as useful, and one that represents
 * the others.
 */
static void walk_deep(struct python_chain *chain, const struct reader *reader, uintptr_t frame)
{
	chain->n = chain->n_fresh = 0;
	chain->is_cut = false;
	while (frame && chain->n_fresh < CHAIN_DEEP_KEPT && is_readable(chain, frame)) {
		chain->fresh[chain->n_fresh++] = frame;
		frame = word_at(frame + reader->previous);
	}
	chain->is_cut = frame;
	if (frame)
		chain->fresh[chain->n_fresh++] = frame;
}

/* ---- updating ---------- */

void torsh_python_chain_fill(struct python_chain *chain, struct chain_line *line,
			     const struct chain_line *wanted, uintptr_t frame)
{
	uint32_t id = torsh_python_code_id(frame, wanted->code, wanted->version,
					   wanted->instruction, &chain->codes);

	*line = *wanted;
	line->id = id;
}

static inline uint32_t find_id(struct python_chain *chain, uint32_t i)
{
	const struct chain_link *link = &chain->links[i];

	if (link->starts && torsh_cpython.at.activations == CPYTHON_BY_FRAME)
		return PYTHON_NO_ID;
	return find_line(chain, frame_of(chain, i), link->code, link->version,
			 chain->states[i].instruction);
}

/* Any thread; two threads in a race make two ids. */
static uint32_t id_of_cut(void)
{
	static _Atomic uint32_t known;
	uint32_t id = atomic_load_explicit(&known, memory_order_relaxed);

	if (!id) {
		id = torsh_registry_add_address(0, ADDRESS_CUT_TOO_DEEP, NULL);
		atomic_store_explicit(&known, id, memory_order_relaxed);
	}
	return id;
}

static inline bool is_on_one_page(uintptr_t frame)
{
	return frame % PROBE_PAGE_BYTES + FRAME_BYTES <= PROBE_PAGE_BYTES;
}

static inline uint8_t count_near(const struct python_chain *chain, uint32_t i)
{
	if (i == 0 || chain->near[i - 1] == CHAIN_MAX_NEAR ||
	    torsh_probe_page(frame_of(chain, i)) != torsh_probe_page(frame_of(chain, i - 1)) ||
	    !is_on_one_page(frame_of(chain, i)) || !is_on_one_page(frame_of(chain, i - 1)))
		return 1;
	return (uint8_t)(chain->near[i - 1] + 1);
}

static void read_link(struct python_chain *chain, const struct reader *reader, uint32_t i,
		      uintptr_t frame)
{
	struct chain_link *link = &chain->links[i];

	chain->states[i + 1].previous = frame;
	chain->states[i].instruction = read_instruction(reader, frame);
	chain->near[i] = count_near(chain, i);
	link->code = read_code(reader, frame);
	link->version = torsh_cpython_code_version(link->code);
	link->starts = is_start(frame);
}

/* The stand-in for the outer links reads "not shown", and never changes. */
static void make_cut(struct python_chain *chain, uintptr_t frame)
{
	chain->states[1].previous = frame;
	chain->states[0].instruction = NEVER;
	/* The next link is not compared together with it. */
	chain->near[0] = CHAIN_MAX_NEAR;
	chain->links[0] = (struct chain_link){.version = torsh_cpython_code_version(0)};
}

/* Append the fresh links after the first n_kept. */
static inline void take_fresh(struct python_chain *chain, const struct reader *reader,
			      uint32_t n_kept, struct chain_difference *difference)
{
	uint32_t n = n_kept, n_old = chain->n;

	for (uint32_t i = chain->n_fresh; i-- > 0; n++) {
		bool started = chain->links[n].starts;
		uint32_t id;

		if (!is_likely(!chain->is_cut || n)) {
			make_cut(chain, chain->fresh[i]);
			id = id_of_cut();
		} else {
			read_link(chain, reader, n, chain->fresh[i]);
			id = find_id(chain, n);
		}
		if (n < difference->first &&
		    (n >= n_old || id != chain->links[n].id || started != chain->links[n].starts))
			difference->first = n;
		chain->links[n].id = id;
		chain->links[n + 1].rank = chain->links[n].rank + (id != PYTHON_NO_ID);
	}
	if (n < n_old && n < difference->first)
		difference->first = n;
	chain->n = n;
}

/*
 * The first of n links that starts an activation now and didn't, or the other way round; else n.
 * CPython 3.11 has it in a function's frame: a call by C and one by the interpreter itself can make
 * frames that are equal but for that.
 */
static uint32_t find_changed_start(const struct python_chain *chain, uint32_t n)
{
	uint16_t at = torsh_cpython.at.frame_is_entry;
	uint32_t first = n;

	for (uint32_t i = n; at && i-- > chain->is_cut;) {
		if (*(const bool *)(frame_of(chain, i) + at) != chain->links[i].starts)
			first = i;
	}
	return first;
}

void torsh_python_chain_update(struct python_chain *chain, uintptr_t frame,
			       struct chain_difference *difference)
{
	const struct reader reader = make_reader();
	uint32_t n_kept = walk(chain, &reader, frame), n_same;

	difference->n_old_ids = chain->links[chain->n].rank;
	difference->n_old = chain->n;
	difference->first = UINT32_MAX;
	if (!n_kept)
		chain->is_cut = false;
	if (n_kept != WALK_AGAIN && n_kept + chain->n_fresh <= CHAIN_MAX_LINKS) {
		n_same = find_changed_start(chain, n_kept);
		if (!is_likely(n_same == n_kept))
			renew_links(chain, n_same, n_kept - 1);
		n_kept = n_same;
	}
	if (!is_likely(n_kept != WALK_AGAIN && n_kept + chain->n_fresh <= CHAIN_MAX_LINKS &&
		       !(chain->is_cut && n_kept + chain->n_fresh < CHAIN_DEEP_FEWEST))) {
		difference->first = 0;
		walk_deep(chain, &reader, frame);
		n_kept = 0;
	}
	difference->n_kept = n_kept;
	take_fresh(chain, &reader, n_kept, difference);
}
