/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operator collector: PyTorch's observer callbacks become events. operator_events.c records
 * operators, torch_inputs.c their arguments, operator_marks.c their device time, tensor_events.c
 * PyTorch's allocators, torch_steps.c steps; torch_python.c calls Python for the rest.
 */
#ifndef TORSH_COLLECTORS_TORCH_OPERATOR_EVENTS_H
#define TORSH_COLLECTORS_TORCH_OPERATOR_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Start observing operators, if libtorch is loaded. Returns whether it is. */
bool torsh_torch_start(void);

#define TORCH_INPUT_TOKENS 512u
#define TORCH_INPUT_SLOTS 1024u
#define TORCH_INPUT_READS 1024u /* of lists: whoever has more ends them with OP_READS_MORE */

/* The tokens of arguments, see collectors/torch/torch_inputs.c. */
struct torch_tokens {
	uint64_t at[TORCH_INPUT_TOKENS];
	uint32_t n, flags;
	uint64_t reads[TORCH_INPUT_READS]; /* addresses of the tensors' memory */
	uint32_t n_reads;
};

/* Of one thread: labels of inputs, by a hash of the inputs. */
struct torch_inputs {
	uint32_t none; /* the label of no arguments; 0: not looked up yet */
	struct torch_input_slot {
		uint64_t key;
		uint32_t label, flags;
	} slots[TORCH_INPUT_SLOTS];
	/* of the current call: 8 KiB, too much for a stack */
	struct torch_tokens tokens, without;
};

/*
 * The label of a record's arguments, formatted as in PROTOCOL.md; 0: unavailable. may_be_none: an
 * empty list means that there are none. flags gets OP_INPUTS_CUT if the text is cut.
 */
uint32_t torsh_torch_inputs(struct torch_inputs *inputs, const void *record, bool may_be_none,
			    uint32_t *flags);

struct producer;
struct torch_collective;

/* The call of c10d that the producer's thread is in; NULL: it has run no operators. */
const struct torch_collective *torsh_operators_collective(const struct producer *producer);

/* Add a process group. Returns its number, from 1; 0: there are too many. With the GIL. */
uint32_t torsh_torch_group_add(uintptr_t group);

/* The number of the c10d::ProcessGroup at this address; 0: none was reported. Any thread. */
uint32_t torsh_torch_group_number(uintptr_t group);

/*
 * The recording of this process has begun while it ran: observe a PyTorch that is loaded. Within a
 * hook.
 */
void torsh_torch_armed(void);

#endif
