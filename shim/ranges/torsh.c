/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The entry points of torsh.h. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shim/ranges/torsh.h"
#include "shim/hooks.h"
#include "shim/ranges/nvtx.h"
#include "shim/ranges/ranges.h"
#include "shim/ranges/session_calls.h"

_Static_assert((int)TORSH_PAYLOAD_F64 == (int)PAYLOAD_F64 &&
		       (int)TORSH_VALUE_SAMPLE == (int)VALUE_SAMPLE,
	       "torsh.h and the events number alike");

/* The caller's attributes, limited to the fields that its version of the struct has. */
static struct range_attributes attributes_of(const char *name,
					     const struct torsh_attributes *attributes)
{
	struct torsh_attributes known = {0};

	if (attributes)
		memcpy(&known, attributes,
		       attributes->size < sizeof(known) ? attributes->size : sizeof(known));
	return (struct range_attributes){
		.name = {.bytes = name},
		.domain = {.bytes = known.domain},
		.category = {.bytes = known.category},
		.source = RANGE_BY_TORSH,
		.color = known.color,
		.payload_type =
			known.payload_type <= PAYLOAD_F64 ? known.payload_type : PAYLOAD_NONE,
		.payload = known.payload.u64,
	};
}

/* Another NVTX tool gets these calls too, even if nothing in the process uses NVTX itself. */
static void attach_consumer(void)
{
	static bool is_done;

	/* Concurrent calls are harmless. */
	if (__atomic_load_n(&is_done, __ATOMIC_RELAXED))
		return;
	if (torsh_ranges_wanted(RANGE_BY_NVTX))
		torsh_nvtx_attach_consumer();
	__atomic_store_n(&is_done, 1, __ATOMIC_RELAXED);
}

EXPORT int torsh_v1_range_push(const char *name, const struct torsh_attributes *attributes)
{
	struct range_attributes range = attributes_of(name, attributes);

	attach_consumer();
	return torsh_ranges_push(&range);
}

EXPORT int torsh_v1_range_pop(const char *domain)
{
	return torsh_ranges_pop((struct range_text){.bytes = domain}, RANGE_BY_TORSH);
}

EXPORT uint64_t torsh_v1_range_start(const char *name, const struct torsh_attributes *attributes)
{
	struct range_attributes range = attributes_of(name, attributes);
	uint64_t number;

	if (!torsh_ranges_wanted(RANGE_BY_TORSH))
		return 0;
	number = torsh_ranges_number();
	torsh_ranges_start(&range, number);
	return number;
}

EXPORT void torsh_v1_range_end(uint64_t range)
{
	if (range)
		torsh_ranges_end(range);
}

EXPORT void torsh_v1_mark(const char *name, const struct torsh_attributes *attributes)
{
	struct range_attributes range = attributes_of(name, attributes);

	attach_consumer();
	torsh_ranges_mark(&range);
}

EXPORT void torsh_v1_value(const char *name, const char *domain, uint32_t kind, double value)
{
	struct range_attributes range = {
		.name = {.bytes = name},
		.domain = {.bytes = domain},
		.source = RANGE_BY_TORSH,
		.payload_type = PAYLOAD_F64,
	};

	memcpy(&range.payload, &value, sizeof(value));
	if (kind <= VALUE_SAMPLE)
		torsh_ranges_value(&range, (enum value_kind)kind);
}

EXPORT void torsh_v1_step(const char *name, uint64_t number)
{
	torsh_ranges_step((struct range_text){.bytes = name}, number);
}

/* The verbs of torsh.h are those of the channel. */
_Static_assert((int)TORSH_CALL_RESUME_ == (int)CALL_RESUME &&
		       (int)TORSH_CALL_LEAKS_ == (int)CALL_LEAKS &&
		       TORSH_WITH_SITES_ == CALL_WITH_SITES &&
		       (int)TORSH_CALL_MEMORY_ == (int)CALL_MEMORY,
	       "torsh.h and the channel number alike");

EXPORT int torsh_v1_call(uint32_t verb, uint32_t window, struct torsh_memory *memory)
{
	struct channel_memory answer;
	int result = torsh_session_call(verb, window, &answer);
	struct torsh_memory known = {
		.window = answer.window,
		.current_bytes = answer.bytes,
		.current_blocks = answer.blocks,
		.begin_bytes = answer.begin_bytes,
		.begin_blocks = answer.begin_blocks,
		.peak_bytes = answer.peak_bytes,
	};

	if (memory) {
		known.size = memory->size;
		memcpy(memory, &known, known.size < sizeof(known) ? known.size : sizeof(known));
	}
	return result;
}

EXPORT int torsh_v1_file(uint32_t verb, const char *argument, const char *path)
{
	return torsh_session_write_file(verb, argument, path);
}
