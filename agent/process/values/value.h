/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Numbers, sizes and times in the values of variables. Each returns 0, or -1 and stores nothing. */
#ifndef TORSH_AGENT_PROCESS_VALUES_VALUE_H
#define TORSH_AGENT_PROCESS_VALUES_VALUE_H

#include <stddef.h>
#include <stdint.h>

/* length decimal digits. */
int torsh_value_digits(const char *digits, size_t length, uint64_t *number);

/* Decimal digits to the end of the text. */
int torsh_value_number(const char *value, uint64_t *number);

/* "4096", "64K", "10MB", "2G", "1T": bytes. */
int torsh_value_size(const char *value, uint64_t *bytes);

/* "200ms", "5s", "5", "2m", "1h": from least_ns to most_ns. */
int torsh_value_time(const char *value, uint64_t least_ns, uint64_t most_ns, uint64_t *ns);

#endif
