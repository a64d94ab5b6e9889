/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/ranges/itt_values.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/process/text_buffer.h"
#include "agent/producer/label.h"

static size_t bytes_of(uint32_t type)
{
	static const uint8_t bytes[] = {0, 8, 8, 4, 4, 2, 2, 4, 8};

	return type < sizeof(bytes) ? bytes[type] : 0;
}

void torsh_itt_read_number(struct range_attributes *range, uint32_t type, const void *data)
{
	uint64_t bits = 0;
	double number;

	if (!data || !bytes_of(type))
		return;
	memcpy(&bits, data, bytes_of(type));
	switch (type) {
	case ITT_TYPE_S64:
	case ITT_TYPE_S32:
	case ITT_TYPE_S16: {
		unsigned int shift = 64 - 8 * (unsigned int)bytes_of(type);

		range->payload_type = PAYLOAD_I64;
		range->payload = (uint64_t)((int64_t)(bits << shift) >> shift);
		return;
	}
	case ITT_TYPE_FLOAT: {
		float narrow;

		memcpy(&narrow, data, sizeof(narrow));
		number = narrow;
		memcpy(&bits, &number, sizeof(bits));
		range->payload_type = PAYLOAD_F64;
		break;
	}
	case ITT_TYPE_DOUBLE:
		range->payload_type = PAYLOAD_F64;
		break;
	default:
		range->payload_type = PAYLOAD_U64;
	}
	range->payload = bits;
}

/*
 * The name of a histogram's bar: "name[x]", x its index if that is no whole number. Not inlined: it
 * isn't on the stack while the bar is sent.
 */
static __attribute__((noinline)) void name_bar(const struct itt_histogram *histogram, size_t i,
					       const void *x, struct text *text)
{
	struct range_attributes at = {0};

	if (x)
		torsh_itt_read_number(&at, histogram->x_type,
				      (const char *)x + i * bytes_of(histogram->x_type));
	text->length = 0;
	torsh_text_put(text, histogram->name);
	torsh_text_put(text, "[");
	torsh_text_put_number(text, at.payload_type == PAYLOAD_U64 ? at.payload : i);
	torsh_text_put(text, "]");
}

static __attribute__((noinline)) void submit_bar(const struct itt_histogram *histogram,
						 const char *name, const void *y)
{
	struct range_attributes range = {
		.name = {.bytes = name},
		.domain = {.bytes = histogram->domain ? histogram->domain->name : NULL},
		.source = RANGE_BY_ITT,
	};

	torsh_itt_read_number(&range, histogram->y_type, y);
	torsh_ranges_value(&range, VALUE_SAMPLE);
}

void torsh_itt_submit_histogram(const struct itt_histogram *histogram, size_t n, const void *x,
				const void *y)
{
	struct text name;

	if (!histogram || !histogram->name || !y)
		return;
	name = torsh_text_map(LABEL_BUFFER_BYTES);
	for (size_t i = 0; i < n; i++) {
		name_bar(histogram, i, x, &name);
		submit_bar(histogram, name.bytes,
			   (const char *)y + i * bytes_of(histogram->y_type));
	}
	torsh_text_unmap(&name);
}

static struct range_attributes counter_attributes(const struct counter *counter)
{
	return (struct range_attributes){
		.name = {.label = counter->name},
		.domain = {.label = counter->domain},
		.source = RANGE_BY_ITT,
	};
}

void torsh_itt_count(struct counter *counter, uint64_t by)
{
	struct range_attributes range;

	if (!counter)
		return;
	range = counter_attributes(counter);
	/* Decremented below 0 it is a negative number. */
	range.payload_type = PAYLOAD_I64;
	range.payload = atomic_fetch_add_explicit(&counter->count, by, memory_order_relaxed) + by;
	torsh_ranges_value(&range, VALUE_COUNTER);
}

void torsh_itt_set_counter(void *handle, const void *value)
{
	struct counter *counter = torsh_itt_find_counter(handle);
	struct range_attributes range;

	if (!counter || !value)
		return;
	range = counter_attributes(counter);
	torsh_itt_read_number(&range, counter->type ? counter->type : ITT_TYPE_U64, value);
	atomic_store_explicit(&counter->count, range.payload, memory_order_relaxed);
	torsh_ranges_value(&range, VALUE_COUNTER);
}
