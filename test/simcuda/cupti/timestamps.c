/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Times of records: the wall clock, or the units of the callback that the client registered.
 * Moments of a device come to those by a line through two readings of both clocks.
 */
#include "test/simcuda/cupti/cupti.h"

#include <pthread.h>

#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"

enum {
	/* Readings closer than this give no slope. */
	BASE_NS = 200000,
	N_TRIES = 5
};

struct reading {
	uint64_t t_ns, stamp;
};

static _Atomic(CUpti_TimestampCallbackFunc) callback;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the readings */
static struct reading first, last;
static unsigned n_registrations;
static _Atomic unsigned n_mixed; /* kernels with times that are still to be spoilt */

/* Both clocks at one moment, as nearly as a few tries get. */
static struct reading read_both(CUpti_TimestampCallbackFunc read)
{
	struct reading best = {0};
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < N_TRIES; i++) {
		uint64_t before = sim_now(), stamp = read(), after = sim_now();

		if (after - before < best_ns) {
			best_ns = after - before;
			best = (struct reading){before + (after - before) / 2, stamp};
		}
	}
	return best;
}

CUptiResult do_cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc funcTimestamp)
{
	CUptiResult result = cupti_check();

	if (result)
		return result;
	pthread_mutex_lock(&lock);
	if (funcTimestamp && funcTimestamp != callback)
		first = last = read_both(funcTimestamp);
	callback = funcTimestamp;
	/*
	 * As reported of the real one: after the k-th registration the next k kernels have times of
	 * another clock.
	 */
	if (++n_registrations > 1 && sim_config()->mixes_clocks)
		n_mixed = n_registrations;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

uint64_t cupti_stamp(void)
{
	CUpti_TimestampCallbackFunc read = callback;

	return read ? read() : sim_wall_of(sim_now());
}

CUptiResult do_cuptiGetTimestamp(uint64_t *timestamp)
{
	if (!timestamp)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*timestamp = cupti_stamp();
	return CUPTI_SUCCESS;
}

void cupti_calibrate(void)
{
	CUpti_TimestampCallbackFunc read = callback;

	if (!read)
		return;
	pthread_mutex_lock(&lock);
	do
		last = read_both(read);
	while (last.t_ns - first.t_ns < BASE_NS && !sim_config()->is_virtual_clock);
	pthread_mutex_unlock(&lock);
}

bool cupti_mixes_clocks(void)
{
	unsigned n = n_mixed;

	while (n && !atomic_compare_exchange_weak(&n_mixed, &n, n - 1))
		;
	return n != 0;
}

uint64_t cupti_stamp_of(uint64_t t_ns)
{
	struct reading a, b;

	if (!t_ns)
		return 0;
	if (!callback)
		return sim_wall_of(t_ns);
	pthread_mutex_lock(&lock);
	a = first;
	b = last;
	pthread_mutex_unlock(&lock);
	if (b.t_ns == a.t_ns)
		return a.stamp;
	__int128 run = (int64_t)(b.t_ns - a.t_ns), rise = (int64_t)(b.stamp - a.stamp);
	return (uint64_t)((__int128)a.stamp + (__int128)(int64_t)(t_ns - a.t_ns) * rise / run);
}
