/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/blas/libraries/fft_plans.h"

#include <stdatomic.h>

#include "agent/producer/key_map.h"
#include "shim/sys.h"

#define FREE 0u
#define WRITTEN UINT64_MAX /* is being written */
#define RELEASED (UINT64_MAX - 1)

struct row {
	_Atomic uint64_t handle;
	struct fft_plan plan;
};

static void *_Atomic table; /* FFT_PLANS rows, mapped when the first plan is made */

static struct row *row_of(struct row *rows, uint64_t handle, uint32_t i)
{
	return &rows[(torsh_key_map_mix(handle, 0) + i) % FFT_PLANS];
}

static struct row *find(uint64_t handle)
{
	struct row *rows = atomic_load_explicit(&table, memory_order_acquire);

	for (uint32_t i = 0; rows && i < FFT_PLANS; i++) {
		struct row *row = row_of(rows, handle, i);
		uint64_t at = atomic_load_explicit(&row->handle, memory_order_acquire);

		if (at == handle)
			return row;
		if (at == FREE)
			return NULL;
	}
	return NULL;
}

/* A row that this thread alone writes from now on; NULL: there is none. */
static struct row *claim(struct row *rows, uint64_t handle)
{
	struct row *row = find(handle);

	if (row && atomic_compare_exchange_strong(&row->handle, &handle, WRITTEN))
		return row;
	for (uint32_t i = 0; i < FFT_PLANS; i++) {
		uint64_t at;

		row = row_of(rows, handle, i);
		at = atomic_load_explicit(&row->handle, memory_order_relaxed);
		if ((at == FREE || at == RELEASED) &&
		    atomic_compare_exchange_strong(&row->handle, &at, WRITTEN))
			return row;
	}
	return NULL;
}

void torsh_fft_plan_keep(uint64_t handle, const struct fft_plan *plan)
{
	/* A forked child has its parent's plans. */
	struct row *rows = atomic_load_explicit(&table, memory_order_acquire), *row;
	void *expected = NULL;

	if (!rows) {
		rows = torsh_sys_pages(FFT_PLANS * sizeof(*rows));
		if (!rows)
			return;
		if (!atomic_compare_exchange_strong(&table, &expected, rows)) {
			torsh_sys_munmap(rows, FFT_PLANS * sizeof(*rows));
			rows = expected;
		}
	}
	row = claim(rows, handle);
	if (!row)
		return;
	row->plan = *plan;
	/* Pairs with the acquire in find. */
	atomic_store_explicit(&row->handle, handle, memory_order_release);
}

bool torsh_fft_plan_find(uint64_t handle, struct fft_plan *plan)
{
	const struct row *row = handle ? find(handle) : NULL;

	if (!row)
		return false;
	*plan = row->plan;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&row->handle, memory_order_relaxed) == handle;
}

void torsh_fft_plan_forget(uint64_t handle)
{
	struct row *row = handle ? find(handle) : NULL;

	if (row)
		atomic_compare_exchange_strong(&row->handle, &handle, RELEASED);
}
