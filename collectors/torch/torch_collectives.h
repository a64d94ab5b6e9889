/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Collectives and messages of torch.distributed: which one a call is, the same on all ranks, and
 * what became of its c10d::Work.
 */
#ifndef TORSH_COLLECTORS_TORCH_TORCH_COLLECTIVES_H
#define TORSH_COLLECTORS_TORCH_TORCH_COLLECTIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/event.h"

struct producer;

/* The call of c10d that a thread is in: a part of its struct operators. */
struct torch_collective {
	uint64_t record; /* of the operator; 0: none */
	uint32_t number; /* of its collective event; 0: not sent */
	struct event_collective event; /* once it is sent */
};

/*
 * The operator begins: count it if it is one of c10d with a known group. Calls that are not
 * recorded are counted too, because the other ranks may record them.
 */
void torsh_torch_collective_begin(struct torch_collective *collective, const void *record,
				  const char *name);

/* Send the collective that began, if one did, after its operator's begin. */
void torsh_torch_collective_send(struct torch_collective *collective, struct producer *producer);

/* The operator ends. */
static inline void torsh_torch_collective_end(struct torch_collective *collective,
					      const void *record)
{
	if (__builtin_expect(collective->record == (uintptr_t)record, 0))
		*collective = (struct torch_collective){0};
}

#endif
