/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/page_owners.h"

/* The pages that are being shared out. */
struct run {
	struct page_owners *owners;
	const struct region *region;
	uint64_t at, end; /* all before at is shared out */
	bool is_broken;
	uint32_t near; /* size class of the block before; N_BLOCK_SIZES: none */
	uint64_t touched_until; /* end of the last page that a block was in */
};

static uint32_t class_of(uint64_t size)
{
	return size ? 64 - (uint32_t)__builtin_clzll(size) : 0;
}

static void add(const struct run *run, struct owner owner, uint64_t bytes)
{
	if (run->is_broken)
		owner.kind = OWNER_COW;
	torsh_account_add(run->owners->account, owner, bytes,
			  (uint64_t)((double)bytes * run->owners->share));
}

static bool has_fragments(const struct run *run)
{
	return run->region->rest.kind == OWNER_RETAINED && !run->is_broken;
}

/* Bytes from begin to end in pages that are wholly in it. */
static uint64_t whole_pages(const struct run *run, uint64_t begin, uint64_t end)
{
	uint64_t page = run->owners->page_bytes;
	uint64_t first = (begin + page - 1) / page, last = end / page;

	return last > first ? (last - first) * page : 0;
}

static void add_fragment(const struct run *run, uint64_t end, uint32_t next)
{
	uint32_t near = run->near < N_BLOCK_SIZES ? run->near : next;
	struct fragment *fragment =
		torsh_account_fragment(run->owners->account, run->region->rest.name, near);

	fragment->free_bytes += end - run->at;
	fragment->whole_bytes += whole_pages(run, run->at, end);
}

/* In memory that only blocks with own pages are known of, the rest of their pages is theirs. */
static uint64_t add_rounding(const struct run *run, uint64_t end)
{
	struct owner overhead = {.kind = OWNER_OVERHEAD};
	uint64_t until = run->touched_until < end ? run->touched_until : end;

	if (!run->region->is_unknown || until <= run->at)
		return run->at;
	add(run, overhead, until - run->at);
	return until;
}

/* Nothing live is between run->at and end; next: the size class of the block there. */
static void add_rest(struct run *run, uint64_t end, uint32_t next)
{
	if (end <= run->at)
		return;
	run->at = add_rounding(run, end);
	if (end <= run->at)
		return;
	if (has_fragments(run))
		add_fragment(run, end, next);
	add(run, run->region->rest, end - run->at);
	run->at = end;
}

/* The bytes up to there, or to the end of the pages, are of that owner. */
static uint64_t add_until(struct run *run, uint64_t until, struct owner owner)
{
	uint64_t end = until < run->end ? until : run->end, bytes;

	if (end <= run->at)
		return 0;
	bytes = end - run->at;
	add(run, owner, bytes);
	run->at = end;
	return bytes;
}

static void add_chunk(struct run *run, const struct resident_chunk *chunk)
{
	const struct owner overhead = {
		.kind = OWNER_OVERHEAD,
		.name = run->region->rest.kind == OWNER_RETAINED ? run->region->rest.name : 0};
	const struct owner block = {.kind = OWNER_HEAP, .stack = chunk->stack};
	uint64_t page = run->owners->page_bytes, live;

	add_until(run, chunk->address, overhead);
	live = add_until(run, chunk->end, block);
	add_until(run, chunk->chunk_end, overhead);
	run->near = class_of(chunk->size);
	run->touched_until = (run->at + page - 1) / page * page;
	if (has_fragments(run))
		torsh_account_fragment(run->owners->account, run->region->rest.name, run->near)
			->live_bytes += live;
}

/* In memory with unknown use, what is before a block in its page is its header's. */
static void add_before(struct run *run, const struct resident_chunk *chunk)
{
	uint64_t begin = chunk->begin < run->end ? chunk->begin : run->end;

	add_rest(run, begin, class_of(chunk->size));
}

/* The number of the first chunk that ends behind the address. */
static uint32_t first_of(struct page_owners *owners, uint64_t address)
{
	const struct resident_blocks *blocks = owners->blocks;
	uint32_t n = 0;

	if (address < owners->next_from)
		return torsh_resident_blocks_from(blocks, address);
	while (owners->next < blocks->index.n &&
	       torsh_resident_blocks_at(blocks, owners->next).chunk_end <= address) {
		owners->next++;
		if (++n > 64)
			return torsh_resident_blocks_from(blocks, address);
	}
	return owners->next;
}

void torsh_page_owners_add(struct page_owners *owners, const struct region *region, uint64_t begin,
			   uint64_t end, bool is_broken)
{
	struct run run = {.owners = owners,
			  .region = region,
			  .at = begin,
			  .end = end,
			  .is_broken = is_broken,
			  .near = N_BLOCK_SIZES};
	uint32_t i = first_of(owners, begin);

	/* A block before these pages is a neighbour, too, if it is of the region. */
	if (i) {
		struct resident_chunk before = torsh_resident_blocks_at(owners->blocks, i - 1);

		run.near = before.address >= region->begin ? class_of(before.size) : N_BLOCK_SIZES;
	}
	for (; i < owners->blocks->index.n && run.at < end; i++) {
		struct resident_chunk chunk = torsh_resident_blocks_at(owners->blocks, i);

		if (chunk.begin >= end)
			break;
		add_before(&run, &chunk);
		add_chunk(&run, &chunk);
	}
	add_rest(&run, end, N_BLOCK_SIZES);
	owners->next = i ? i - 1 : 0;
	owners->next_from = begin;
}
