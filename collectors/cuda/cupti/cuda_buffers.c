/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Buffers for CUPTI's records, in pages of the agent. A buffer is CUPTI's from request to
 * completion; afterwards it is reused. Pages are never unmapped: CUPTI may write late.
 */
#include "collectors/cuda/cupti/cuda_buffers.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "collectors/cuda/cuda.h"
#include "collectors/cuda/cuda_lock.h"
#include "collectors/cuda/cupti/cuda_records.h"
#include "collectors/cuda/cupti/cuda_tee.h"
#include "shim/cuda/cupti.h"
#include "shim/sys.h"

#define BUFFER_BYTES (1u << 20) /* about 4000 kernels */
/* one per launching thread; pages that aren't written take no memory */
#define BUFFERS_MAX 256u
/* CUPTI_API_VERSION of CUDA 12.9: older ones crash without a buffer */
#define VERSION_TAKES_NONE 27u

struct spare {
	struct spare *next;
};

static struct cuda_lock lock; /* guards the list and the number */
static struct spare *spares;
static uint32_t n_buffers, n_spares;

/* Given out beyond the limit, to all threads, by a CUPTI that crashes without a buffer. */
static uint8_t *discarded;

static uint8_t *take_buffer(void)
{
	uint8_t *buffer;
	bool may_make;

	torsh_cuda_lock(&lock);
	buffer = (uint8_t *)spares;
	if (spares) {
		spares = spares->next;
		n_spares--;
	}
	may_make = !buffer && n_buffers < BUFFERS_MAX;
	n_buffers += may_make;
	if (!buffer && !may_make && !discarded && torsh_cuda_version < VERSION_TAKES_NONE)
		discarded = torsh_sys_pages(BUFFER_BYTES);
	torsh_cuda_unlock(&lock);
	if (may_make)
		buffer = torsh_sys_pages(BUFFER_BYTES);
	if (may_make && !buffer) {
		torsh_cuda_lock(&lock);
		n_buffers--;
		torsh_cuda_unlock(&lock);
	}
	return buffer ? buffer : discarded;
}

static void give_buffer(uint8_t *buffer)
{
	struct spare *spare = (struct spare *)(void *)buffer;

	torsh_cuda_lock(&lock);
	spare->next = spares;
	spares = spare;
	n_spares++;
	torsh_cuda_unlock(&lock);
}

uint32_t torsh_cuda_buffers_out(void)
{
	uint32_t n;

	torsh_cuda_lock(&lock);
	n = n_buffers - n_spares;
	torsh_cuda_unlock(&lock);
	return n;
}

void torsh_cuda_count_dropped(void *context, uint32_t stream)
{
	size_t n_dropped = 0;

	if (torsh_cupti.ActivityGetNumDroppedRecords(context, stream, &n_dropped))
		atomic_store_explicit(&torsh_cuda_losses.is_dropping_unknown, 1,
				      memory_order_relaxed);
	else if (n_dropped)
		torsh_cuda_lose(&torsh_cuda_losses.dropped, n_dropped);
}

void torsh_cuda_request_buffer(uint8_t **buffer, size_t *n_bytes, size_t *n_records)
{
	*buffer = torsh_cuda_is_live() ? take_buffer() : NULL;
	*n_bytes = *buffer ? BUFFER_BYTES : 0;
	*n_records = 0; /* as many as fit */
}

void torsh_cuda_complete_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t n_bytes,
				size_t n_valid)
{
	(void)n_bytes;
	if (!torsh_cuda_is_live() || !buffer)
		return;
	if (buffer == discarded) {
		torsh_cuda_lose(&torsh_cuda_losses.without_room, 1);
		return;
	}
	torsh_cuda_take_records(buffer, n_valid);
	torsh_cuda_tee_records(buffer, n_valid);
	give_buffer(buffer);
	torsh_cuda_count_dropped(context, stream);
}
