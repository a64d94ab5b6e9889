/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/block_classes.h"

const char *torsh_block_class_name(enum block_class block_class)
{
	static const char *const names[N_BLOCK_CLASSES] = {
		[BLOCKS_UNKNOWN] = "unknown",	  [BLOCKS_LOST] = "lost",
		[BLOCKS_INDIRECT] = "indirect",	  [BLOCKS_POSSIBLE] = "possible",
		[BLOCKS_REACHABLE] = "reachable", [BLOCKS_FREED_AT_EXIT] = "reachable",
	};

	return names[block_class];
}

bool torsh_block_class_is_kept(enum block_class block_class)
{
	return block_class == BLOCKS_POSSIBLE || block_class == BLOCKS_REACHABLE;
}

struct counted_sites torsh_block_classes_kept(const struct class_sums *classes)
{
	struct counted_sites kept = {0};

	for (int i = 0; i < N_BLOCK_CLASSES; i++) {
		if (!torsh_block_class_is_kept((enum block_class)i))
			continue;
		kept.blocks += classes->blocks[i];
		kept.bytes += classes->bytes[i];
	}
	return kept;
}

/* Returns false if the site's process or its stack was not judged. */
static bool judged_sums(const struct allocation_site *site, struct class_sums *sums)
{
	const struct recorded_verdicts *verdicts = &site->process->verdicts;
	const struct recorded_verdict *verdict =
		verdicts->is_judged
			? torsh_recording_row(&verdicts->rows, site->stack, sizeof(*verdict))
			: NULL;

	*sums = (struct class_sums){0};
	if (!verdict)
		return false;
	for (;; verdict = &verdicts->further[verdict->next - 1]) {
		sums->blocks[verdict->block_class] = verdict->blocks;
		sums->bytes[verdict->block_class] = verdict->bytes;
		if (!verdict->next)
			return true;
	}
}

static bool is_of_live(int block_class)
{
	return block_class != BLOCKS_UNKNOWN && block_class != BLOCKS_FREED_AT_EXIT;
}

/* The class of all of the stack's live blocks, BLOCKS_UNKNOWN if there are several. */
static enum block_class only_class(const struct class_sums *judged)
{
	enum block_class only = BLOCKS_UNKNOWN;

	for (int i = 0; i < N_BLOCK_CLASSES; i++) {
		if (!is_of_live(i) || !judged->blocks[i])
			continue;
		if (only != BLOCKS_UNKNOWN)
			return BLOCKS_UNKNOWN;
		only = (enum block_class)i;
	}
	return only;
}

static void add(struct allocation_site *site, enum block_class block_class, uint64_t blocks,
		uint64_t bytes)
{
	site->classes.blocks[block_class] += blocks;
	site->classes.bytes[block_class] += bytes;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Some of the judged blocks may have been freed since, or are from before a fork. */
static void divide(struct allocation_site *site, const struct class_sums *judged)
{
	uint64_t blocks = site->blocks, bytes = site->bytes;

	for (int i = 0; i < N_BLOCK_CLASSES; i++) {
		uint64_t n = is_of_live(i) ? least(judged->blocks[i], blocks) : 0;
		uint64_t n_bytes = n ? least(judged->bytes[i], bytes) : 0;

		add(site, (enum block_class)i, n, n_bytes);
		blocks -= n;
		bytes -= n_bytes;
	}
	add(site, BLOCKS_UNKNOWN, blocks, bytes);
}

void torsh_block_classes_find(struct allocation_site *site, bool is_part)
{
	struct class_sums judged;
	bool is_judged = judged_sums(site, &judged);

	site->classes = (struct class_sums){0};
	if (!is_judged || is_part)
		add(site, only_class(&judged), site->blocks, site->bytes);
	else
		divide(site, &judged);
}

struct class_sums torsh_block_classes_sum(const struct allocation_sites *sites)
{
	struct class_sums sums = {{0}, {0}};

	for (size_t i = 0; i < sites->n; i++) {
		for (int k = 0; k < N_BLOCK_CLASSES; k++) {
			sums.blocks[k] += sites->items[i].classes.blocks[k];
			sums.bytes[k] += sites->items[i].classes.bytes[k];
		}
	}
	return sums;
}

enum block_class torsh_block_class_of(const struct allocation_site *site)
{
	static const enum block_class from_worst[] = {BLOCKS_LOST, BLOCKS_INDIRECT, BLOCKS_UNKNOWN,
						      BLOCKS_POSSIBLE};

	for (size_t i = 0; i < sizeof(from_worst) / sizeof(*from_worst); i++) {
		if (site->classes.blocks[from_worst[i]])
			return from_worst[i];
	}
	return site->classes.blocks[BLOCKS_REACHABLE] ? BLOCKS_REACHABLE : BLOCKS_UNKNOWN;
}

/* Returns the stack's verdict of blocks that were freed at the exit; NULL: there were none. */
static const struct recorded_verdict *freed_of(const struct recorded_verdicts *verdicts,
					       const struct recorded_verdict *first)
{
	const struct recorded_verdict *verdict = first;

	while (verdict->block_class != BLOCKS_FREED_AT_EXIT && verdict->next)
		verdict = &verdicts->further[verdict->next - 1];
	return verdict->block_class == BLOCKS_FREED_AT_EXIT ? verdict : NULL;
}

static const struct recorded_verdict *verdict_of(const struct recorded_process *process, size_t row)
{
	const struct recorded_verdict *first = process->verdicts.rows.items;

	return &first[row];
}

static uint32_t stack_of_verdict(const struct recorded_process *process, size_t row)
{
	return verdict_of(process, row)->stack;
}

static struct allocation_site freed_site(const struct recorded_process *process, size_t row)
{
	const struct recorded_verdict *first = verdict_of(process, row);
	const struct recorded_verdict *freed = freed_of(&process->verdicts, first);
	struct allocation_site site = {.process = process, .stack = first->stack};

	if (!freed)
		return site;
	site.blocks = freed->blocks;
	site.bytes = freed->bytes;
	add(&site, BLOCKS_REACHABLE, site.blocks, site.bytes);
	return site;
}

struct site_reader torsh_block_classes_freed(const struct recorded_process *process)
{
	static const struct site_row_kind freed = {.site = freed_site, .stack = stack_of_verdict};

	return torsh_site_reader_of_rows(process, &freed, process->verdicts.rows.n);
}
