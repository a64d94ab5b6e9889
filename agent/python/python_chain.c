/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/python/python_chain.h"

#include "agent/modules/memory_probe.h"
#include "agent/modules/module_registry.h"
#include "agent/producer/counter.h"
#include "shim/cpython/cpython.h"

#define is_likely(x) __builtin_expect(!!(x), 1)

#define NEVER UINT64_MAX /* no frame's instruction */
/* links among which a frame is searched: more returns between two captures are rare */
#define SEARCHED 8u
#define FRAME_BYTES 128u /* covers everything that is read of a frame */
#define OBJECT_BITS (~(uintptr_t)7) /* references carry low tag bits from 3.14 on */

/* What is read of every frame, with the offsets loaded. */
struct reader {
	uint16_t previous, instruction, code;
	bool has_pointer;
};

static inline struct reader make_reader(void)
{
	const struct cpython_layout *at = &torsh_cpython.at;

	return (struct reader){
		.previous = at->frame_previous,
		.instruction = at->frame_instruction,
		.code = at->frame_code,
		.has_pointer = at->instruction == CPYTHON_POINTER,
	};
}

static inline uintptr_t word_at(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

static inline uint64_t read_instruction(const struct reader *reader, uintptr_t frame)
{
	if (is_likely(reader->has_pointer))
		return word_at(frame + reader->instruction);
	return (uint64_t)(int64_t) * (const int32_t *)(frame + reader->instruction);
}

static inline uintptr_t read_code(const struct reader *reader, uintptr_t frame)
{
	return word_at(frame + reader->code) & OBJECT_BITS;
}

/* ---- reading new links ------ */

/* Whether a new frame can be read; its page is probed once. */
static bool is_readable(struct python_chain *chain, uintptr_t frame)
{
	uintptr_t pages[] = {torsh_probe_page(frame), torsh_probe_page(frame + FRAME_BYTES - 1)};

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

/* Drop links to code objects that were freed since, wherever their frames are. */
static __attribute__((noinline)) void drop_dead(struct python_chain *chain, uint64_t deaths)
{
	chain->deaths = deaths;
	for (uint32_t i = 0; i < chain->n; i++) {
		if (chain->links.version[i] != torsh_cpython_code_version(chain->links.code[i]))
			chain->links.instruction[i] = NEVER;
	}
}

/* The number + 1 of this frame among the first n links, or 0. */
static inline uint32_t find_link(const struct python_chain *chain, uint32_t n, uintptr_t frame)
{
	uint32_t least = n > SEARCHED ? n - SEARCHED : 0;

	for (; n > least; n--) {
		if (chain->links.frame[n - 1] == frame)
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

static inline bool has_moved(const struct chain_links *links, const struct reader *reader,
			     uint32_t i, uintptr_t frame)
{
	/* A pointer identifies its code as long as no code was freed. */
	return read_instruction(reader, frame) != links->instruction[i] ||
	       (!reader->has_pointer && read_code(reader, frame) != links->code[i]);
}

/*
 * Skip unchanged links from number i outwards, a page at a time; returns the first link that is
 * left. i is a frame of the chain, so what is on its page can be read, whatever it is now.
 */
static inline __attribute__((always_inline)) uint32_t
skip_unchanged(const struct chain_links *links, const struct reader *reader, uint32_t i)
{
	const uint64_t previous = reader->previous, instruction = reader->instruction;

	while (i) {
		const uintptr_t *frame = &links->frame[i];
		const uint64_t *moved = &links->instruction[i];
		int64_t n = links->near[i];
		uint64_t differs = 0;

#pragma GCC unroll 4
		for (int64_t k = 0; k > -n; k--) {
			differs |= word_at(frame[k] + instruction) ^ moved[k];
			differs |= word_at(frame[k] + previous) ^ frame[k - 1];
		}
		if (!is_likely(!differs))
			break;
		i -= (uint32_t)n;
	}
	return i;
}

/* Check the previous links from number `first` outwards, as long as each leads to the next. */
static inline __attribute__((always_inline)) struct proof
prove_links(const struct python_chain *chain, const struct reader *reader, uint32_t first)
{
	const struct chain_links *links = &chain->links;
	struct proof proof = {.lowest = first + 1};
	uintptr_t frame = links->frame[first];
	bool may_skip = reader->has_pointer;
	uint32_t i;

	for (i = first; i > 0; i--) {
		uintptr_t predicted = links->frame[i - 1], next = predicted;

		/*
		 * Hides that next equals the value about to be read, so that the loads stay
		 * independent.
		 */
		__asm__("" : "+r"(next));
		if (!is_likely(!has_moved(links, reader, i, frame)))
			proof.lowest = i;
		if (!is_likely(word_at(frame + reader->previous) == predicted))
			break;
		frame = next;
		if (may_skip) {
			may_skip = false;
			i = skip_unchanged(links, reader, i - 1) + 1;
			frame = links->frame[i - 1];
		}
	}
	proof.last = i;
	proof.next = word_at(frame + reader->previous);
	if (i == 0) {
		if (!chain->is_cut && has_moved(links, reader, i, frame))
			proof.lowest = i;
		proof.is_whole = chain->is_cut || !proof.next;
	}
	return proof;
}

/* Treat links from..to, counted from the outermost, as new, innermost first. */
static void renew_links(struct python_chain *chain, uint32_t from, uint32_t to)
{
	for (uint32_t i = to + 1; i-- > from;)
		chain->fresh[chain->n_fresh++] = chain->links.frame[i];
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

static inline bool is_start(uintptr_t frame)
{
	const struct cpython_layout *at = &torsh_cpython.at;

	switch (at->activations) {
	case CPYTHON_BY_FRAME:
		return *(const int8_t *)(frame + at->frame_owner) >= CPYTHON_OWNER_INTERPRETER;
	case CPYTHON_BY_CFRAME:
		return !at->frame_is_entry || *(const bool *)(frame + at->frame_is_entry);
	default:
		return true;
	}
}

static struct chain_line *line_of(struct python_chain *chain, const struct chain_links *links,
				  uint32_t i)
{
	uint64_t key = links->instruction[i] + links->code[i];

	return &chain->lines[(key >> 1 ^ key >> 13) % CHAIN_N_LINES];
}

static __attribute__((noinline)) void fill_line(struct python_chain *chain, struct chain_line *line,
						uint32_t i)
{
	const struct chain_links *links = &chain->links;

	*line = (struct chain_line){
		.instruction = links->instruction[i],
		.code = links->code[i],
		.version = links->version[i],
		.id = torsh_python_code_id(links->frame[i], links->code[i], links->version[i],
					   links->instruction[i], &chain->codes),
	};
}

static inline uint32_t find_id(struct python_chain *chain, uint32_t i)
{
	const struct chain_links *links = &chain->links;
	struct chain_line *line = line_of(chain, links, i);

	if (links->starts[i] && torsh_cpython.at.activations == CPYTHON_BY_FRAME)
		return PYTHON_NO_ID;
	if (!is_likely(line->instruction == links->instruction[i] && line->code == links->code[i] &&
		       line->version == links->version[i]))
		fill_line(chain, line, i);
	return line->id;
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

/* The outermost link stays alone: none is beyond it. */
static inline uint8_t count_near(const struct chain_links *links, uint32_t i)
{
	const uintptr_t *frame = &links->frame[i];

	if (i < 2 || links->near[i - 1] == CHAIN_MAX_NEAR ||
	    torsh_probe_page(frame[0]) != torsh_probe_page(frame[-1]) ||
	    !is_on_one_page(frame[0]) || !is_on_one_page(frame[-1]))
		return 1;
	return (uint8_t)(links->near[i - 1] + 1);
}

static void read_link(struct chain_links *links, const struct reader *reader, uint32_t i,
		      uintptr_t frame)
{
	links->frame[i] = frame;
	links->near[i] = count_near(links, i);
	links->code[i] = read_code(reader, frame);
	links->instruction[i] = read_instruction(reader, frame);
	links->version[i] = torsh_cpython_code_version(links->code[i]);
	links->starts[i] = is_start(frame);
}

/* The stand-in for the outer links reads "not shown", and never changes. */
static void make_cut(struct chain_links *links, uintptr_t frame)
{
	links->frame[0] = frame;
	links->near[0] = 1;
	links->code[0] = 0;
	links->instruction[0] = NEVER;
	links->version[0] = torsh_cpython_code_version(0);
	links->starts[0] = false;
}

/* Append the fresh links after the first n_kept. */
static inline void take_fresh(struct python_chain *chain, const struct reader *reader,
			      uint32_t n_kept, struct chain_difference *difference)
{
	uint32_t n = n_kept, n_old = chain->n;

	for (uint32_t i = chain->n_fresh; i-- > 0; n++) {
		uint32_t id;

		if (!is_likely(!chain->is_cut || n)) {
			make_cut(&chain->links, chain->fresh[i]);
			id = id_of_cut();
		} else {
			read_link(&chain->links, reader, n, chain->fresh[i]);
			id = find_id(chain, n);
		}
		if (n < difference->first && (n >= n_old || id != chain->id[n]))
			difference->first = n;
		chain->id[n] = id;
		chain->rank[n + 1] = chain->rank[n] + (id != PYTHON_NO_ID);
	}
	if (n < n_old && n < difference->first)
		difference->first = n;
	chain->n = n;
}

uintptr_t torsh_python_innermost(uintptr_t tstate)
{
	const struct cpython_layout *at = &torsh_cpython.at;
	uintptr_t cframe;

	if (!tstate)
		return 0;
	if (at->tstate_frame)
		return word_at(tstate + at->tstate_frame);
	cframe = word_at(tstate + at->tstate_cframe);
	return cframe ? word_at(cframe + at->cframe_frame) : 0;
}

static __attribute__((noinline)) bool is_proved_outside(const struct python_chain *chain,
							uint32_t last)
{
	const struct reader reader = make_reader();
	struct proof proof = prove_links(chain, &reader, last);

	return proof.is_whole && proof.lowest >= last;
}

/* Whether the chain outside of the innermost frame is as it was; its own instruction may differ. */
static inline bool is_unchanged_outside(const struct python_chain *chain,
					const struct reader *reader, uint32_t last)
{
	const struct chain_links *links = &chain->links;
	uintptr_t outer = links->frame[0];

	if (!is_likely(reader->has_pointer && !chain->is_cut && last))
		return is_proved_outside(chain, last);
	return word_at(links->frame[last] + reader->previous) == links->frame[last - 1] &&
	       !skip_unchanged(links, reader, last - 1) && !word_at(outer + reader->previous) &&
	       !has_moved(links, reader, 0, outer);
}

/*
 * The most common case: the same frames as before, with at most the innermost moved on. False:
 * nothing was changed, use the full walk.
 */
static inline bool update_innermost(struct python_chain *chain, const struct reader *reader,
				    uintptr_t frame, struct chain_difference *difference)
{
	struct chain_links *links = &chain->links;
	uint32_t last = chain->n - 1, id;

	if (!chain->n || links->frame[last] != frame || last < chain->is_cut ||
	    !is_unchanged_outside(chain, reader, last))
		return false;
	difference->n_kept = last;
	if (!has_moved(links, reader, last, frame)) {
		difference->n_kept++;
		return true;
	}
	/* A frame that starts an activation may belong to another native frame the next time. */
	if (read_code(reader, frame) != links->code[last] || is_start(frame) != links->starts[last])
		return false;
	links->instruction[last] = read_instruction(reader, frame);
	links->version[last] = torsh_cpython_code_version(links->code[last]);
	id = find_id(chain, last);
	if (id != chain->id[last])
		difference->first = last;
	chain->rank[last + 1] = chain->rank[last] + (id != PYTHON_NO_ID);
	chain->id[last] = id;
	return true;
}

static __attribute__((noinline)) void update_chain(struct python_chain *chain, uintptr_t frame,
						   struct chain_difference *difference)
{
	const struct reader reader = make_reader();
	uint32_t n_kept = walk(chain, &reader, frame);

	if (!n_kept)
		chain->is_cut = false;
	if (!is_likely(n_kept != WALK_AGAIN && n_kept + chain->n_fresh <= CHAIN_MAX_LINKS &&
		       !(chain->is_cut && n_kept + chain->n_fresh < CHAIN_DEEP_FEWEST))) {
		difference->first = 0;
		walk_deep(chain, &reader, frame);
		n_kept = 0;
	}
	difference->n_kept = n_kept;
	take_fresh(chain, &reader, n_kept, difference);
}

void torsh_python_chain_update(struct python_chain *chain, uintptr_t tstate,
			       struct chain_difference *difference)
{
	const struct reader reader = make_reader();
	uint64_t deaths = atomic_load_explicit(&torsh_cpython_deaths, memory_order_relaxed);
	uintptr_t frame = torsh_python_innermost(tstate);

	difference->n_old_ids = chain->rank[chain->n];
	difference->n_old = chain->n;
	difference->first = UINT32_MAX;
	if (!is_likely(deaths == chain->deaths))
		drop_dead(chain, deaths);
	if (!is_likely(update_innermost(chain, &reader, frame, difference)))
		update_chain(chain, frame, difference);
}
