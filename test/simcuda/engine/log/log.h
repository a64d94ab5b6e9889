/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The ground truth: one JSON object a line in SIMCUDA_LOG (%p is the process), of all that the
 * devices did. Times are device time; the first line has what makes them wall-clock time.
 */
#ifndef SIMCUDA_LOG_H
#define SIMCUDA_LOG_H

#include <stdbool.h>
#include <stdint.h>

bool sim_log_is_on(void);

/* Append a line; the format makes the whole object. Texts go through sim_log_quoted. */
void sim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * The text as a JSON string with its quotes, in a buffer of the calling thread that holds it until
 * two calls later.
 */
const char *sim_log_quoted(const char *text);

/* Write what is buffered. */
void sim_log_flush(void);

/*
 * A rule of the interface that the caller broke: on stderr and in the log; with SIMCUDA_STRICT=1
 * the end of the process.
 */
void sim_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
