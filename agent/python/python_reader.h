/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How frames and lines are read: what the walk of the chain and the most common capture, which
 * walks nothing, have in common.
 */
#ifndef TORSH_AGENT_PYTHON_PYTHON_READER_H
#define TORSH_AGENT_PYTHON_PYTHON_READER_H

#include "agent/python/python_chain.h"
#include "shim/cpython/cpython.h"

#define is_likely(x) __builtin_expect(!!(x), 1)

#define OBJECT_BITS (~(uintptr_t)7) /* references carry low tag bits from 3.14 on */

/* The offsets, loaded. */
struct reader {
	uintptr_t previous, instruction, code;
	bool has_pointer;
};

/*
 * The bytes of a frame up to the last one that is read. What is after them may not be there: a
 * frame may be the last of its chunk.
 */
static inline uintptr_t bytes_read(void)
{
	const struct cpython_layout *at = &torsh_cpython.at;
	const uint16_t offsets[] = {at->frame_previous, at->frame_instruction, at->frame_code,
				    at->frame_owner,	at->frame_is_entry,    at->frame_tlbc};
	uintptr_t last = 0;

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		last = offsets[i] > last ? offsets[i] : last;
	return (last & ~(sizeof(uintptr_t) - 1)) + sizeof(uintptr_t);
}

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

static inline uintptr_t read_code(const struct reader *reader, uintptr_t frame)
{
	return word_at(frame + reader->code) & OBJECT_BITS;
}

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

/* The frame of link i. */
static inline uintptr_t frame_of(const struct python_chain *chain, uint32_t i)
{
	return chain->states[i + 1].previous;
}

/* The innermost frame of a thread state, or 0. */
static inline uintptr_t innermost_frame(uintptr_t tstate)
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

static inline struct chain_line *line_at(struct python_chain *chain, uintptr_t code,
					 uint64_t instruction)
{
	uint64_t key = instruction + code;

	return &chain->lines[(key >> 1 ^ key >> 13) % CHAIN_N_LINES];
}

/* The id of the line of a function that executes this instruction in frame. */
static inline uint32_t find_line(struct python_chain *chain, uintptr_t frame, uintptr_t code,
				 uint32_t version, uint64_t instruction)
{
	struct chain_line *line = line_at(chain, code, instruction);

	if (!is_likely(line->instruction == instruction && line->code == code &&
		       line->version == version)) {
		const struct chain_line wanted = {
			.instruction = instruction, .code = code, .version = version};

		torsh_python_chain_fill(chain, line, &wanted, frame);
	}
	return line->id;
}

#endif
