/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who owned resident memory: the accounts of the processes that had most. */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/html/html_page.h"
#include "tools/memory/rss/broken_places.h"
#include "tools/memory/rss/resident.h"

#define PROCESSES 64u
#define OWNERS 50u /* of a kind */
#define NAMED 200u
#define PLACES 100u /* where a fork broke pages */

/* [kind, name, bytes, PSS] */
static void put_owners(struct html_page *page, const struct resident *resident)
{
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, "owners");
	for (size_t i = 0; i < resident->n_owners; i++) {
		const struct resident_owner *owner = &resident->owners[i];

		torsh_json_begin_array(json, NULL);
		torsh_html_put_text(page, NULL, torsh_resident_text(owner->kind));
		torsh_html_put_text(page, NULL, owner->name);
		torsh_json_put_u64(json, NULL, owner->bytes);
		torsh_json_put_u64(json, NULL, owner->pss_bytes);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
}

/* [arena, size class, live bytes, free bytes, of these in whole pages] */
static void put_fragments(struct html_page *page, const struct recorded_account *account)
{
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, "fragments");
	for (size_t i = 0; i < account->n_fragments; i++) {
		const struct recorded_fragment *fragment = &account->fragments[i];

		torsh_json_begin_array(json, NULL);
		torsh_html_put_text(page, NULL, fragment->arena);
		torsh_json_put_known(json, NULL, fragment->size_class < RESIDENT_NO_BLOCK,
				     fragment->size_class);
		torsh_json_put_u64(json, NULL, fragment->live_bytes);
		torsh_json_put_u64(json, NULL, fragment->free_bytes);
		torsh_json_put_u64(json, NULL, fragment->whole_bytes);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
}

/* [function, file, line, module, pages, share, its error] */
static void put_place(struct html_page *page, const struct broken_places *places,
		      const struct broken_place *place)
{
	static const struct frame unknown;
	const struct frame *frame = place->frame ? place->frame : &unknown;
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, NULL);
	torsh_html_put_text(page, NULL, frame->function);
	torsh_html_put_text(page, NULL, frame->file);
	torsh_json_put_known(json, NULL, frame->line, (uint64_t)frame->line);
	torsh_html_put_text(page, NULL, frame->module);
	torsh_json_put_u64(json, NULL, place->pages);
	torsh_json_put_double(json, NULL, torsh_broken_share(places, place));
	torsh_json_put_double(json, NULL, torsh_broken_error(places, place));
	torsh_json_end_array(json);
}

/* Where a fork broke pages that it inherited; null if that was not sampled. */
static void put_breaks(struct html_page *page, const struct recorded_process *process,
		       const struct recorded_account *account)
{
	struct json_writer *json = &page->json;
	struct broken_places places;

	torsh_html_put_text(page, "unsampled", account->unsampled);
	if (!account->is_sampled) {
		torsh_json_put_null(json, "breaks");
		return;
	}
	torsh_broken_places_make(&places, process, account, page->trace->symbols);
	torsh_json_begin_object(json, "breaks");
	torsh_json_put_u64(json, "samples", places.samples);
	torsh_json_put_u64(json, "lost", account->samples_lost);
	torsh_json_put_u64(json, "pages", places.pages);
	torsh_json_begin_array(json, "places");
	for (size_t i = 0; i < places.n && i < torsh_html_limit(page, PLACES); i++)
		put_place(page, &places, &places.items[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
	torsh_broken_places_free(&places);
}

static void put_account(struct html_page *page, const struct recorded_process *process,
			enum resident_moment moment)
{
	struct json_writer *json = &page->json;
	const struct recorded_account *account;
	struct resident resident;

	torsh_resident_make(&resident, process, moment, page->trace->symbols,
			    (struct resident_limits){.n_named = torsh_html_limit(page, NAMED),
						     .n_most = torsh_html_limit(page, OWNERS)});
	account = resident.account;
	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "process", torsh_html_process(page, process));
	torsh_json_put_bool(json, "is_peak", moment == RESIDENT_AT_PEAK);
	torsh_json_put_bool(json, "at_exit", account->is_at_end);
	torsh_json_put_u64(json, "at_ns", account->at_ns);
	torsh_json_put_u64(json, "bytes", account->rss_bytes);
	torsh_json_put_u64(json, "pss_bytes", account->pss_bytes);
	torsh_json_put_u64(json, "swap_bytes", account->swap_bytes);
	torsh_json_put_u64(json, "table_bytes", account->page_table_bytes);
	torsh_json_put_u64(json, "huge_bytes", account->huge_bytes);
	torsh_html_put_text(page, "undivided", account->undivided);
	put_owners(page, &resident);
	put_fragments(page, account);
	put_breaks(page, process, account);
	torsh_json_end_object(json);
	torsh_resident_free(&resident);
}

static int compare_processes(const void *a, const void *b)
{
	const struct recorded_process *const *x = a, *const *y = b;
	uint64_t x_bytes = torsh_resident_account(*x, RESIDENT_AT_PEAK)->rss_bytes,
		 y_bytes = torsh_resident_account(*y, RESIDENT_AT_PEAK)->rss_bytes;

	if (x_bytes != y_bytes)
		return x_bytes > y_bytes ? -1 : 1;
	return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

static void put_accounts(struct html_page *page)
{
	const struct trace *trace = page->trace;
	const struct recorded_process **known =
		torsh_need_items(NULL, 0, trace->n_processes, sizeof(*known));
	size_t n = 0;

	for (size_t i = 0; i < trace->n_processes; i++) {
		if (torsh_resident_account(trace->processes[i], RESIDENT_AT_PEAK))
			known[n++] = trace->processes[i];
	}
	if (n)
		qsort(known, n, sizeof(*known), compare_processes);
	torsh_json_begin_array(&page->json, "rss");
	for (size_t i = 0; i < n && i < torsh_html_limit(page, PROCESSES); i++) {
		put_account(page, known[i], RESIDENT_AT_PEAK);
		if (torsh_resident_account(known[i], RESIDENT_AT_PEAK) !=
		    torsh_resident_account(known[i], RESIDENT_AT_END))
			put_account(page, known[i], RESIDENT_AT_END);
	}
	torsh_json_end_array(&page->json);
	free(known);
}

void torsh_html_rss_put(struct html_page *page)
{
	const struct recorded_account *tree =
		torsh_resident_tree(page->trace->processes, page->trace->n_processes);
	struct json_writer *json = &page->json;

	put_accounts(page);
	if (!tree) {
		torsh_json_put_null(json, "rss_tree");
		return;
	}
	torsh_json_begin_object(json, "rss_tree");
	torsh_json_put_u64(json, "n", tree->n_tree);
	torsh_json_put_u64(json, "bytes", tree->tree_rss_bytes);
	torsh_json_put_u64(json, "pss_bytes", tree->tree_pss_bytes);
	torsh_json_put_u64(json, "at_ns", tree->at_ns);
	torsh_json_end_object(json);
}
