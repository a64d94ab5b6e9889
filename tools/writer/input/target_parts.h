/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The inside of a target, shared by its three files: target.c creates and ends it and reads its
 * memory in /proc, target_rings.c passes over its rings, target_counts.c counts the events that
 * were produced, delivered and lost.
 */
#ifndef TORSH_WRITER_INPUT_TARGET_PARTS_H
#define TORSH_WRITER_INPUT_TARGET_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/writer/input/target.h"

/* Unmap what was mapped of the slot's rings; the ring consumer may not use them any more. */
void torsh_target_unmap_rings(struct target *target, uint32_t number);

/*
 * The counts of one use of a slot so far; is_over: nothing is in flight any more. Of a running
 * thread produced is what was decoded.
 */
struct target_counts torsh_target_count_consumer(const struct ring_consumer *consumer,
						 bool is_over);

void torsh_target_add_counts(struct target_counts *sum, const struct target_counts *counts);

#endif
