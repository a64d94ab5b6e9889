/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Submits NVTX's deferred events, with the times of several clocks, and describes two pools of
 * memory. The truth goes to stdout, as CLOCK_MONOTONIC has it; test/e2e/ranges/nvtx_deferred.py
 * compares it with the recording.
 */
#include <inttypes.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSemanticsTime.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TICKS_TIME_DOMAIN (NVTX_TIME_DOMAIN_ID_STATIC_START + 1)
#define UNKNOWN_TIME_DOMAIN (NVTX_TIME_DOMAIN_ID_STATIC_START + 2)
#define READ_TIME_DOMAIN (NVTX_TIME_DOMAIN_ID_STATIC_START + 3)
#define TICKS_PER_US 25 /* of a clock of our own: a tick is 40 ns */

static nvtxDomainHandle_t domain;

static int64_t read_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

static int64_t read_ticks(void)
{
	return now_ns() * TICKS_PER_US / 1000 + 77;
}

struct measured { /* the offsets of all but the first are left to the tool */
	int64_t begin, end;
	uint32_t category, color;
	const char *message;
};

struct moment {
	uint8_t first;
	int64_t at;
	nvtxStringHandle_t message;
};

static uint64_t register_schema(uint64_t use, const nvtxPayloadSchemaEntry_t *entries, size_t n,
				size_t bytes)
{
	nvtxPayloadSchemaAttr_t schema;

	memset(&schema, 0, sizeof(schema));
	schema.fieldMask =
		NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
		NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
		NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
		(bytes ? NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE : 0);
	schema.name = "of the schema";
	schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
	schema.flags = use;
	schema.entries = entries;
	schema.numEntries = n;
	schema.payloadStaticSize = bytes;
	return nvtxPayloadSchemaRegister(domain, &schema);
}

static uint64_t range_schema(uint64_t time_domain)
{
	nvtxSemanticsTime_t semantics = {
		{sizeof(semantics), NVTX_SEMANTIC_ID_TIME_V1, NVTX_TIME_SEMANTIC_VERSION, NULL},
		time_domain};
	const nvtxPayloadSchemaEntry_t entries[] = {
		{NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_BEGIN,
		 NVTX_PAYLOAD_ENTRY_TYPE_INT64, "begin", NULL, 0, 0,
		 time_domain ? &semantics.header : NULL, NULL},
		{NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_END,
		 NVTX_PAYLOAD_ENTRY_TYPE_INT64, "end", NULL, 0, 0,
		 time_domain ? &semantics.header : NULL, NULL},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY, "category", NULL, 0, 0, NULL, NULL},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB, "color", NULL, 0, 0, NULL, NULL},
		{NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "message",
		 NULL, 0, 0, NULL, NULL},
	};

	return register_schema(NVTX_PAYLOAD_SCHEMA_FLAG_RANGE_PUSHPOP, entries, 5,
			       sizeof(struct measured));
}

static void say_truth(const char *name, int64_t begin_ns, int64_t end_ns)
{
	printf("%s %" PRId64 " %" PRId64 "\n", name, begin_ns, end_ns);
}

static void submit_batch(uint64_t schema, const void *events, size_t bytes)
{
	nvtxEventBatch_t batch;

	memset(&batch, 0, sizeof(batch));
	batch.eventSchemaId = schema;
	batch.size = bytes;
	batch.events = events;
	nvtxEventBatchSubmit(domain, &batch);
}

static void submit_one(uint64_t schema, const struct measured *event)
{
	nvtxPayloadData_t data = {schema, sizeof(*event), event};

	nvtxEventSubmit(domain, &data, 1);
}

/* Three ranges by the tool's clock: one after the other, and one within the first. */
static void submit_of_tool(void)
{
	uint64_t schema = range_schema(NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED);
	struct measured events[3];
	int64_t truth[2];

	truth[0] = now_ns();
	events[0] = (struct measured){nvtxTimestampGet(), 0, 4, 0xff00ff00, "first"};
	events[1] = (struct measured){nvtxTimestampGet(), nvtxTimestampGet(), 0, 0, "inside"};
	events[0].end = nvtxTimestampGet();
	events[2] = (struct measured){nvtxTimestampGet(), nvtxTimestampGet(), 0, 0, NULL};
	truth[1] = now_ns();
	submit_batch(schema, events, sizeof(events));
	say_truth("tool", truth[0], truth[1]);
}

static void submit_of_system(void)
{
	int64_t truth[2] = {now_ns(), 0};
	struct measured event = {read_ns(CLOCK_REALTIME), 0, 0, 0, "realtime"};

	event.end = event.begin + 5000;
	truth[1] = now_ns();
	submit_one(range_schema(NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_REALTIME), &event);
	say_truth("realtime", truth[0], truth[1]);
	event = (struct measured){truth[0], truth[1], 0, 0, "monotonic"};
	submit_one(range_schema(NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC), &event);
	say_truth("monotonic", truth[0], truth[1]);
}

/* By two points that it has in common with the system's clock, and by the tool's own reading. */
static void submit_of_own(void)
{
	int64_t at_ns = now_ns(), ticks = read_ticks();
	struct measured event = {ticks, ticks + TICKS_PER_US * 1000, 0, 0, "ticks"};
	nvtxTimeDomainAttr_t attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.timeDomainId = TICKS_TIME_DOMAIN;
	nvtxTimeDomainRegister(domain, &attributes);
	submit_one(range_schema(TICKS_TIME_DOMAIN), &event); /* too early: nothing is known yet */
	nvtxTimeSyncPoint(domain, TICKS_TIME_DOMAIN,
			  NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC, 1000 * TICKS_PER_US,
			  500000);
	nvtxTimeSyncPoint(domain, TICKS_TIME_DOMAIN,
			  NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC, ticks, at_ns);
	submit_one(range_schema(TICKS_TIME_DOMAIN), &event);
	say_truth("ticks", at_ns, at_ns);
	attributes.timeDomainId = READ_TIME_DOMAIN;
	attributes.timerResolution = TICKS_PER_US * 1000000;
	nvtxTimeDomainRegister(domain, &attributes);
	nvtxTimerSource(domain, READ_TIME_DOMAIN, 0, read_ticks);
	at_ns = now_ns();
	event = (struct measured){read_ticks(), read_ticks() + 25, 0, 0, "read"};
	submit_one(range_schema(READ_TIME_DOMAIN), &event);
	say_truth("read", at_ns, now_ns());
	event.message = "never";
	submit_one(range_schema(UNKNOWN_TIME_DOMAIN), &event);
}

static void submit_marks(void)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		{0, NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "first", NULL, 0, 0, NULL, NULL},
		{NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "at", NULL, 0, 0,
		 NULL, NULL},
		{NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE,
		 NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "message", NULL, 0, 0, NULL,
		 NULL},
	};
	uint64_t schema =
		register_schema(NVTX_PAYLOAD_SCHEMA_FLAG_MARK, entries, 3, sizeof(struct moment));
	nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, "marked");
	int64_t before_ns = now_ns();
	struct moment moments[2] = {{1, nvtxTimestampGet(), name}, {2, nvtxTimestampGet(), name}};

	say_truth("marks", before_ns, now_ns());
	submit_batch(schema, moments, sizeof(moments));
	submit_batch(schema, moments, sizeof(moments) - 1); /* a whole one, and a part */
}

struct reversed {
	int64_t end, begin;
	const char *message;
};

/* The last entry isn't the last part, and the first timestamp isn't the begin. */
static void submit_reversed(void)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		{NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_END,
		 NVTX_PAYLOAD_ENTRY_TYPE_INT64, "end", NULL, 0, 0, NULL, NULL},
		{NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "message",
		 NULL, 0, offsetof(struct reversed, message), NULL, NULL},
		{NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_BEGIN,
		 NVTX_PAYLOAD_ENTRY_TYPE_INT64, "begin", NULL, 0, offsetof(struct reversed, begin),
		 NULL, NULL},
	};
	uint64_t schema = register_schema(NVTX_PAYLOAD_SCHEMA_FLAG_RANGE_PUSHPOP, entries, 3, 0);
	int64_t begin = nvtxTimestampGet();
	struct reversed events[2] = {{begin + 3000, begin, "reversed"},
				     {begin + 5000, begin, "again"}};

	submit_batch(schema, events, sizeof(events));
}

/* ---- pools of memory ------------------------------------------------------------------------- */

static char first_pool[1 << 16], second_pool[1 << 12];

static nvtxMemHeapHandle_t register_pool(const char *name, char *pool, size_t bytes)
{
	nvtxMemVirtualRangeDesc_t extent = {bytes, pool};
	nvtxMemHeapDesc_t desc;

	memset(&desc, 0, sizeof(desc));
	desc.extCompatID = NVTX_EXT_COMPATID_MEM;
	desc.structSize = sizeof(desc);
	desc.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
	desc.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
	desc.typeSpecificDescSize = sizeof(extent);
	desc.typeSpecificDesc = &extent;
	desc.messageType = NVTX_MESSAGE_TYPE_ASCII;
	desc.message.ascii = name;
	return nvtxMemHeapRegister(domain, &desc);
}

static void register_regions(nvtxMemHeapHandle_t heap, const nvtxMemVirtualRangeDesc_t *extents,
			     size_t n, nvtxMemRegionHandle_t *handles)
{
	nvtxMemRegionsRegisterBatch_t batch;

	memset(&batch, 0, sizeof(batch));
	batch.extCompatID = NVTX_EXT_COMPATID_MEM;
	batch.structSize = sizeof(batch);
	batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
	batch.heap = heap;
	batch.regionCount = n;
	batch.regionDescElementSize = sizeof(*extents);
	batch.regionDescElements = extents;
	batch.regionHandleElementsOut = handles;
	nvtxMemRegionsRegister(domain, &batch);
}

static void resize_region(void *address, size_t bytes)
{
	nvtxMemVirtualRangeDesc_t extent = {bytes, address};
	nvtxMemRegionsResizeBatch_t batch;

	memset(&batch, 0, sizeof(batch));
	batch.extCompatID = NVTX_EXT_COMPATID_MEM;
	batch.structSize = sizeof(batch);
	batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
	batch.regionDescCount = 1;
	batch.regionDescElementSize = sizeof(extent);
	batch.regionDescElements = &extent;
	nvtxMemRegionsResize(domain, &batch);
}

static void unregister_region(uint32_t type, nvtxMemRegionRef_t region)
{
	nvtxMemRegionsUnregisterBatch_t batch;

	memset(&batch, 0, sizeof(batch));
	batch.extCompatID = NVTX_EXT_COMPATID_MEM;
	batch.structSize = sizeof(batch);
	batch.refType = type;
	batch.refCount = 1;
	batch.refElementSize = sizeof(region);
	batch.refElements = &region;
	nvtxMemRegionsUnregister(domain, &batch);
}

static void name_region(nvtxMemRegionHandle_t region, const char *name)
{
	nvtxMemRegionNameDesc_t named;
	nvtxMemRegionsNameBatch_t batch;

	memset(&named, 0, sizeof(named));
	named.regionRefType = NVTX_MEM_REGION_REF_TYPE_HANDLE;
	named.nameType = NVTX_MESSAGE_TYPE_ASCII;
	named.region.handle = region;
	named.name.ascii = name;
	memset(&batch, 0, sizeof(batch));
	batch.extCompatID = NVTX_EXT_COMPATID_MEM;
	batch.structSize = sizeof(batch);
	batch.regionCount = 1;
	batch.regionElementSize = sizeof(named);
	batch.regionElements = &named;
	nvtxMemRegionsName(domain, &batch);
}

/* 100 + 200 + 300, less 200, the first one 150: 450 at the end, 600 at most. */
static void describe_pools(void)
{
	nvtxMemVirtualRangeDesc_t extents[] = {
		{100, first_pool}, {200, first_pool + 128}, {300, first_pool + 512}};
	nvtxMemHeapHandle_t heap = register_pool("arena", first_pool, sizeof(first_pool)), other;
	nvtxMemRegionHandle_t handles[3] = {0};
	nvtxMemPermissionsHandle_t permissions;

	register_regions(heap, extents, 3, handles);
	unregister_region(NVTX_MEM_REGION_REF_TYPE_POINTER,
			  (nvtxMemRegionRef_t){.pointer = first_pool + 128});
	resize_region(first_pool, 150);
	name_region(handles[2], "weights");
	other = register_pool("scratch", second_pool, sizeof(second_pool));
	extents[0] = (nvtxMemVirtualRangeDesc_t){64, second_pool};
	register_regions(other, extents, 1, NULL);
	nvtxMemHeapReset(domain, other);
	extents[0].size = 32;
	register_regions(other, extents, 1, NULL);
	nvtxMemHeapUnregister(domain, other);
	unregister_region(NVTX_MEM_REGION_REF_TYPE_POINTER,
			  (nvtxMemRegionRef_t){.pointer = second_pool}); /* not there any more */
	extents[0] = (nvtxMemVirtualRangeDesc_t){48, &domain};
	register_regions(NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE, extents, 1, NULL);
	register_regions(other, NULL, 1, NULL); /* one region, without its description */
	permissions = nvtxMemPermissionsCreate(domain, NVTX_MEM_PERMISSIONS_CREATE_FLAGS_NONE);
	nvtxMemPermissionsDestroy(domain, permissions);
	printf("pools %d %d %d\n", heap != NULL, other != NULL,
	       handles[2] == (nvtxMemRegionHandle_t)(first_pool + 512));
}

int main(void)
{
	domain = nvtxDomainCreateA("later");
	nvtxDomainNameCategoryA(domain, 4, "four");
	submit_of_tool();
	submit_of_system();
	submit_of_own();
	submit_marks();
	submit_reversed();
	describe_pools();
	return 0;
}
