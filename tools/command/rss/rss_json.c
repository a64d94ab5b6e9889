/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/rss/rss_view.h"
#include "tools/memory/rss/broken_places.h"
#include "tools/report/parts.h"

static void emit_owners(struct json_writer *json, const struct rss_view *view)
{
	const struct resident *resident = &view->resident;

	torsh_json_begin_lines(json, "owners");
	for (size_t i = 0; i < resident->n_owners; i++) {
		const struct resident_owner *owner = &resident->owners[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "kind", torsh_resident_kind(owner->kind));
		torsh_json_put_text(json, "name", owner->name);
		torsh_json_put_u64(json, "bytes", owner->bytes);
		torsh_json_put_u64(json, "pss_bytes", owner->pss_bytes);
		if (owner->stack)
			torsh_parts_emit_recorded_stack(json, resident->process, owner->stack,
							view->reading->symbols, STACK_VIEW_MERGED);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_kinds(struct json_writer *json, const struct resident *resident)
{
	torsh_json_begin_object(json, "kinds");
	for (uint32_t kind = 1; resident->account && kind < N_RESIDENT_WHAT; kind++)
		torsh_json_put_u64(json, torsh_resident_kind(kind), resident->kind_bytes[kind]);
	torsh_json_end_object(json);
}

static void emit_fragments(struct json_writer *json, const struct recorded_account *account)
{
	torsh_json_begin_lines(json, "fragments");
	for (size_t i = 0; account && i < account->n_fragments; i++) {
		const struct recorded_fragment *fragment = &account->fragments[i];
		uint32_t size_class = fragment->size_class;
		bool has_block = size_class < RESIDENT_NO_BLOCK;
		uint64_t least = has_block && size_class ? UINT64_C(1) << (size_class - 1) : 0;

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "arena", fragment->arena);
		torsh_json_put_known(json, "block_min_bytes", has_block, least);
		torsh_json_put_known(json, "block_max_bytes", has_block, least ? 2 * least - 1 : 0);
		torsh_json_put_u64(json, "live_bytes", fragment->live_bytes);
		torsh_json_put_u64(json, "free_bytes", fragment->free_bytes);
		torsh_json_put_u64(json, "free_page_bytes", fragment->whole_bytes);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_account(struct json_writer *json, const char *name,
			 const struct recorded_account *account)
{
	if (!account) {
		torsh_json_put_null(json, name);
		return;
	}
	torsh_json_begin_object(json, name);
	torsh_json_put_u64(json, "rss_bytes", account->rss_bytes);
	torsh_json_put_u64(json, "pss_bytes", account->pss_bytes);
	torsh_json_put_u64(json, "at_ns", account->at_ns);
	torsh_json_put_bool(json, "at_exit", account->is_at_end);
	torsh_json_end_object(json);
}

static void emit_processes(struct json_writer *json, const struct reading *reading)
{
	torsh_json_begin_lines(json, "processes");
	for (size_t i = 0; i < reading->n_processes; i++) {
		const struct recorded_process *process = reading->processes[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", process->pid);
		torsh_json_put_text(json, "program", process->program);
		emit_account(json, "peak", torsh_resident_account(process, RESIDENT_AT_PEAK));
		emit_account(json, "last", torsh_resident_account(process, RESIDENT_AT_END));
		torsh_json_put_text(json, "reason", torsh_rss_problem(process));
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_tree(struct json_writer *json, const struct reading *reading)
{
	const struct recorded_account *account =
		torsh_resident_tree(reading->processes, reading->n_processes);

	if (!account) {
		torsh_json_put_null(json, "tree");
		return;
	}
	torsh_json_begin_object(json, "tree");
	torsh_json_put_u64(json, "processes", account->n_tree);
	torsh_json_put_u64(json, "rss_bytes", account->tree_rss_bytes);
	torsh_json_put_u64(json, "pss_bytes", account->tree_pss_bytes);
	torsh_json_put_u64(json, "at_ns", account->at_ns);
	torsh_json_end_object(json);
}

static void emit_place(struct json_writer *json, const struct broken_places *places,
		       const struct broken_place *place)
{
	const struct frame *frame = place->frame;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "function", frame ? frame->function : NULL);
	torsh_json_put_text(json, "file", frame ? frame->file : NULL);
	torsh_json_put_known(json, "line", frame && frame->line, frame ? (uint64_t)frame->line : 0);
	torsh_json_put_text(json, "module", frame ? frame->module : NULL);
	torsh_json_put_u64(json, "samples", place->samples);
	torsh_json_put_u64(json, "pages", place->pages);
	torsh_json_put_double(json, "share", torsh_broken_share(places, place));
	torsh_json_put_double(json, "share_error", torsh_broken_error(places, place));
	torsh_json_end_object(json);
}

/* Where a fork broke pages that it inherited. */
static void emit_breaks(struct json_writer *json, const struct rss_view *view)
{
	static const struct recorded_account none;
	const struct resident *resident = &view->resident;
	const struct recorded_account *account = resident->account ? resident->account : &none;
	struct broken_places places;

	torsh_broken_places_make(&places, resident->process, account, view->reading->symbols);
	torsh_json_begin_lines(json, "broken_by");
	for (size_t i = 0; i < places.n; i++)
		emit_place(json, &places, &places.items[i]);
	torsh_json_end_array(json);
	torsh_json_begin_object(json, "breaks");
	torsh_json_put_bool(json, "sampled", account->is_sampled);
	torsh_json_put_text(json, "reason", account->unsampled);
	torsh_json_put_known(json, "samples", account->is_sampled, places.samples);
	torsh_json_put_known(json, "samples_lost", account->is_sampled, account->samples_lost);
	torsh_json_put_known(json, "pages", account->is_sampled, places.pages);
	torsh_json_end_object(json);
	torsh_broken_places_free(&places);
}

/* What is beside the resident set, or about the account. */
static void emit_beside(struct json_writer *json, const struct resident *resident)
{
	static const struct recorded_account none;
	const struct recorded_account *account = resident->account ? resident->account : &none;
	const struct recorded_process *process = resident->process;
	bool is_there = account->is_there;

	torsh_json_put_known(json, "pss_bytes", is_there, account->pss_bytes);
	torsh_json_put_known(json, "huge_page_bytes", is_there, account->huge_bytes);
	torsh_json_put_known(json, "swapped_bytes", is_there, account->swap_bytes);
	torsh_json_put_known(json, "page_table_bytes", is_there, account->page_table_bytes);
	torsh_json_put_known(json, "hugetlb_bytes", is_there, account->hugetlb_bytes);
	torsh_json_put_known(json, "status_rss_bytes", is_there, account->status_bytes);
	torsh_json_put_known(json, "rss_peak_bytes", process && process->has_rss_peak,
			     process ? process->rss_peak_bytes : 0);
	torsh_json_put_known(json, "account_cpu_ns", is_there, account->cpu_ns);
	torsh_json_put_text(json, "undivided", account->undivided);
	if (account->is_of_fork)
		torsh_json_put_bool(json, "inherited_is_known", account->inherited_is_known);
	else
		torsh_json_put_null(json, "inherited_is_known");
}

void torsh_rss_json(const struct rss_view *view)
{
	const struct reading *reading = view->reading;
	const struct resident *resident = &view->resident;
	const struct recorded_account *account = resident->account;
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_known(&json, "pid", account, account ? resident->process->pid : 0);
	torsh_json_put_text(&json, "moment", view->moment == RESIDENT_AT_END ? "end" : "peak");
	torsh_json_put_known(&json, "rss_bytes", account, account ? account->rss_bytes : 0);
	torsh_json_put_known(&json, "at_ns", account, account ? account->at_ns : 0);
	torsh_json_put_bool(&json, "at_exit", account && account->is_at_end);
	torsh_json_put_bool(&json, "held", account && account->is_held);
	emit_kinds(&json, resident);
	emit_owners(&json, view);
	emit_fragments(&json, account);
	emit_breaks(&json, view);
	emit_beside(&json, resident);
	emit_tree(&json, reading);
	emit_processes(&json, reading);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_parts_emit_notes(&json, reading->processes, reading->n_processes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
