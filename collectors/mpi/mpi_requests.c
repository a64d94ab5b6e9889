/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/mpi/mpi_requests.h"

#include <stddef.h>

#include "agent/producer/key_map.h"
#include "shim/sys.h"

#define REQUESTS 65536u
#define WAYS 32u
#define TAKEN 1u /* no key */

/* In pages that are zeroed in a forked child. */
static void *_Atomic table; /* of struct mpi_request */

static struct mpi_request *get_table(void)
{
	return torsh_sys_own_once(&table, REQUESTS * sizeof(struct mpi_request));
}

/* Odd and above TAKEN. */
static uint64_t key_of(uint64_t handle, bool is_message)
{
	return torsh_key_map_mix(handle, is_message) | 2;
}

static void fill(struct mpi_request *place, const struct mpi_request *request)
{
	place->number = request->number;
	place->comm = request->comm;
	place->comm_handle = request->comm_handle;
	place->next = place->at = 0;
	place->joined = request->joined;
	place->is_receive = request->is_receive;
	place->is_uncertain = request->is_uncertain;
	place->is_alone = request->is_alone;
	place->is_persistent = request->is_persistent;
	place->is_read = request->is_read;
	place->has_bytes = request->has_bytes;
	place->bytes = request->bytes;
	place->peer = request->peer;
	place->tag = request->tag;
	place->sequence = request->sequence;
	place->begin_ns = request->begin_ns;
	place->duration_ns = request->duration_ns;
}

void torsh_mpi_request_put(uint64_t handle, bool is_message, const struct mpi_request *request)
{
	struct mpi_request *all = get_table();
	uint64_t key = key_of(handle, is_message);

	for (uint32_t i = 0; all && i < WAYS; i++) {
		struct mpi_request *place = &all[(key + i) % REQUESTS];
		uint64_t there = 0;

		if (!atomic_compare_exchange_strong(&place->key, &there, TAKEN))
			continue;
		fill(place, request);
		/* Pairs with the acquire in torsh_mpi_request_take. */
		atomic_store_explicit(&place->key, key, memory_order_release);
		return;
	}
}

uint32_t torsh_mpi_request_take(uint64_t handle, bool is_message)
{
	struct mpi_request *all = atomic_load_explicit(&table, memory_order_acquire);
	uint64_t key = key_of(handle, is_message);

	for (uint32_t i = 0; all && i < WAYS; i++) {
		uint32_t index = (uint32_t)((key + i) % REQUESTS);
		uint64_t there = key;

		if (atomic_load_explicit(&all[index].key, memory_order_relaxed) == key &&
		    atomic_compare_exchange_strong(&all[index].key, &there, TAKEN))
			return index + 1;
	}
	return 0;
}

struct mpi_request *torsh_mpi_request_at(uint32_t index)
{
	struct mpi_request *all = atomic_load_explicit(&table, memory_order_acquire);

	return &all[index - 1];
}

void torsh_mpi_request_return(uint32_t index, uint64_t handle)
{
	atomic_store_explicit(&torsh_mpi_request_at(index)->key, key_of(handle, false),
			      memory_order_release);
}

void torsh_mpi_request_drop(uint32_t index)
{
	atomic_store_explicit(&torsh_mpi_request_at(index)->key, 0, memory_order_release);
}
