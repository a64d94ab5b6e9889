/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which steps of an inference read a prompt, and which make one token each after it. What a step
 * reads are the sizes of the first tensor of indices that it looks up, without one those of its
 * first matrix product. A prompt is followed by a step that reads the same but for one size, the
 * length: that is 1 there. Batches of images or of rows have no length: it is never the first of
 * several sizes.
 */
#ifndef TORSH_TIMELINE_STEPS_TOKENS_H
#define TORSH_TIMELINE_STEPS_TOKENS_H

#include "tools/timeline/steps.h"
#include "tools/timeline/steps/repeats.h"

/* Set the kind of each of n steps, which are those repetitions. */
void torsh_tokens_find(struct step *steps, const struct repeat *repeats, size_t n,
		       const struct op_place *places, const struct recorded_process *process);

#endif
