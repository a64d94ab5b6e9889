/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/tensor_reads.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

void torsh_tensor_reads_free(struct tensor_reads *reads)
{
	torsh_hash_map_free(&reads->by_address);
	free(reads->items);
	free(reads->unused);
	*reads = (struct tensor_reads){0};
}

/* Returns the number of an item that is not in use; UINT32_MAX: there are too many. */
static uint32_t new_item(struct tensor_reads *reads)
{
	if (reads->n_unused)
		return reads->unused[--reads->n_unused];
	if (reads->n == TENSOR_READS_MAX) {
		reads->n_left_out++;
		return UINT32_MAX;
	}
	reads->items = torsh_array_reserve(reads->items, reads->n, &reads->capacity,
					   sizeof(*reads->items));
	return reads->n++;
}

static void take_one(struct tensor_reads *reads, uint64_t address, const struct tensor_read *read)
{
	const struct hash_entry *entry =
		torsh_hash_map_find(&reads->by_address, &address, sizeof(address));
	uint32_t number = entry ? (uint32_t)entry->value : new_item(reads);

	if (number == UINT32_MAX)
		return;
	if (!entry)
		torsh_hash_map_put(&reads->by_address, &address, sizeof(address), number);
	reads->items[number] = *read;
}

void torsh_tensor_reads_take(struct tensor_reads *reads, const struct event_op_read *event,
			     uint64_t stamp, uint32_t step)
{
	const uint64_t addresses[] = {event->first, event->second, event->third, event->fourth};
	const struct tensor_read read = {.stamp = stamp, .operator= event->name, .step = step};

	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses) && addresses[i]; i++) {
		if (addresses[i] == OP_READS_MORE)
			reads->n_left_out++;
		else
			take_one(reads, addresses[i], &read);
	}
}

void torsh_tensor_reads_forget(struct tensor_reads *reads, uint64_t address)
{
	size_t number;

	if (!torsh_hash_map_remove(&reads->by_address, &address, sizeof(address), &number))
		return;
	reads->unused = torsh_array_reserve(reads->unused, reads->n_unused, &reads->unused_capacity,
					    sizeof(*reads->unused));
	reads->unused[reads->n_unused++] = (uint32_t)number;
}

const struct tensor_read *torsh_tensor_reads_find(const struct tensor_reads *reads,
						  uint64_t address)
{
	const struct hash_entry *entry =
		torsh_hash_map_find(&reads->by_address, &address, sizeof(address));

	return entry ? &reads->items[entry->value] : NULL;
}
