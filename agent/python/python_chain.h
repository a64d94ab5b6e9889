/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The interpreter's chain of frames of the calling thread, now and at the previous capture. Each
 * link is a frame: a function's, or an internal one that separates activations.
 */
#ifndef TORSH_AGENT_PYTHON_PYTHON_CHAIN_H
#define TORSH_AGENT_PYTHON_PYTHON_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/python/python_code.h"

#define CHAIN_MAX_LINKS 2048u
/*
 * Of a deeper chain this many inner links are kept, so that it can grow for a while; it is walked
 * from scratch below the fewest.
 */
#define CHAIN_DEEP_KEPT 1024u
#define CHAIN_DEEP_FEWEST 512u

#define CHAIN_MAX_NEAR 64u
#define CHAIN_N_LINES 4096u
#define CHAIN_N_PAGES 64u

/* What the frame of a link holds as long as the link is unchanged. */
struct chain_state {
	uintptr_t previous; /* the next outer link's frame; 0 of the outermost link */
	uint64_t instruction;
};

struct chain_link {
	uintptr_t code;
	uint32_t version; /* of the code object's address */
	uint32_t id; /* PYTHON_NO_ID: not a function's frame */
	uint32_t rank; /* links with ids outside of this one */
	bool starts; /* the outermost link of an activation */
};

/* An instruction and its line, cached. */
struct chain_line {
	uint64_t instruction;
	uintptr_t code;
	uint32_t version;
	uint32_t id;
};

struct python_chain {
	uint32_t n;
	bool is_cut; /* link 0 represents all outer ones: only its frame is valid */
	uint32_t n_fresh;
	uint64_t deaths; /* code deaths that were handled */

	/* Outermost first. The frame of link i is states[i + 1].previous. */
	_Alignas(16) struct chain_state states[CHAIN_MAX_LINKS + 1];
	/* the links from this one outwards whose frames are on its frame's page, one at least */
	uint8_t near[CHAIN_MAX_LINKS];
	struct chain_link links[CHAIN_MAX_LINKS + 1]; /* of the last + 1 only the rank */

	/*
	 * New links of this update, innermost first; in a cut chain the last one represents all
	 * outer ones.
	 */
	uintptr_t fresh[CHAIN_MAX_LINKS];

	struct chain_line lines[CHAIN_N_LINES]; /* by hash */
	uintptr_t pages[CHAIN_N_PAGES]; /* pages found readable, by hash */
	struct python_codes codes;
};

/* The result of an update, in links counted from the outermost. */
struct chain_difference {
	uint32_t n_old_ids;
	uint32_t n_old;
	/*
	 * the first link that has another id, starts an activation and did not or the other way
	 * round, or is new or gone; UINT32_MAX: none
	 */
	uint32_t first;
	uint32_t n_kept; /* links with the same frames at the same instructions */
};

/* Replace *line by the wanted one, which frame executes, with its id. */
void torsh_python_chain_fill(struct python_chain *chain, struct chain_line *line,
			     const struct chain_line *wanted, uintptr_t frame);

/*
 * Skip unchanged links from number n - 1 outwards, a page at a time; returns how many are left: 0,
 * or 1 of a cut chain, if all are as they were. Where others are left, inner ones of them may be
 * unchanged, too. Link n - 1 must be in the chain now. Only where the instruction is a pointer.
 *
 * A link is unchanged if its frame executes the same instruction, which identifies the code as long
 * as no code object was freed, and leads to the same frame. That frame is in the chain then, so
 * that what is on its page can be read, whatever it is now.
 */
uint32_t torsh_python_chain_skip(const struct python_chain *chain, uint32_t n);

/* Drop links to code objects that were freed since, wherever their frames are. */
void torsh_python_chain_drop_dead(struct python_chain *chain, uint64_t deaths);

/*
 * Follow the chain from its innermost frame (0: none) out to the unchanged part. Frames are read in
 * the order of their links, so that no freed frame is read; addresses are predicted from the
 * previous capture, so that the loads are independent. Garbage, which a signal handler can meet
 * while a frame is being linked, ends the chain.
 */
void torsh_python_chain_update(struct python_chain *chain, uintptr_t frame,
			       struct chain_difference *difference);

#endif
