/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a run would have reserved on its devices with another allocator, batch or device. Each
 * device is a question of its own: its trace is replayed as it was recorded, which must give what
 * PyTorch reported, then changed and replayed again.
 */
#ifndef TORSH_MEMORY_WHATIF_WHATIF_H
#define TORSH_MEMORY_WHATIF_WHATIF_H

#include "tools/memory/whatif/assumptions.h"
#include "tools/memory/whatif/replay.h"

#define WHATIF_TOLERANCE 0.01 /* a replay that is further off is not reliable */

struct whatif_question {
	const struct allocator_settings *settings; /* NULL: those of the recorded run */
	uint64_t capacity_bytes; /* 0: not given */
	double batch_factor; /* 0: the recorded batch */
	const char *checkpoint; /* modules to checkpoint, by class or path; NULL: none */
};

struct whatif_answer {
	const struct recorded_process *process;
	uint32_t device; /* type << 8 | index, in PyTorch's numbers */
	struct tensor_sums recorded, replayed, predicted;
	double difference; /* of the replay from what was recorded: a share of the latter */
	/* with a capacity: */
	bool is_out_of_memory;
	uint64_t missing_bytes; /* for the block that did not get its memory */
	struct tensor_sums at_failure;
	struct trace_block failed;
	bool has_step; /* the block belongs to a step: */
	uint64_t step;
	struct assumptions assumptions;
};

struct whatif {
	struct whatif_answer *items;
	size_t n;
};

/* Whether the model gives what was recorded. */
static inline bool torsh_whatif_is_reliable(const struct whatif_answer *answer)
{
	return answer->difference <= WHATIF_TOLERANCE;
}

/* Answer for each device of the processes. Ends the program if the recording cannot be read. */
void torsh_whatif_answer(struct whatif *whatif, const struct whatif_question *question,
			 const struct recording *recording,
			 struct recorded_process *const *processes, size_t n_processes,
			 const struct prepass *prepass);

/* Free the answers. */
void torsh_whatif_free(struct whatif *whatif);

#endif
