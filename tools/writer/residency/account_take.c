/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/account_take.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/memory.h"
#include "tools/writer/input/target.h"
#include "tools/writer/reachability/allocator_maps.h"
#include "tools/writer/residency/area_owners.h"
#include "tools/writer/residency/mapped_regions.h"
#include "tools/writer/residency/source_blocks.h"
#include "tools/writer/residency/stack_lines.h"

#define OWNERS_OF_KIND 2000u

struct account_taking {
	const struct target *target;
	const struct page_runs *inherited;
	const struct memory_look *look;
	struct account *account;
	struct resident_blocks blocks;
	struct mapped_regions mapped;
	struct area_owners area_owners;
	struct page_owners pages;
};

/* Pages of one region; is_shared as in the run that they are in. */
static void add_pages(struct account_taking *taking, const struct region *region,
		      struct page_run run)
{
	const struct page_runs *inherited = taking->inherited;
	uint32_t i = inherited ? torsh_page_runs_from(inherited, run.begin) : 0;

	while (run.begin < run.end) {
		const struct page_run *old =
			inherited && i < inherited->n ? &inherited->items[i] : NULL;
		bool is_old = old && old->begin <= run.begin;
		uint64_t limit = !old	  ? run.end
				 : is_old ? old->end
					  : old->begin,
			 end = limit < run.end ? limit : run.end;

		if (is_old && run.is_shared)
			torsh_account_add(
				taking->account, (struct owner){.kind = OWNER_INHERITED},
				end - run.begin,
				(uint64_t)((double)(end - run.begin) * taking->pages.share));
		else
			torsh_page_owners_add(&taking->pages, region, run.begin, end, is_old);
		i += is_old && end == old->end;
		run.begin = end;
	}
}

/* Parts of the area that the program mapped itself are regions of their own. */
static void add_run(struct account_taking *taking, const struct region *region, struct page_run run)
{
	while (run.begin < run.end) {
		struct region part = torsh_mapped_regions_at(&taking->mapped, region, run.begin);
		struct page_run piece = run;

		piece.end = part.end < run.end ? part.end : run.end;
		add_pages(taking, &part, piece);
		run.begin = piece.end;
	}
}

/* Which part of its shared pages is the process's, if each of them has as many users. */
static double share_of(const struct account_taking *taking, uint32_t i, uint64_t of_file)
{
	const struct memory_area *area = &taking->look->areas.items[i];
	const struct looked_pages *pages = &taking->look->pages[i];
	uint64_t alone = 0, shared = of_file;

	for (uint32_t k = 0; k < pages->n; k++) {
		const struct page_run *run = &taking->look->runs.items[pages->first + k];

		*(run->is_shared ? &shared : &alone) += run->end - run->begin;
	}
	return shared && area->pss_bytes > alone
		       ? (double)(area->pss_bytes - alone) / (double)shared
		       : 0;
}

static void add_area_pages(struct account_taking *taking, uint32_t i, const struct region *region)
{
	const struct looked_pages *pages = &taking->look->pages[i];
	const struct memory_area *area = &taking->look->areas.items[i];
	uint64_t of_file = area->rss_bytes - pages->expected_bytes;
	double share = share_of(taking, i, of_file);

	for (uint32_t k = 0; k < pages->n; k++) {
		const struct page_run *run = &taking->look->runs.items[pages->first + k];

		taking->pages.share = run->is_shared ? share : 1;
		add_run(taking, region, *run);
	}
	torsh_account_add(taking->account, region->rest, of_file,
			  (uint64_t)((double)of_file * share));
	torsh_account_add(taking->account, (struct owner){.kind = OWNER_CHANGED},
			  pages->expected_bytes - pages->bytes,
			  pages->expected_bytes - pages->bytes);
}

static void add_area(struct account_taking *taking, uint32_t i)
{
	const struct memory_area *area = &taking->look->areas.items[i];
	struct region region = torsh_area_owners_of(&taking->area_owners, i);
	struct account *account = taking->account;

	account->rss_bytes += area->rss_bytes;
	account->pss_bytes += area->pss_bytes;
	account->swap_bytes += area->swap_bytes;
	account->huge_bytes += area->huge_bytes;
	if (taking->look->pages[i].expected_bytes) {
		add_area_pages(taking, i, &region);
		return;
	}
	if (region.rest.kind == OWNER_FILE || region.rest.kind == OWNER_SHARED)
		region.rest.stack = torsh_mapped_regions_stack(&taking->mapped, area->begin);
	torsh_account_add(account, region.rest, area->rss_bytes, area->pss_bytes);
}

static void add_areas(struct account_taking *taking)
{
	const struct memory_look *look = taking->look;

	taking->area_owners = (struct area_owners){
		.account = taking->account,
		.areas = &look->areas,
		.threads = &look->threads,
		.is_glibc = taking->blocks.is_glibc,
	};
	taking->pages = (struct page_owners){.account = taking->account,
					     .blocks = &taking->blocks,
					     .page_bytes = look->reader.page_bytes};
	torsh_area_owners_begin(&taking->area_owners);
	for (uint32_t i = 0; i < look->areas.n; i++)
		add_area(taking, i);
	torsh_area_owners_end(&taking->area_owners);
}

/* Where live blocks are not known, an allocator's memory is as a whole in use. */
static void undivide(struct account *account)
{
	if (!account->undivided)
		return;
	for (uint32_t i = 0; i < account->n_owners; i++) {
		if (account->owners[i].owner.kind == OWNER_RETAINED)
			account->owners[i].owner.kind = OWNER_HEAP;
	}
	account->n_fragments = 0;
}

struct account_taking *torsh_account_collect(struct account *account,
					     const struct memory_look *look,
					     const struct account_source *source)
{
	struct account_taking *taking = torsh_memory_new(1, sizeof(*taking));

	torsh_account_free(account);
	*taking = (struct account_taking){.target = source->target,
					  .inherited = source->inherited,
					  .look = look,
					  .account = account};
	account->undivided = torsh_source_blocks_collect(&taking->blocks, look, source);
	torsh_mapped_regions_collect(&taking->mapped, account, source);
	return taking;
}

void torsh_account_divide(struct account_taking *taking)
{
	struct account *account = taking->account;
	const struct process_status *status = &taking->look->status;

	account->status_bytes = status->rss_bytes;
	account->page_table_bytes = status->page_table_bytes;
	account->hugetlb_bytes = status->hugetlb_bytes;
	torsh_account_begin(account);
	torsh_resident_blocks_end(&taking->blocks);
	add_areas(taking);
	undivide(account);
	torsh_stack_lines_join(account, taking->target->state.tables, OWNERS_OF_KIND);
	torsh_account_end(account, OWNERS_OF_KIND);
	torsh_account_drop(taking);
}

void torsh_account_drop(struct account_taking *taking)
{
	if (!taking)
		return;
	torsh_mapped_regions_free(&taking->mapped);
	torsh_resident_blocks_destroy(&taking->blocks);
	free(taking);
}
