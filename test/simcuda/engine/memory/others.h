/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What other processes use of the same simulated devices: SIMCUDA_SHARED names a file in which each
 * process writes what it uses.
 */
#ifndef SIMCUDA_OTHERS_H
#define SIMCUDA_OTHERS_H

#include <stdint.h>

struct sim_device;

/*
 * Returns what is left of the device's memory. To be called with the lock, after each change of
 * the device's free memory.
 */
uint64_t sim_memory_left(const struct sim_device *device);

/* A process that uses a device, and how much of it. */
struct sim_user {
	int pid;
	uint64_t bytes;
};

enum { SIM_USERS_MAX = 64 };

/*
 * List the living processes that use the device with that number, this one only if it does. Returns
 * how many, or -1 without SIMCUDA_SHARED. With the lock.
 */
int sim_users_list(int ordinal, struct sim_user users[SIM_USERS_MAX]);

#endif
