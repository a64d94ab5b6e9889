/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/cpu/waits.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"

const char *const torsh_wait_kind_names[N_THREAD_WAIT_KINDS] = {
#define WAIT_KIND(NAME, name, text) #name,
#include "agent/wire/wait_kinds.def"
#undef WAIT_KIND
};

const char *const torsh_wait_kind_texts[N_THREAD_WAIT_KINDS] = {
#define WAIT_KIND(NAME, name, text) text,
#include "agent/wire/wait_kinds.def"
#undef WAIT_KIND
};

_Static_assert(N_THREAD_WAIT_KINDS <= 32, "kinds are bits of a word");

struct collection {
	struct waits *waits;
	const struct recorded_process *process;
	struct hash_map sites, threads; /* of the process: indices */
	size_t sites_room, threads_room;
	uint32_t kinds;
};

static void add(struct wait_sum *sum, const struct wait_sum *more)
{
	sum->n += more->n;
	sum->total_ns += more->total_ns;
	sum->n_unfinished += more->n_unfinished;
	sum->n_shorter += more->n_shorter;
	sum->shorter_ns += more->shorter_ns;
	if (more->longest_ns > sum->longest_ns)
		sum->longest_ns = more->longest_ns;
}

static struct wait_thread *thread_of(struct collection *collection, uint32_t thread)
{
	struct waits *waits = collection->waits;
	size_t i =
		torsh_hash_map_put(&collection->threads, &thread, sizeof(thread), waits->n_threads)
			->value;

	if (i < waits->n_threads)
		return &waits->threads[i];
	waits->threads = torsh_array_reserve(waits->threads, waits->n_threads,
					     &collection->threads_room, sizeof(*waits->threads));
	waits->threads[waits->n_threads] =
		(struct wait_thread){.process = collection->process, .thread = thread};
	return &waits->threads[waits->n_threads++];
}

static struct wait_site *site_of(struct collection *collection, const struct recorded_wait *wait)
{
	struct waits *waits = collection->waits;
	const uint32_t key[] = {wait->kind, wait->stack, wait->operator};
	size_t i = torsh_hash_map_put(&collection->sites, key, sizeof(key), waits->n_sites)->value;

	if (i < waits->n_sites)
		return &waits->sites[i];
	waits->sites = torsh_array_reserve(waits->sites, waits->n_sites, &collection->sites_room,
					   sizeof(*waits->sites));
	waits->sites[waits->n_sites] = (struct wait_site){.process = collection->process,
							  .kind = wait->kind,
							  .stack = wait->stack,
							  .operator= wait->operator};
	return &waits->sites[waits->n_sites++];
}

static void add_to_thread(struct collection *collection, uint32_t thread, uint32_t kind,
			  const struct wait_sum *sum)
{
	struct wait_thread *of = thread_of(collection, thread);

	add(&of->by_kind[kind], sum);
	add(&of->all, sum);
	add(&collection->waits->by_kind[kind], sum);
	add(&collection->waits->all, sum);
}

static void add_process(struct collection *collection)
{
	const struct recorded_waits *recorded = &collection->process->waits;

	for (size_t i = 0; i < recorded->n; i++) {
		const struct recorded_wait *wait = &recorded->items[i];
		const struct wait_sum sum = {.n = wait->n,
					     .total_ns = wait->total_ns,
					     .longest_ns = wait->longest_ns,
					     .n_unfinished = wait->n_unfinished};
		struct wait_site *site;

		if (!(collection->kinds >> wait->kind & 1))
			continue;
		site = site_of(collection, wait);
		/* A row is of one thread, and threads have one row for a site. */
		site->n_threads++;
		add(&site->sum, &sum);
		add_to_thread(collection, wait->thread, wait->kind, &sum);
	}
	for (size_t i = 0; i < recorded->n_shorter; i++) {
		const struct recorded_shorter_wait *shorter = &recorded->shorter[i];
		const struct wait_sum sum = {.n_shorter = shorter->n,
					     .shorter_ns = shorter->total_ns};

		if (collection->kinds >> shorter->kind & 1)
			add_to_thread(collection, shorter->thread, shorter->kind, &sum);
	}
}

static int compare_sums(const struct wait_sum *x, const struct wait_sum *y)
{
	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return (x->shorter_ns < y->shorter_ns) - (x->shorter_ns > y->shorter_ns);
}

static int compare_sites(const void *a, const void *b)
{
	const struct wait_site *x = a, *y = b;
	int by = compare_sums(&x->sum, &y->sum);

	if (by)
		return by;
	by = (x->process->number > y->process->number) - (x->process->number < y->process->number);
	return by ? by : (x->stack > y->stack) - (x->stack < y->stack);
}

static int compare_threads(const void *a, const void *b)
{
	const struct wait_thread *x = a, *y = b;
	int by = compare_sums(&x->all, &y->all);

	if (by)
		return by;
	by = (x->process->number > y->process->number) - (x->process->number < y->process->number);
	return by ? by : (x->thread > y->thread) - (x->thread < y->thread);
}

void torsh_waits_collect(struct waits *waits, struct recorded_process *const *processes, size_t n,
			 uint32_t kinds)
{
	struct collection collection = {.waits = waits, .kinds = kinds};

	*waits = (struct waits){0};
	for (size_t i = 0; i < n; i++) {
		collection.process = processes[i];
		add_process(&collection);
		torsh_hash_map_free(&collection.sites);
		torsh_hash_map_free(&collection.threads);
	}
	if (waits->n_sites)
		qsort(waits->sites, waits->n_sites, sizeof(*waits->sites), compare_sites);
	if (waits->n_threads)
		qsort(waits->threads, waits->n_threads, sizeof(*waits->threads), compare_threads);
}

void torsh_waits_free(struct waits *waits)
{
	free(waits->sites);
	free(waits->threads);
}

const char *torsh_wait_thread_name(const struct recorded_process *process, uint32_t thread,
				   uint32_t *tid)
{
	*tid = 0;
	if (thread >= process->n_threads || !process->threads[thread].is_known)
		return NULL;
	*tid = process->threads[thread].tid;
	return process->threads[thread].name;
}
