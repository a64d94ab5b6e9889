/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/ranges/itt_handles.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/producer/key_map.h"
#include "shim/ranges/ranges.h"
#include "shim/sys.h"

#define CHUNK_BYTES 65536u
#define ALIGNMENT 16u

struct chunk {
	_Atomic size_t n_used;
	_Alignas(ALIGNMENT) char bytes[];
};

static struct chunk *_Atomic newest;
static struct key_map domains, strings, histograms; /* label, and domain -> struct */
static struct key_map counters; /* counter's identity -> struct counter */
static struct key_map counters_by_handle;

/* Zeroed memory that is never freed; NULL without memory. */
static void *take(size_t n_bytes)
{
	size_t n = (n_bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1),
	       room = CHUNK_BYTES - sizeof(struct chunk);
	struct chunk *chunk = atomic_load_explicit(&newest, memory_order_acquire), *made;

	if (n > room)
		return NULL;
	for (;;) {
		size_t at =
			chunk ? atomic_fetch_add_explicit(&chunk->n_used, n, memory_order_relaxed)
			      : room;

		if (at + n <= room)
			return chunk->bytes + at;
		made = torsh_sys_pages(CHUNK_BYTES);
		if (!made)
			return NULL;
		/* Release pairs with the acquire above. Another thread's chunk is as good. */
		if (atomic_compare_exchange_strong_explicit(
			    &newest, &chunk, made, memory_order_acq_rel, memory_order_acquire))
			chunk = made;
		else
			torsh_sys_munmap(made, CHUNK_BYTES);
	}
}

static const char *copy_text(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = take(n);

	return copy ? memcpy(copy, text, n) : "";
}

/* The struct stored for key; `made`, unless another thread stored one first. */
static void *keep(struct key_map *map, uint64_t key, void *made)
{
	return made ? (void *)(uintptr_t)torsh_key_map_add(map, key, (uintptr_t)made) : NULL;
}

static void *find(struct key_map *map, uint64_t key)
{
	return (void *)(uintptr_t)torsh_key_map_find(map, key);
}

struct itt_domain *torsh_itt_domain(const char *name)
{
	uint64_t key = torsh_key_map_mix(torsh_ranges_label(name), 0);
	struct itt_domain *domain = find(&domains, key);

	if (domain)
		return domain;
	domain = take(sizeof(*domain));
	if (domain) {
		domain->is_enabled = 1;
		domain->name = copy_text(name);
	}
	return keep(&domains, key, domain);
}

struct itt_string *torsh_itt_string(const char *text)
{
	uint64_t key = torsh_key_map_mix(torsh_ranges_label(text), 0);
	struct itt_string *string = find(&strings, key);

	if (string)
		return string;
	string = take(sizeof(*string));
	if (string)
		string->text = copy_text(text);
	return keep(&strings, key, string);
}

struct itt_histogram *torsh_itt_histogram(const struct itt_domain *domain, const char *name,
					  uint32_t x_type, uint32_t y_type)
{
	uint64_t key = torsh_key_map_mix(torsh_ranges_label(name), (uintptr_t)domain);
	struct itt_histogram *histogram = find(&histograms, key);

	if (histogram)
		return histogram;
	histogram = take(sizeof(*histogram));
	if (histogram)
		*histogram = (struct itt_histogram){.domain = domain,
						    .name = copy_text(name),
						    .x_type = x_type,
						    .y_type = y_type};
	return keep(&histograms, key, histogram);
}

static struct counter *counter_of(const char *name, const char *domain, uint32_t type)
{
	uint32_t name_label = torsh_ranges_label(name), domain_label = torsh_ranges_label(domain);
	uint64_t key = torsh_key_map_mix(torsh_key_map_mix(name_label, domain_label), type);
	struct counter *counter = find(&counters, key);

	if (counter)
		return counter;
	counter = take(sizeof(*counter));
	if (counter) {
		counter->name = name_label;
		counter->domain = domain_label;
		counter->type = type;
	}
	return keep(&counters, key, counter);
}

void *torsh_itt_add_counter(void *handle, const char *name, const char *domain, uint32_t type)
{
	struct counter *counter = counter_of(name, domain, type);

	if (!counter)
		return handle;
	if (!handle)
		handle = counter;
	torsh_key_map_add(&counters_by_handle, (uintptr_t)handle, (uintptr_t)counter);
	return handle;
}

struct counter *torsh_itt_find_counter(void *handle)
{
	struct counter *counter = find(&counters_by_handle, (uintptr_t)handle);
	const struct itt_counter *made = handle;

	/*
	 * Without a consumer no other tool makes handles: this one is older than the agent's
	 * connection.
	 */
	if (counter || !handle || torsh_itt_has_consumer)
		return counter;
	torsh_itt_add_counter(handle, made->name, made->domain, (uint32_t)made->type);
	return find(&counters_by_handle, (uintptr_t)handle);
}

struct counter *torsh_itt_named_counter(const struct itt_domain *domain,
					const struct itt_string *name)
{
	return domain && name ? counter_of(name->text, domain->name, ITT_TYPE_U64) : NULL;
}
