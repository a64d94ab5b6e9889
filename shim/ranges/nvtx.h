/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The interface between NVTX version 3 and a tool: nvtxDetail/nvtxTypes.h and nvToolsExt.h of the
 * CUDA toolkit. Every DSO that embeds those headers looks for a tool at its first call: it opens
 * the library in NVTX_INJECTION64_PATH and calls its InitializeInjectionNvtx2.
 */
#ifndef TORSH_SHIM_RANGES_NVTX_H
#define TORSH_SHIM_RANGES_NVTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* nvtxEventAttributes_v2. Only the first `size` bytes exist. */
struct nvtx_event {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		uint32_t u32;
		int32_t i32;
		float f32;
	} payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *unicode;
		void *registered;
	} message;
};

enum nvtx_color_type { NVTX_COLOR_NONE, NVTX_COLOR_ARGB };
enum nvtx_payload_type {
	NVTX_PAYLOAD_NONE,
	NVTX_PAYLOAD_U64,
	NVTX_PAYLOAD_I64,
	NVTX_PAYLOAD_F64,
	NVTX_PAYLOAD_U32,
	NVTX_PAYLOAD_I32,
	NVTX_PAYLOAD_F32
};
enum nvtx_message_type {
	NVTX_MESSAGE_NONE,
	NVTX_MESSAGE_ASCII,
	NVTX_MESSAGE_UNICODE,
	NVTX_MESSAGE_REGISTERED
};

/* nvtxExtModuleInfo_t and its segments: an extension's functions have slots of their own. */
struct nvtx_segment {
	size_t id, n_slots;
	intptr_t *slots;
};

struct nvtx_module {
	uint16_t nvtx_version, struct_size, id, compatible_id;
	size_t n_segments;
	struct nvtx_segment *segments;
	intptr_t (*get_export)(uint32_t id);
	const void *info;
};

enum nvtx_extension {
	NVTX_EXTENSION_MEMORY = 1,
	NVTX_EXTENSION_PAYLOAD = 2,
	NVTX_EXTENSION_COUNTERS = 4
};
#define NVTX_EXTENSION_SLOTS 32u /* the headers use up to 18 */

/* nvtxPayloadData_t, and the parts of nvtxPayloadSchemaEntry_t and -Attr_t that are read. */
struct nvtx_payload {
	uint64_t schema;
	size_t size_bytes;
	const void *bytes;
};

struct nvtx_schema_entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail, offset;
	const void *semantics, *reserved;
};

struct nvtx_schema {
	uint64_t fields; /* NVTX_SCHEMA_HAS_...: the fields that are set */
	const char *name;
	uint64_t type, flags;
	const struct nvtx_schema_entry *entries;
	size_t n_entries, static_bytes, alignment;
	uint64_t id;
};

#define NVTX_SCHEMA_HAS_NAME (1u << 1)
#define NVTX_SCHEMA_HAS_ENTRIES (1u << 4)
#define NVTX_SCHEMA_HAS_N_ENTRIES (1u << 5)
#define NVTX_SCHEMA_HAS_ID (1u << 8)
#define NVTX_SCHEMA_FIRST_OF_TOOL (UINT64_C(1) << 32) /* lower ids are the application's */
#define NVTX_SCHEMA_HAS_FLAGS (1u << 3)
#define NVTX_SCHEMA_HAS_STATIC_SIZE (1u << 6)
#define NVTX_SCHEMA_HAS_ALIGNMENT (1u << 7)
#define NVTX_ENTRY_IS_MESSAGE (1u << 10)
#define NVTX_ENTRY_IS_TIMESTAMP (1u << 11)
#define NVTX_ENTRY_IS_RANGE_END (1u << 13)
#define NVTX_ENTRY_IS_POINTER (1u << 1)
#define NVTX_ENTRY_IS_ARRAY (7u << 4)
#define NVTX_ENTRY_IS_FIXED_ARRAY (1u << 4)
#define NVTX_ENTRY_CATEGORY 68
#define NVTX_ENTRY_COLOR 69
#define NVTX_ENTRY_CSTRING 75
#define NVTX_ENTRY_CSTRING_UTF8 76
#define NVTX_ENTRY_REGISTERED 80

/* What the schema of a deferred event is for, in its flags' bits 3 to 5. */
enum nvtx_schema_use {
	NVTX_SCHEMA_IS_PUSH_POP = 2 << 3,
	NVTX_SCHEMA_IS_START_END = 3 << 3,
	NVTX_SCHEMA_IS_MARK = 4 << 3,
	NVTX_SCHEMA_USES = 7 << 3
};

/* nvtxSemanticsTime_t, with its header; others have another id. */
struct nvtx_semantics {
	uint32_t struct_size;
	uint16_t id, version;
	const struct nvtx_semantics *next;
	uint64_t time_domain;
};

#define NVTX_SEMANTICS_TIME 2

/* nvtxEventBatch_t, nvtxTimeDomainAttr_t and nvtxSyncPoint_t. */
struct nvtx_batch {
	uint64_t schema;
	size_t size_bytes;
	const void *events;
	uint64_t scope, flags;
	const void *flexible;
	size_t flexible_bytes, flexible_offset;
};

struct nvtx_time_domain {
	uint64_t scope, type, id, flags;
	int64_t ticks_per_second; /* 0: unknown */
	uint64_t start;
};

struct nvtx_scope { /* nvtxScopeAttr_t */
	size_t struct_size;
	const char *path;
	uint64_t parent, id;
};

struct nvtx_sync_point {
	int64_t from, to;
};

/* Timestamp types, which are time domains, too. */
enum nvtx_clock {
	NVTX_CLOCK_NONE = 0,
	NVTX_CLOCK_TOOL = 1,
	NVTX_CLOCK_REALTIME = 12,
	NVTX_CLOCK_REALTIME_COARSE,
	NVTX_CLOCK_MONOTONIC,
	NVTX_CLOCK_MONOTONIC_RAW,
	NVTX_CLOCK_MONOTONIC_COARSE,
	NVTX_CLOCK_BOOTTIME,
	NVTX_CLOCK_CPP_STEADY = 50,
	NVTX_CLOCK_CPP_HIGH_RESOLUTION,
	NVTX_CLOCK_CPP_SYSTEM
};

#define NVTX_TIME_DOMAIN_FIRST (1u << 24) /* lower ids are types */

/* The memory extension: nvtxMemVirtualRangeDesc_t, and what nvToolsExtMem.h describes. */
#define NVTX_MEMORY_VIRTUAL 1
#define NVTX_MEMORY_BY_POINTER 1

struct nvtx_extent {
	size_t bytes;
	const void *address;
};

struct nvtx_heap {
	uint16_t compatible_id, struct_size;
	uint32_t reserved, usage, type;
	size_t extent_bytes;
	const struct nvtx_extent *extent;
	uint32_t category, message_type;
	const void *message;
};

struct nvtx_regions {
	uint16_t compatible_id, struct_size;
	uint32_t type;
	void *heap;
	size_t n, element_bytes;
	const void *elements; /* struct nvtx_extent */
	void **handles; /* NULL: not wanted */
};

struct nvtx_regions_of_no_heap { /* struct nvtx_extent to resize, or a pointer each to end */
	uint16_t compatible_id, struct_size;
	uint32_t type;
	size_t n, element_bytes;
	const void *elements;
};

struct nvtx_region_name {
	uint32_t reference, message_type;
	const void *region, *message;
	uint32_t category, reserved;
};

/* nvtxCounterAttr_t. */
struct nvtx_counter {
	size_t struct_size;
	uint64_t schema;
	const char *name, *description;
	uint64_t scope;
	const void *semantics;
	uint64_t id; /* 0: the tool chooses */
};

/* The functions of nvtx.def: the agent's, or those of another consumer. NULL: it has none. */
struct nvtx_functions {
#define NVTX(module, slot, result, Name, parameters, arguments) result(*Name) parameters;
#define NVTX_VOID(module, slot, Name, parameters, arguments) void(*Name) parameters;
#include "shim/ranges/nvtx.def"
#undef NVTX
#undef NVTX_VOID
};

extern struct nvtx_functions torsh_nvtx_consumer;
extern bool torsh_nvtx_has_consumer; /* there is another consumer: handles are its own, or NULL */

/*
 * Slots of the recorded extensions, in the order of enum nvtx_extension. 0: the consumer has none.
 */
extern intptr_t torsh_nvtx_consumer_memory[NVTX_EXTENSION_SLOTS],
	torsh_nvtx_consumer_payload[NVTX_EXTENSION_SLOTS],
	torsh_nvtx_consumer_counters[NVTX_EXTENSION_SLOTS];

/*
 * The agent's, in collectors/ranges/nvtx_events.c, collectors/ranges/nvtx_payload.c and
 * collectors/ranges/nvtx/: called instead of the consumer's.
 */
extern const struct nvtx_functions torsh_nvtx_functions;
extern const intptr_t torsh_nvtx_memory[NVTX_EXTENSION_SLOTS],
	torsh_nvtx_payload[NVTX_EXTENSION_SLOTS], torsh_nvtx_counters[NVTX_EXTENSION_SLOTS];

/* Open the consumer in the user's NVTX_INJECTION64_PATH, if there is one and it is not open yet. */
void torsh_nvtx_attach_consumer(void);

#endif
