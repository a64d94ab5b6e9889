/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/account_take.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/writer/input/process_info.h"
#include "tools/writer/input/target.h"
#include "tools/writer/reachability/allocator_maps.h"
#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/reachability/image/memory_reader.h"
#include "tools/writer/residency/area_owners.h"
#include "tools/writer/residency/mapped_regions.h"
#include "tools/writer/residency/source_blocks.h"

#define AGENT_FILE "/libtorshagent.so"
#define AREA_BYTES_MAX (UINT64_C(1) << 38) /* larger ones are not read page by page */
#define OWNERS_OF_KIND 2000u

struct taking {
	const struct account_source *source;
	struct account *account;
	struct memory_areas areas;
	struct memory_reader reader;
	struct thread_names threads;
	struct resident_blocks blocks;
	struct mapped_regions mapped;
	struct area_owners area_owners;
	struct page_owners pages;
	struct page_runs runs; /* of the current area */
};

static bool is_divided(const struct taking *taking, const struct memory_area *area,
		       const struct region *region)
{
	uint32_t kind = region->rest.kind;

	if (!area->rss_bytes || area->is_shared || area->end - area->begin > AREA_BYTES_MAX ||
	    kind == OWNER_AGENT || kind == OWNER_DEVICE || kind == OWNER_KERNEL)
		return false;
	/* Pages of a library's data may have been a parent's. */
	return !area->is_file || (taking->source->inherited && area->own_bytes);
}

/* Pages of one region; is_shared as in the run that they are in. */
static void add_pages(struct taking *taking, const struct region *region, struct page_run run)
{
	const struct page_runs *inherited = taking->source->inherited;
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
static void add_run(struct taking *taking, const struct region *region, struct page_run run)
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
static double share_of(const struct taking *taking, const struct memory_area *area,
		       uint64_t of_file)
{
	uint64_t alone = 0, shared = of_file;

	for (uint32_t i = 0; i < taking->runs.n; i++) {
		const struct page_run *run = &taking->runs.items[i];

		*(run->is_shared ? &shared : &alone) += run->end - run->begin;
	}
	return shared && area->pss_bytes > alone
		       ? (double)(area->pss_bytes - alone) / (double)shared
		       : 0;
}

static void add_area_pages(struct taking *taking, const struct memory_area *area,
			   const struct region *region)
{
	struct page_runs *runs = &taking->runs;
	uint64_t of_file = area->is_file ? area->rss_bytes - area->own_bytes : 0;
	uint64_t most = area->is_file ? area->own_bytes : area->rss_bytes;
	double share;

	torsh_page_runs_clear(runs);
	if (torsh_page_runs_read(runs, taking->reader.pages_fd, area->begin, area->end,
				 taking->reader.page_bytes))
		torsh_page_runs_clear(runs);
	torsh_page_runs_limit(runs, most);
	share = share_of(taking, area, of_file);
	for (uint32_t i = 0; i < runs->n; i++) {
		taking->pages.share = runs->items[i].is_shared ? share : 1;
		add_run(taking, region, runs->items[i]);
	}
	torsh_account_add(taking->account, region->rest, of_file,
			  (uint64_t)((double)of_file * share));
	torsh_account_add(taking->account, (struct owner){.kind = OWNER_CHANGED},
			  most - runs->bytes, most - runs->bytes);
}

static void add_area(struct taking *taking, uint32_t i)
{
	const struct memory_area *area = &taking->areas.items[i];
	struct region region = torsh_area_owners_of(&taking->area_owners, i);
	struct account *account = taking->account;

	account->rss_bytes += area->rss_bytes;
	account->pss_bytes += area->pss_bytes;
	account->swap_bytes += area->swap_bytes;
	account->huge_bytes += area->huge_bytes;
	if (is_divided(taking, area, &region)) {
		add_area_pages(taking, area, &region);
		return;
	}
	if (region.rest.kind == OWNER_FILE || region.rest.kind == OWNER_SHARED)
		region.rest.stack = torsh_mapped_regions_stack(&taking->mapped, area->begin);
	torsh_account_add(account, region.rest, area->rss_bytes, area->pss_bytes);
}

static void add_status(struct account *account, const struct target *target)
{
	struct process_status status;

	if (target->status_fd < 0 || torsh_process_read_status(target->status_fd, &status))
		return;
	account->status_bytes = status.rss_bytes;
	account->page_table_bytes = status.page_table_bytes;
	account->hugetlb_bytes = status.hugetlb_bytes;
}

static void add_areas(struct taking *taking)
{
	taking->area_owners = (struct area_owners){
		.account = taking->account,
		.areas = &taking->areas,
		.reader = &taking->reader,
		.threads = &taking->threads,
		.is_glibc = taking->blocks.is_glibc,
	};
	taking->pages = (struct page_owners){.account = taking->account,
					     .blocks = &taking->blocks,
					     .page_bytes = taking->reader.page_bytes};
	torsh_area_owners_begin(&taking->area_owners);
	for (uint32_t i = 0; i < taking->areas.n; i++)
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

static void free_taking(struct taking *taking)
{
	torsh_page_runs_free(&taking->runs);
	torsh_mapped_regions_free(&taking->mapped);
	torsh_resident_blocks_destroy(&taking->blocks);
	torsh_thread_names_free(&taking->threads);
	torsh_memory_reader_close(&taking->reader);
}

int torsh_account_take(struct account *account, const struct account_source *source)
{
	struct taking taking = {.source = source, .account = account};
	int result;

	torsh_account_free(account);
	result = torsh_memory_reader_open(&taking.reader, source->target->pid);
	if (result)
		return result;
	torsh_account_begin(account, source->target->state.tables->stacks.n_rows);
	account->undivided = torsh_source_blocks_collect(&taking.blocks, source);
	torsh_mapped_regions_collect(&taking.mapped, account, source);
	torsh_thread_names_read(&taking.threads, source->target->pid);
	add_status(account, source->target);
	result = torsh_memory_areas_read(&taking.areas, source->target->pid, AGENT_FILE);
	if (!result) {
		add_areas(&taking);
		torsh_memory_areas_free(&taking.areas);
		undivide(account);
		torsh_account_end(account, OWNERS_OF_KIND);
	}
	free_taking(&taking);
	return result;
}

int torsh_account_inherited(struct page_runs *inherited, const struct target *target)
{
	struct memory_areas areas;
	struct memory_reader reader;
	int result = torsh_memory_reader_open(&reader, target->pid);

	if (result)
		return result;
	result = torsh_memory_areas_read(&areas, target->pid, AGENT_FILE);
	for (uint32_t i = 0; !result && i < areas.n; i++) {
		const struct memory_area *area = &areas.items[i];

		if (area->is_shared || area->is_agents || !area->own_bytes ||
		    area->end - area->begin > AREA_BYTES_MAX)
			continue;
		result = torsh_page_runs_read(inherited, reader.pages_fd, area->begin, area->end,
					      reader.page_bytes);
	}
	if (areas.n)
		torsh_memory_areas_free(&areas);
	torsh_memory_reader_close(&reader);
	return result;
}
