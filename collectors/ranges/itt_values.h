/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Numbers that a program passes to ITT: payloads of marks, counters and histograms. */
#ifndef TORSH_COLLECTORS_RANGES_ITT_VALUES_H
#define TORSH_COLLECTORS_RANGES_ITT_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "collectors/ranges/itt_handles.h"
#include "shim/ranges/itt.h"
#include "shim/ranges/ranges.h"

/* Set the range's payload to the number of an ITT_TYPE_* at data; data may be NULL: none. */
void torsh_itt_read_number(struct range_attributes *range, uint32_t type, const void *data);

/* Record the n bars of a histogram; x may be NULL: the bars are numbered. */
void torsh_itt_submit_histogram(const struct itt_histogram *histogram, size_t n, const void *x,
				const void *y);

/* Add to a counter and record its value; counter NULL: nothing. */
void torsh_itt_count(struct counter *counter, uint64_t by);

/* Set the counter of a handle to the number at value, in the type that it was made with. */
void torsh_itt_set_counter(void *handle, const void *value);

#endif
