/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device events without CUPTI: the program's driver calls, timed by pairs of driver events.
 */
#ifndef TORSH_COLLECTORS_CUDA_DRIVER_CUDA_EVENTS_H
#define TORSH_COLLECTORS_CUDA_DRIVER_CUDA_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Record driver calls from here on; has_marks: with the devices' times. reason: why CUPTI is not
 * used, or NULL. Returns 0 or -errno.
 */
int torsh_cuda_watch_driver(const char *reason, bool has_marks);

/*
 * A driver call of the program begins in the wrapper with this frame. Returns not 0 if it is
 * recorded: then torsh_cuda_leave_call follows. A call that a signal handler or longjmp abandoned
 * is closed by the next call of the thread.
 */
bool torsh_cuda_enter_call(const void *frame);

/* The recorded driver call of this thread has ended. */
void torsh_cuda_leave_call(void);

/*
 * The driver's function has returned to the wrapper with this frame, and the agent may call the
 * driver. Returns 0 if the call is no longer recorded: in a child that the call forked, or if the
 * call counted as abandoned.
 */
bool torsh_cuda_call_returned(const void *frame);

/*
 * Whether the agent may query the driver on this thread: driver calls are recorded, no other tool
 * measures, and the thread is in none of them.
 */
bool torsh_cuda_may_query(void);

/* The same where the thread is about to make a driver call of the program's. */
bool torsh_cuda_may_query_at_call(void);

/* Query the event pairs of launched work, if the next poll is due. now_ns: CLOCK_MONOTONIC. */
void torsh_cuda_poll_marks(uint64_t now_ns);

/* The process ends: record all launches left, with the times that are available. */
void torsh_cuda_end_marks(void);

#endif
