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

#endif
