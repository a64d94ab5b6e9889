/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device time in ns: the machine's CLOCK_MONOTONIC, or a virtual clock that moves only when
 * somebody waits or calls.
 */
#ifndef SIMCUDA_CLOCK_H
#define SIMCUDA_CLOCK_H

#include <stdint.h>

uint64_t sim_now(void);

/* Move the virtual clock forward to t_ns; the real clock moves by itself. */
void sim_clock_reach(uint64_t t_ns);

/* Let a call take its time on the virtual clock. */
void sim_clock_spend(uint64_t ns);

/*
 * Device time as wall-clock time (CUPTI's default clock), with the skew and the steps that are
 * configured.
 */
uint64_t sim_wall_of(uint64_t t_ns);

/* What is added to device time for wall-clock time where nothing skews it. */
int64_t sim_wall_offset(void);

#endif
