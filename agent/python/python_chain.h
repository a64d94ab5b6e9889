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

#define CHAIN_MAX_NEAR 32u
#define CHAIN_N_LINES 4096u
#define CHAIN_N_PAGES 64u

struct chain_links {
	uintptr_t frame[CHAIN_MAX_LINKS];
	uint64_t instruction[CHAIN_MAX_LINKS];
	uintptr_t code[CHAIN_MAX_LINKS];
	uint32_t version[CHAIN_MAX_LINKS]; /* of the code object's address */
	bool starts[CHAIN_MAX_LINKS]; /* the outermost link of an activation */
	/* the links from this one outwards whose frames are on its frame's page, one at least */
	uint8_t near[CHAIN_MAX_LINKS];
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

	/* Outermost first. */
	struct chain_links links;
	uint32_t id[CHAIN_MAX_LINKS]; /* PYTHON_NO_ID: not a function's frame */
	uint32_t rank[CHAIN_MAX_LINKS + 1]; /* links with ids outside of this one */

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
	/* the first link with a changed id, or that is new or gone; UINT32_MAX: none */
	uint32_t first;
	uint32_t n_kept; /* links with the same frames at the same instructions */
};

/* The innermost frame of a thread state, or 0. */
uintptr_t torsh_python_innermost(uintptr_t tstate);

/*
 * Follow the chain of the thread state tstate (NULL: none) from its innermost frame out to the
 * unchanged part. Frames are read in the order of their links, so that no freed frame is read;
 * addresses are predicted from the previous capture, so that the loads are independent. Garbage,
 * which a signal handler can meet while a frame is being linked, ends the chain.
 */
void torsh_python_chain_update(struct python_chain *chain, uintptr_t tstate,
			       struct chain_difference *difference);

#endif
