/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * NVTX's schemas and payloads: one byte for the schema's fields, one for the number of its entries,
 * 12 for each of those; then the payload, which ends before an unreadable page. The values of
 * ranges are not checked here.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collectors/ranges/nvtx_events.h"
#include "shim/ranges/nvtx.h"

#define ENTRY_BYTES 12u
#define ENTRIES_MAX 15u
#define PAYLOAD_MAX 4096u
#define LABEL_OF_SCHEMA 7u
#define SCHEMA 42u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

typedef uint64_t register_schema_fn(void *domain, const struct nvtx_schema *schema);
typedef void batch_fn(void *domain, const struct nvtx_batch *batch);
typedef void mark_fn(void *domain, const struct nvtx_payload *payloads, size_t n);

intptr_t torsh_nvtx_consumer_memory[NVTX_EXTENSION_SLOTS],
	torsh_nvtx_consumer_payload[NVTX_EXTENSION_SLOTS],
	torsh_nvtx_consumer_counters[NVTX_EXTENSION_SLOTS];
static struct nvtx_payload payload;

/* ---- in place of the rest of the collector, which would start the agent ---------------------- */

uint32_t torsh_nvtx_label(void *handle)
{
	return (uint32_t)((uintptr_t)handle >> 1);
}

uint64_t torsh_nvtx_start(const struct range_attributes *says, uint64_t theirs, bool has_consumer)
{
	(void)says;
	(void)has_consumer;
	return theirs;
}

void torsh_nvtx_end(uint64_t id)
{
	(void)id;
}

uint32_t torsh_ranges_label(const char *text)
{
	return text ? LABEL_OF_SCHEMA : 0;
}

int torsh_ranges_push(const struct range_attributes *says)
{
	(void)says;
	return 0;
}

int torsh_ranges_pop(struct range_text domain, enum range_source source)
{
	(void)domain;
	(void)source;
	return 0;
}

void torsh_ranges_value(const struct range_attributes *says, enum value_kind kind)
{
	(void)says;
	(void)kind;
}

struct range_text torsh_nvtx_category(uint32_t domain, uint32_t category, char *room)
{
	(void)domain;
	(void)category;
	(void)room;
	return (struct range_text){0};
}

void torsh_ranges_note(const char *sentence)
{
	(void)sentence;
}

/* A deferred event's text is a word of the payload, as a mark's is. */
void torsh_ranges_deferred(const struct range_attributes *says, uint64_t begin_ns,
			   uint64_t duration_ns, bool is_mark)
{
	(void)begin_ns;
	(void)duration_ns;
	(void)is_mark;
	torsh_ranges_mark(says);
}

/* A text is a word of the payload; it may be anything, and is the program's to answer for. */
void torsh_ranges_mark(const struct range_attributes *says)
{
	if (says->name.bytes &&
	    !memmem(payload.bytes, payload.size_bytes, &says->name.bytes, sizeof(says->name.bytes)))
		abort();
}

/* ---- the harness ----------------------------------------------------------------------------- */

/*
 * A kind that matters, how it is flagged, and an offset that lies near the payload's end more often
 * than chance has it.
 */
static void fill_entry(struct nvtx_schema_entry *entry, const uint8_t *printed)
{
	static const uint64_t types[] = {NVTX_ENTRY_CSTRING,
					 NVTX_ENTRY_CSTRING_UTF8,
					 NVTX_ENTRY_REGISTERED,
					 0,
					 NVTX_ENTRY_CATEGORY,
					 NVTX_ENTRY_COLOR,
					 17,
					 12};

	memset(entry, 0, sizeof(*entry));
	entry->type = types[printed[0] & 7];
	entry->detail = printed[2];
	entry->flags = printed[1] & (NVTX_ENTRY_IS_ARRAY | NVTX_ENTRY_IS_POINTER);
	if (printed[1] & 8)
		entry->flags |= NVTX_ENTRY_IS_TIMESTAMP;
	if (printed[1] & 1)
		entry->flags |= NVTX_ENTRY_IS_MESSAGE;
	memcpy(&entry->offset, printed + 4, sizeof(entry->offset));
}

static void *end_of_page(void)
{
	static char *page;

	if (!page) {
		page = mmap(NULL, 2 * PAYLOAD_MAX, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED || mprotect(page + PAYLOAD_MAX, PAYLOAD_MAX, PROT_NONE))
			abort();
	}
	return page + PAYLOAD_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static uintptr_t domain; /* each input has its own: schemas are never forgotten */
	struct nvtx_schema_entry entries[ENTRIES_MAX];
	struct nvtx_schema schema = {.entries = entries, .name = "schema", .id = SCHEMA};
	uint64_t id;

	if (n_bytes < 2)
		return 0;
	schema.fields = bytes[0] | (bytes[1] & 0x80u ? NVTX_SCHEMA_HAS_ID : 0);
	schema.n_entries = bytes[1] & ENTRIES_MAX;
	bytes += 2;
	n_bytes -= 2;
	if (n_bytes < schema.n_entries * ENTRY_BYTES ||
	    n_bytes - schema.n_entries * ENTRY_BYTES > PAYLOAD_MAX)
		return 0;
	for (size_t i = 0; i < schema.n_entries; i++, bytes += ENTRY_BYTES, n_bytes -= ENTRY_BYTES)
		fill_entry(&entries[i], bytes);
	domain += 2;
	id = ((register_schema_fn *)torsh_nvtx_payload[0])((void *)domain, &schema);
	payload = (struct nvtx_payload){.schema = id, .size_bytes = n_bytes};
	payload.bytes = memcpy((char *)end_of_page() - n_bytes, bytes, n_bytes);
	((mark_fn *)torsh_nvtx_payload[2])((void *)domain, &payload, 1);
	((mark_fn *)torsh_nvtx_payload[16])((void *)domain, &payload, 1);
	((batch_fn *)torsh_nvtx_payload[17])(
		(void *)domain,
		&(struct nvtx_batch){.schema = id, .size_bytes = n_bytes, .events = payload.bytes});
	return 0;
}
