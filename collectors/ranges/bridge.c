/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/ranges/bridge.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/process/process.h"
#include "agent/producer/key_map.h"
#include "agent/producer/label.h"
#include "collectors/ranges/itt_handles.h"

#define ITT_DEFAULT_DOMAIN "torsh" /* ITT has no ranges of no domain */
#define NVTX_VERSION 3
#define SCOPE_THREAD 3 /* __itt_scope_track */

static struct key_map nvtx_domains; /* hash of the text -> the consumer's handle */

/* A text as a NUL-terminated string, which the text of a label is already. */
static const char *string_of(struct range_text text)
{
	const struct channel *channel = &torsh_process->channel;
	const struct channel_code *code;
	const char *there;

	if (text.bytes || !text.label)
		return text.bytes;
	code = torsh_channel_code(channel, text.label - 1);
	there = code && code->name.length ? torsh_channel_text(channel, code->name.offset) : NULL;
	return there ? there : "";
}

static void *nvtx_domain(struct range_text text)
{
	const char *name = string_of(text);
	uint64_t key, handle;

	if (!name || !torsh_nvtx_consumer.DomainCreateA)
		return NULL;
	key = torsh_key_map_mix(torsh_ranges_label(name), 1);
	handle = torsh_key_map_find(&nvtx_domains, key);
	if (!handle) {
		handle = (uintptr_t)torsh_nvtx_consumer.DomainCreateA(name);
		if (handle)
			handle = torsh_key_map_add(&nvtx_domains, key, handle);
	}
	return (void *)(uintptr_t)handle;
}

static struct nvtx_event nvtx_event(const char *name, uint32_t color)
{
	return (struct nvtx_event){
		.version = NVTX_VERSION,
		.size = sizeof(struct nvtx_event),
		.color_type = color ? NVTX_COLOR_ARGB : NVTX_COLOR_NONE,
		.color = color,
		.message_type = NVTX_MESSAGE_ASCII,
		.message.ascii = name ? name : "",
	};
}

static struct itt_domain *itt_domain(struct range_text text)
{
	const char *name = string_of(text);

	name = name ? name : ITT_DEFAULT_DOMAIN;
	return torsh_itt_consumer.domain_create ? torsh_itt_consumer.domain_create(name)
						: torsh_itt_domain(name);
}

static struct itt_string *itt_string(struct range_text text)
{
	const char *name = string_of(text);

	name = name ? name : "";
	return torsh_itt_consumer.string_handle_create
		       ? torsh_itt_consumer.string_handle_create(name)
		       : torsh_itt_string(name);
}

static void push_nvtx(void *domain, const struct range_attributes *range)
{
	struct nvtx_event event = nvtx_event(string_of(range->name), range->color);

	torsh_nvtx_consumer.DomainRangePushEx(domain, &event);
}

static void mark_nvtx(void *domain, const struct range_attributes *range)
{
	struct nvtx_event event = nvtx_event(string_of(range->name), range->color);

	torsh_nvtx_consumer.DomainMarkEx(domain, &event);
}

/* Events of a protocol are forwarded by that protocol itself. */
static bool forwards_to_nvtx(uint32_t source)
{
	return torsh_nvtx_has_consumer && source != RANGE_BY_NVTX;
}

static bool forwards_to_itt(uint32_t source)
{
	return torsh_itt_has_consumer && source != RANGE_BY_ITT;
}

void torsh_bridge_push(const struct range_attributes *range)
{
	struct itt_domain *domain;

	if (forwards_to_nvtx(range->source) && torsh_nvtx_consumer.DomainRangePushEx)
		push_nvtx(nvtx_domain(range->domain), range);
	if (!forwards_to_itt(range->source) || !torsh_itt_consumer.task_begin)
		return;
	domain = itt_domain(range->domain);
	if (domain && domain->is_enabled)
		torsh_itt_consumer.task_begin(domain, (struct itt_id){0}, (struct itt_id){0},
					      itt_string(range->name));
}

void torsh_bridge_pop(struct range_text text, enum range_source source)
{
	struct itt_domain *domain;

	if (forwards_to_nvtx(source) && torsh_nvtx_consumer.DomainRangePop)
		torsh_nvtx_consumer.DomainRangePop(nvtx_domain(text));
	if (!forwards_to_itt(source) || !torsh_itt_consumer.task_end)
		return;
	domain = itt_domain(text);
	if (domain && domain->is_enabled)
		torsh_itt_consumer.task_end(domain);
}

void torsh_bridge_mark(const struct range_attributes *range)
{
	struct itt_domain *domain;

	if (forwards_to_nvtx(range->source) && torsh_nvtx_consumer.DomainMarkEx)
		mark_nvtx(nvtx_domain(range->domain), range);
	if (!forwards_to_itt(range->source) || !torsh_itt_consumer.marker)
		return;
	domain = itt_domain(range->domain);
	if (domain && domain->is_enabled)
		torsh_itt_consumer.marker(domain, (struct itt_id){0}, itt_string(range->name),
					  SCOPE_THREAD);
}

void torsh_bridge_start(const struct range_attributes *range, uint64_t number)
{
	struct itt_domain *domain;

	if (!forwards_to_itt(range->source) || !torsh_itt_consumer.task_begin_overlapped)
		return;
	/* The same domain for all: at the end there is only the number. */
	domain = itt_domain((struct range_text){0});
	if (domain && domain->is_enabled)
		torsh_itt_consumer.task_begin_overlapped(domain, (struct itt_id){.d1 = number},
							 (struct itt_id){0},
							 itt_string(range->name));
}

void torsh_bridge_end(uint64_t number)
{
	struct itt_domain *domain;

	/* ITT's own numbers have this bit. */
	if (!torsh_itt_has_consumer || !torsh_itt_consumer.task_end_overlapped || number >> 63)
		return;
	domain = itt_domain((struct range_text){0});
	if (domain && domain->is_enabled)
		torsh_itt_consumer.task_end_overlapped(domain, (struct itt_id){.d1 = number});
}

/* ITT's frames have no names: tasks with numbers that those of ranges don't have. */
static void step_itt(const char *name)
{
	static _Atomic uint64_t last;
	struct itt_domain *domain = itt_domain((struct range_text){0});
	uint64_t former;

	if (!domain || !domain->is_enabled)
		return;
	former = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
	if (former)
		torsh_itt_consumer.task_end_overlapped(domain,
						       (struct itt_id){.d1 = former, .d2 = 1});
	torsh_itt_consumer.task_begin_overlapped(domain, (struct itt_id){.d1 = former + 1, .d2 = 1},
						 (struct itt_id){0},
						 itt_string((struct range_text){.bytes = name}));
}

static void step_nvtx(const char *name)
{
	static _Atomic uint64_t last;
	void *domain = nvtx_domain((struct range_text){.bytes = "torsh steps"});
	struct nvtx_event event = nvtx_event(name, 0);
	uint64_t former =
		atomic_exchange(&last, torsh_nvtx_consumer.DomainRangeStartEx(domain, &event));

	if (former)
		torsh_nvtx_consumer.DomainRangeEnd(domain, former);
}

void torsh_bridge_step(const char *name)
{
	if (torsh_itt_consumer.task_begin_overlapped && torsh_itt_consumer.task_end_overlapped)
		step_itt(name);
	if (torsh_nvtx_consumer.DomainRangeStartEx && torsh_nvtx_consumer.DomainRangeEnd)
		step_nvtx(name);
}
