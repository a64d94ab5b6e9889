/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Makes every kind of NVTX annotation: a program, or (SAY_LIBRARY) a library with a function `say`.
 * The results of the calls go to stdout; test/e2e/ranges/nvtx.py has the expected recording.
 */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(NVTX_EXT_COUNTERS) || __has_include(<nvtx3/nvToolsExtCounters.h>)
#include <nvtx3/nvToolsExtCounters.h>
#endif

static nvtxRangeId_t handed_over;
static nvtxDomainHandle_t domain;

static nvtxEventAttributes_t attributes(const char *message)
{
	nvtxEventAttributes_t event;

	memset(&event, 0, sizeof(event));
	event.version = NVTX_VERSION;
	event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	event.messageType = NVTX_MESSAGE_TYPE_ASCII;
	event.message.ascii = message;
	return event;
}

static void *end_elsewhere(void *unused)
{
	(void)unused;
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "ender");
	nvtxDomainRangeEnd(domain, handed_over);
	return NULL;
}

static void say_core(void)
{
	nvtxEventAttributes_t event = attributes("all of it");
	nvtxRangeId_t range;
	int depths[6];

	nvtxMarkA("mark");
	nvtxMarkW(L"breit \u00e4\u20ac\U0001f525");
	depths[0] = nvtxRangePushA("outer");
	depths[1] = nvtxRangePushW(L"inner");
	event.category = 4;
	event.colorType = NVTX_COLOR_ARGB;
	event.color = 0xff00ff00;
	event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	event.payload.dValue = 0.5;
	nvtxNameCategoryA(4, "four");
	depths[2] = nvtxRangePushEx(&event);
	depths[3] = nvtxRangePop();
	depths[4] = nvtxRangePop();
	depths[5] = nvtxRangePop();
	range = nvtxRangeStartA("started");
	nvtxRangeEnd(range);
	printf("%d %d %d %d %d %d\n", depths[0], depths[1], depths[2], depths[3], depths[4],
	       depths[5]);
}

static void mark_payload(int32_t type, uint64_t bits)
{
	nvtxEventAttributes_t event = attributes("payload");

	event.payloadType = type;
	event.payload.ullValue = bits;
	nvtxMarkEx(&event);
}

static void say_payloads(void)
{
	nvtxEventAttributes_t event = attributes("float");

	mark_payload(NVTX_PAYLOAD_TYPE_UNSIGNED_INT64, UINT64_MAX);
	mark_payload(NVTX_PAYLOAD_TYPE_INT64, (uint64_t)-3);
	mark_payload(NVTX_PAYLOAD_TYPE_UNSIGNED_INT32, UINT64_C(0xffffffff00000007));
	mark_payload(NVTX_PAYLOAD_TYPE_INT32, UINT64_C(0x00000000fffffff7));
	event.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
	event.payload.fValue = 1.5f;
	nvtxMarkEx(&event);
	/* Newer and older than the known struct. */
	event = attributes("future");
	event.size = 400;
	event.payloadType = 0x7777;
	nvtxMarkEx(&event);
	event.size = 8;
	nvtxMarkEx(&event);
}

static void say_domain(void)
{
	nvtxEventAttributes_t event = attributes(NULL);
	nvtxStringHandle_t registered;
	pthread_t thread;
	int depths[3];

	domain = nvtxDomainCreateA("domain");
	registered = nvtxDomainRegisterStringA(domain, "registered");
	nvtxDomainNameCategoryW(domain, 4, L"vier");
	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = registered;
	event.category = 4;
	depths[0] = nvtxDomainRangePushEx(domain, &event);
	event.messageType = NVTX_MESSAGE_TYPE_UNICODE;
	event.message.unicode = L"unicode";
	event.category = 77;
	depths[1] = nvtxRangePushA("of no domain");
	nvtxDomainMarkEx(domain, &event);
	nvtxRangePop();
	depths[2] = nvtxDomainRangePop(domain);
	event = attributes("handed over");
	handed_over = nvtxDomainRangeStartEx(domain, &event);
	pthread_create(&thread, NULL, end_elsewhere, NULL);
	pthread_join(thread, NULL);
	printf("%d %d %d\n", depths[0], depths[1], depths[2]);
}

struct measured {
	uint64_t bytes;
	const char *message;
};

static void say_extensions(void)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		{0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "bytes", NULL, 0, 0, NULL, NULL},
		{NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "message",
		 NULL, 0, offsetof(struct measured, message), NULL, NULL},
	};
	struct measured measured = {5, "by payload"};
	nvtxPayloadSchemaAttr_t schema;
	nvtxPayloadData_t data;
	nvtxRangeId_t range;
	int depths[2];

	memset(&schema, 0, sizeof(schema));
	schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME |
			   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
			   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
	schema.name = "schema";
	schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
	schema.entries = entries;
	schema.numEntries = 2;
	schema.payloadStaticSize = sizeof(measured);
	data.schemaId = nvtxPayloadSchemaRegister(domain, &schema);
	data.size = sizeof(measured);
	data.payload = &measured;
	depths[0] = nvtxRangePushPayload(domain, &data, 1);
	depths[1] = nvtxRangePopPayload(domain, &data, 1);
	range = nvtxRangeStartPayload(domain, &data, 1);
	nvtxRangeEndPayload(domain, range, &data, 1);
	data.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1;
	nvtxMarkPayload(domain, &data, 1);
	printf("%d %d %d\n", depths[0], depths[1], nvtxDomainIsEnabled(domain));
#ifdef NVTX_EXT_COUNTERS_MODULEID
	{
		nvtxCounterAttr_t counter;
		uint64_t id;

		memset(&counter, 0, sizeof(counter));
		counter.structSize = sizeof(counter);
		counter.name = "counted";
		id = nvtxCounterRegister(domain, &counter);
		nvtxCounterSampleInt64(domain, id, -2);
		nvtxCounterSampleFloat64(domain, id, 2.5);
	}
#endif
}

#ifdef SAY_LIBRARY
__attribute__((visibility("default"))) void say(void)
#else
static void say(void)
#endif
{
	say_core();
	say_payloads();
	say_domain();
	say_extensions();
	fflush(stdout);
}

#ifndef SAY_LIBRARY
int main(void)
{
	say();
	return 0;
}
#endif
