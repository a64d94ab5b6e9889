/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a kernel may be measured: a measured kernel runs alone, so a kernel that waits for another
 * device or process would wait for ever.
 */
#ifndef TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_GATE_H
#define TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_GATE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a kernel of this name may wait for another device or process. */
bool torsh_counter_is_collective(const char *name);

/* A collective kernel is about to be launched on the context. */
void torsh_counter_collective_begins(uint32_t context);

/* The launch of a collective kernel on the context failed. */
void torsh_counter_collective_failed(uint32_t context);

/* A collective kernel has ended. */
void torsh_counter_collective_ended(uint32_t context);

/* The number of collective kernels launched on the context so far, ended or not. */
uint32_t torsh_counter_collectives_of(uint32_t context);

/* The first n collective kernels launched on the context have ended: it was synchronised. */
void torsh_counter_collectives_ended(uint32_t context, uint32_t n);

/* A graph is launched on the context: counts as a collective if a graph may contain one. */
void torsh_counter_graph_begins(uint32_t context);

/* A stream capture begins. Nothing is measured until it has ended. */
void torsh_counter_capture_begins(void);

/* The stream capture ended. */
void torsh_counter_capture_ended(void);

/*
 * From now on a stream of this process may wait for the process itself: nothing more is measured.
 */
void torsh_counter_streams_wait(void);

/*
 * A launch that is not measured enters: waits while a kernel is measured. Each enter is followed by
 * a leave.
 */
void torsh_counter_gate_enter(void);

/* The launch that entered has been made. */
void torsh_counter_gate_leave(void);

/* Keep all other launches out. Returns 0, with the gate open, if a launch is in progress. */
bool torsh_counter_gate_close(void);

/* Let other launches in again; the caller closed the gate. */
void torsh_counter_gate_open(void);

/*
 * Like torsh_counter_gate_close; also returns 0, and counts it, if the kernel might wait for
 * others.
 */
bool torsh_counter_gate_close_to_measure(void);

#endif
