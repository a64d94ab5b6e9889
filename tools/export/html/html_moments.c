/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/html/html_moments.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/export/html/html_page.h"

#define CHANGES_MAX 240000u /* changes of groups, in all moments of all processes */
#define MOMENTS_MAX 256u /* per process */

/* ---- collecting ------------------------------------------------------------------------------ */

static void note_stack(struct html_moments *moments, uint32_t stack, uint64_t bytes)
{
	uint32_t *number = torsh_sparse_array_at(&moments->number_of, stack);
	struct html_moment_stack *noted;

	if (!*number) {
		moments->stacks = torsh_array_reserve(moments->stacks, moments->n_stacks,
						      &moments->n_room, sizeof(*moments->stacks));
		moments->stacks[moments->n_stacks] = (struct html_moment_stack){.stack = stack};
		*number = (uint32_t)++moments->n_stacks;
	}
	noted = &moments->stacks[*number - 1];
	noted->bytes = bytes > noted->bytes ? bytes : noted->bytes;
}

static void note_site(const struct allocation_site *site, void *moments)
{
	note_stack(moments, site->stack, site->bytes);
}

static void collect(struct html_moments *moments, const struct recorded_process *process)
{
	torsh_memory_moments_make(&moments->all, process);
	torsh_sparse_array_create(&moments->number_of, sizeof(uint32_t));
	if (!moments->all.n)
		return;
	for (size_t i = 0; i < process->n_moments; i++) {
		struct usage_at usage = {0};

		while (torsh_usage_list_next(&process->moments[i].usages, &usage))
			note_stack(moments, usage.number, usage.bytes);
	}
	torsh_sites_each(process, SITES_PEAK, note_site, moments);
	torsh_sites_each(process, SITES_CURRENT, note_site, moments);
}

void torsh_html_moments_collect(struct html_page *page)
{
	const struct trace *trace = page->trace;

	page->memory.moments =
		torsh_need_items(NULL, 0, trace->n_processes, sizeof(*page->memory.moments));
	for (size_t i = 0; i < trace->n_processes; i++)
		collect(&page->memory.moments[i], trace->processes[i]);
}

void torsh_html_moments_free(struct html_page *page)
{
	for (size_t i = 0; i < page->trace->n_processes; i++) {
		struct html_moments *moments = &page->memory.moments[i];

		torsh_memory_moments_free(&moments->all);
		torsh_sparse_array_destroy(&moments->number_of);
		free(moments->stacks);
	}
	free(page->memory.moments);
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct group {
	uint32_t nodes[N_HTML_MOMENT_TREES]; /* their numbers on the page */
};

/* The groups of the page, shared by all moments. */
struct groups {
	struct hash_map numbers; /* keyed by struct group */
	struct group *items;
	size_t n, n_room;
};

/* A group's change from one moment to the next. */
struct change {
	uint32_t group;
	uint64_t bytes, blocks;
};

/* The moments of a process on the page, with their changes concatenated. */
struct put_moments {
	size_t process;
	const struct memory_moment **items;
	size_t *n_changes; /* per moment */
	size_t n;
	struct change *changes;
	size_t n_all, n_room;
};

static uint32_t group_of(struct groups *groups, const struct html_page *page,
			 const struct html_moment_stack *stack)
{
	const struct html_memory *memory = &page->memory;
	const uint32_t *nodes = stack->nodes;
	struct group group = {.nodes = {memory->merged.nodes[nodes[HTML_IN_MERGED]].number,
					memory->has_native
						? memory->native.nodes[nodes[HTML_IN_NATIVE]].number
						: 0,
					memory->scopes.nodes[nodes[HTML_IN_SCOPES]].number}};
	size_t number =
		torsh_hash_map_put(&groups->numbers, &group, sizeof(group), groups->n)->value;

	if (number == groups->n) {
		groups->items = torsh_array_reserve(groups->items, groups->n, &groups->n_room,
						    sizeof(*groups->items));
		groups->items[groups->n++] = group;
	}
	return (uint32_t)number;
}

/* ---- changes from moment to moment ----------------------------------------------------------- */

/* Usage by group while the moments of a process are replayed. */
struct replay {
	const struct html_moments *moments;
	uint32_t *groups; /* by number of a stack */
	struct html_value *kept; /* by number of a stack: after n_applied moments */
	size_t n_applied; /* of the writer's moments */
	struct html_value *now, *before; /* by group: at this moment, at the previous one */
	size_t n_groups;
};

static void apply_until(struct replay *replay, size_t index)
{
	const struct recorded_process *process = replay->moments->all.process;

	for (; replay->n_applied <= index; replay->n_applied++) {
		const struct recorded_moment *moment = &process->moments[replay->n_applied];
		struct usage_at usage = {0};

		while (torsh_usage_list_next(&moment->usages, &usage)) {
			uint32_t number = *(uint32_t *)torsh_sparse_array_find(
				&replay->moments->number_of, usage.number);

			replay->kept[number - 1] =
				(struct html_value){.bytes = usage.bytes, .blocks = usage.blocks};
		}
	}
}

static void add_to_group(struct replay *replay, size_t number, uint64_t bytes, uint64_t blocks)
{
	struct html_value *value = &replay->now[replay->groups[number]];

	value->bytes += bytes;
	value->blocks += blocks;
}

static void add_site(const struct allocation_site *site, void *replay)
{
	const struct html_moments *moments = ((struct replay *)replay)->moments;
	uint32_t number = *(uint32_t *)torsh_sparse_array_find(&moments->number_of, site->stack);

	add_to_group(replay, number - 1, site->bytes, site->blocks);
}

/* Sums of the groups at a moment. */
static void sum_groups(struct replay *replay, const struct memory_moment *moment)
{
	const struct recorded_process *process = replay->moments->all.process;

	memset(replay->now, 0, replay->n_groups * sizeof(*replay->now));
	switch (moment->kind) {
	case MEMORY_AT_START:
		return;
	case MEMORY_AT_PEAK:
		torsh_sites_each(process, SITES_PEAK, add_site, replay);
		return;
	case MEMORY_AT_END:
		torsh_sites_each(process, SITES_CURRENT, add_site, replay);
		return;
	default:
		apply_until(replay, moment->index);
		for (size_t i = 0; i < replay->moments->n_stacks; i++)
			add_to_group(replay, i, replay->kept[i].bytes, replay->kept[i].blocks);
	}
}

static void put_changes(struct put_moments *put, struct replay *replay)
{
	size_t n_before = put->n_all;

	for (size_t i = 0; i < replay->n_groups; i++) {
		const struct html_value *now = &replay->now[i];

		if (now->bytes == replay->before[i].bytes &&
		    now->blocks == replay->before[i].blocks)
			continue;
		put->changes = torsh_array_reserve(put->changes, put->n_all, &put->n_room,
						   sizeof(*put->changes));
		put->changes[put->n_all++] = (struct change){
			.group = (uint32_t)i, .bytes = now->bytes, .blocks = now->blocks};
		replay->before[i] = *now;
	}
	put->n_changes[put->n - 1] = put->n_all - n_before;
}

static bool is_put(const struct memory_moment *moment, size_t *n, size_t stride)
{
	if (moment->kind == MEMORY_AT_WINDOW || moment->kind == MEMORY_AT_JOINT)
		return false;
	return moment->kind == MEMORY_AT_START || moment->kind == MEMORY_AT_PEAK ||
	       moment->kind == MEMORY_AT_END || (*n)++ % stride == 0;
}

/* Makes every stride-th moment, and the start, the peak and the end; false: too many changes. */
static bool make_moments(struct put_moments *put, struct replay *replay, size_t stride,
			 size_t n_changes_max)
{
	const struct memory_moments *all = &replay->moments->all;
	size_t n = 0;

	put->n = put->n_all = 0;
	replay->n_applied = 0;
	memset(replay->kept, 0, replay->moments->n_stacks * sizeof(*replay->kept));
	memset(replay->before, 0, replay->n_groups * sizeof(*replay->before));
	for (size_t i = 0; i < all->n; i++) {
		if (!is_put(&all->items[i], &n, stride))
			continue;
		put->items[put->n++] = &all->items[i];
		sum_groups(replay, &all->items[i]);
		put_changes(put, replay);
		if (put->n_all > n_changes_max)
			return false;
	}
	return true;
}

/* Choose the smallest stride that keeps the number of changes within the limit. */
static void choose_moments(struct put_moments *put, struct replay *replay, size_t n_changes_max)
{
	size_t n = replay->moments->all.n, stride = n / MOMENTS_MAX + 1;

	put->items = torsh_need_items(NULL, 0, n + 1, sizeof(*put->items));
	put->n_changes = torsh_need_items(NULL, 0, n + 1, sizeof(*put->n_changes));
	while (!make_moments(put, replay, stride, n_changes_max)) {
		if (stride > n) {
			put->n = put->n_all = 0;
			return;
		}
		stride *= 2;
	}
}

static void make_process(struct put_moments *put, const struct html_page *page,
			 struct groups *groups, size_t n_changes_max)
{
	const struct html_moments *moments = &page->memory.moments[put->process];
	struct replay replay = {.moments = moments};

	replay.groups = torsh_need_items(NULL, 0, moments->n_stacks + 1, sizeof(*replay.groups));
	replay.kept = torsh_need_items(NULL, 0, moments->n_stacks + 1, sizeof(*replay.kept));
	for (size_t i = 0; i < moments->n_stacks; i++)
		replay.groups[i] = group_of(groups, page, &moments->stacks[i]);
	replay.n_groups = groups->n;
	replay.now = torsh_need_items(NULL, 0, groups->n + 1, sizeof(*replay.now));
	replay.before = torsh_need_items(NULL, 0, groups->n + 1, sizeof(*replay.before));
	choose_moments(put, &replay, n_changes_max);
	free(replay.groups);
	free(replay.kept);
	free(replay.now);
	free(replay.before);
}

/* ---- how they are written -------------------------------------------------------------------- */

static void put_groups(struct json_writer *json, const struct groups *groups, bool has_native)
{
	static const char *const names[] = {"merged", "native", "scopes"};

	torsh_json_begin_object(json, "groups");
	for (size_t tree = 0; tree < N_HTML_MOMENT_TREES; tree++) {
		if (tree == HTML_IN_NATIVE && !has_native)
			continue;
		torsh_json_begin_array(json, names[tree]);
		for (size_t i = 0; i < groups->n; i++)
			torsh_json_put_u64(json, NULL, groups->items[i].nodes[tree]);
		torsh_json_end_array(json);
	}
	torsh_json_end_object(json);
}

/* [kind, mark, step, ns, bytes, blocks, number of changes] of each moment. */
static void put_items(struct html_page *page, const struct put_moments *put)
{
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, "items");
	for (size_t i = 0; i < put->n; i++) {
		const struct memory_moment *moment = put->items[i];

		torsh_json_begin_array(json, NULL);
		torsh_json_put_text(json, NULL, torsh_memory_moment_names[moment->kind]);
		torsh_html_put_text(page, NULL, moment->mark);
		torsh_json_put_known(json, NULL, moment->has_step, moment->step);
		torsh_json_put_u64(json, NULL, moment->at_ns);
		torsh_json_put_u64(json, NULL, moment->bytes);
		torsh_json_put_u64(json, NULL, moment->blocks);
		torsh_json_put_u64(json, NULL, put->n_changes[i]);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
}

/* Put changes with the group's number as the difference to the previous change's. */
static void put_process(struct html_page *page, const struct put_moments *put)
{
	struct json_writer *json = &page->json;
	size_t at = 0;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "process", put->process);
	put_items(page, put);
	torsh_json_begin_array(json, "group");
	for (size_t i = 0; i < put->n; i++) {
		for (uint32_t k = 0, last = 0; k < put->n_changes[i]; k++, at++) {
			torsh_json_put_u64(json, NULL, put->changes[at].group - last);
			last = put->changes[at].group;
		}
	}
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "bytes");
	for (size_t i = 0; i < put->n_all; i++)
		torsh_json_put_u64(json, NULL, put->changes[i].bytes);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "blocks");
	for (size_t i = 0; i < put->n_all; i++)
		torsh_json_put_u64(json, NULL, put->changes[i].blocks);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static int compare_peaks(const void *a, const void *b, void *page)
{
	const struct trace *trace = ((const struct html_page *)page)->trace;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	uint64_t one = trace->processes[x]->heap.peak_bytes,
		 other = trace->processes[y]->heap.peak_bytes;

	return one != other ? (one < other) - (one > other) : (x > y) - (x < y);
}

/*
 * Returns the processes with the highest peak first, because each one uses what the earlier ones
 * leave of the limit.
 */
static size_t *order_processes(struct html_page *page)
{
	size_t n = page->trace->n_processes, *order = torsh_need_items(NULL, 0, n, sizeof(*order));

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), compare_peaks, page);
	return order;
}

void torsh_html_moments_put(struct html_page *page)
{
	size_t *order = order_processes(page), n_left = torsh_html_limit(page, CHANGES_MAX);
	struct groups groups = {0};
	struct json_writer *json = &page->json;

	torsh_json_begin_object(json, "moments");
	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < page->trace->n_processes; i++) {
		struct put_moments put = {.process = order[i]};

		if (n_left)
			make_process(&put, page, &groups, n_left);
		if (put.n) {
			put_process(page, &put);
			n_left -= put.n_all;
		}
		free(put.items);
		free(put.n_changes);
		free(put.changes);
	}
	torsh_json_end_array(json);
	put_groups(json, &groups, page->memory.has_native);
	torsh_json_end_object(json);
	torsh_hash_map_free(&groups.numbers);
	free(groups.items);
	free(order);
}
