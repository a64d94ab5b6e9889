/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/loader/unloading.h"

#include <stdatomic.h>
#include <stdint.h>

#include "shim/sys.h"

#define WAIT_NS 1000000u
#define WAITS 10

/*
 * Threads in dlclose, and those that block it. Each reads the other's number after changing its
 * own.
 */
static _Atomic uint32_t n_unloading, n_reading;
/* this thread's part of n_unloading: destructors allocate, and close more */
static _Thread_local uint32_t own_unloading;

bool torsh_unloading_forbid(void)
{
	atomic_fetch_add(&n_reading, 1);
	if (atomic_load(&n_unloading) <= own_unloading)
		return true;
	torsh_unloading_allow();
	return false;
}

void torsh_unloading_allow(void)
{
	atomic_fetch_sub(&n_reading, 1);
}

void torsh_unloading_begins(void)
{
	uint32_t n;

	own_unloading++;
	atomic_fetch_add(&n_unloading, 1);
	for (int i = 0; (n = atomic_load(&n_reading)) && i < WAITS; i++)
		torsh_sys_futex_wait(&n_reading, n, WAIT_NS);
}

void torsh_unloading_ended(void)
{
	own_unloading--;
	atomic_fetch_sub(&n_unloading, 1);
}

void torsh_unloading_forked(void)
{
	atomic_store(&n_reading, 0);
	atomic_store(&n_unloading, own_unloading);
}
