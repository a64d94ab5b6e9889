/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A typical tool for NVTX: writes its calls to the file CONSUMER_LOG, a line a call, with
 * CONSUMER_THREADS after the caller's thread, and insists that it receives the handles that it
 * returned.
 */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_DEPTH 100
#define FIRST_RANGE 1000

struct handle {
	char magic;
	const char *text;
};

static FILE *log_file;
static int depth = FIRST_DEPTH;
static nvtxRangeId_t last_range = FIRST_RANGE;

static void *make_handle(const char *text)
{
	struct handle *handle = malloc(sizeof(*handle));

	handle->magic = 'h';
	handle->text = strdup(text);
	return handle;
}

static const char *text_of(const void *handle)
{
	const struct handle *known = handle;

	if (!handle)
		return "default";
	if (known->magic != 'h')
		abort();
	return known->text;
}

static void put(const char *call, const char *domain, const char *text)
{
	if (getenv("CONSUMER_THREADS"))
		fprintf(log_file, "%ld ", syscall(SYS_gettid));
	fprintf(log_file, "%s %s %s\n", call, domain, text);
	fflush(log_file);
}

static const char *message_of(const nvtxEventAttributes_t *event)
{
	if (event->size < NVTX_EVENT_ATTRIB_STRUCT_SIZE)
		return "older";
	if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED)
		return text_of(event->message.registered);
	return event->messageType == NVTX_MESSAGE_TYPE_ASCII ? event->message.ascii : "wide";
}

static void mark(const char *message)
{
	put("mark", "default", message);
}

static void mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
	put("mark", text_of(domain), message_of(event));
}

static void mark_default(const nvtxEventAttributes_t *event)
{
	mark_ex(NULL, event);
}

static int push(const char *message)
{
	put("push", "default", message);
	return depth++;
}

static int push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
	put("push", text_of(domain), message_of(event));
	return depth++;
}

static int push_default(const nvtxEventAttributes_t *event)
{
	return push_ex(NULL, event);
}

static int pop_from(nvtxDomainHandle_t domain)
{
	put("pop", text_of(domain), "");
	return --depth;
}

static int pop(void)
{
	return pop_from(NULL);
}

static nvtxRangeId_t start(const char *message)
{
	put("start", "default", message);
	return ++last_range;
}

static nvtxRangeId_t start_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
	put("start", text_of(domain), message_of(event));
	return ++last_range;
}

static void end_in(nvtxDomainHandle_t domain, nvtxRangeId_t range)
{
	put("end", text_of(domain),
	    range > FIRST_RANGE && range <= last_range ? "known" : "unknown");
}

static void end(nvtxRangeId_t range)
{
	end_in(NULL, range);
}

static nvtxDomainHandle_t create_domain(const char *name)
{
	put("domain", name, "");
	return make_handle(name);
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *string)
{
	put("string", text_of(domain), string);
	return make_handle(string);
}

static void install(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
		    unsigned slot, void *function)
{
	NvtxFunctionTable table;
	unsigned int n_slots;

	if (callbacks->GetModuleFunctionTable(module, &table, &n_slots) && slot < n_slots)
		*table[slot] = (NvtxFunctionPointer)function;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
	const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
	const NvtxExportTableVersionInfo *version = get(NVTX_ETID_VERSIONINFO);

	if (getenv("CONSUMER_FAILS"))
		return 0;
	log_file = fopen(getenv("CONSUMER_LOG"), "a");
	put("initialize", version && version->version == NVTX_VERSION ? "3" : "?", "");
	install(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkA, mark);
	install(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkEx, mark_default);
	install(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, push);
	install(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, push_default);
	install(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, pop);
	install(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, start);
	install(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, end);
	install(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx, mark_ex);
	install(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, push_ex);
	install(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, pop_from);
	install(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, start_ex);
	install(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, end_in);
	install(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, create_domain);
	install(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA,
		register_string);
	return 1;
}
