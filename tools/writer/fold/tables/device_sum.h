/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The sum of a process's memory of devices, as far as the joint peak of the heap and devices needs
 * it: by address, without graphs and what ends with its context. Readers compute the joint peak
 * exactly (tools/device/memory/), and see whether the heap's holders are those of that moment.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_DEVICE_SUM_H
#define TORSH_WRITER_FOLD_TABLES_DEVICE_SUM_H

#include "agent/wire/event.h"
#include "tools/base/containers/hash_map.h"

/* A block that may come back: its free may still fail. */
struct device_freed {
	uint64_t address, bytes;
	bool is_physical;
	uint32_t thread;
};

struct device_sum {
	struct hash_map blocks; /* bytes by address */
	struct device_freed last;
};

/* Free the table. */
void torsh_device_sum_destroy(struct device_sum *sum);

/* Take an event of the timeline. Returns the change of the sum, in bytes. */
int64_t torsh_device_sum_take(struct device_sum *sum, const struct event *event, uint32_t thread);

#endif
