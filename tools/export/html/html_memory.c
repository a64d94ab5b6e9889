/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>

#include "tools/export/html/html_page.h"

#define ROWS 1000u

static void put_step(struct json_writer *json, uint32_t step)
{
	torsh_json_put_known(json, NULL, step != 0, step - 1);
}

/*
 * [node, bytes, blocks, process, operator, module, first step, last step, first ns, last ns,
 * steps of growth, is of tensors]
 */
static void put_site(struct html_page *page, const struct allocation_site *site, uint32_t node)
{
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, NULL);
	torsh_json_put_u64(json, NULL, page->memory.merged.nodes[node].number);
	torsh_json_put_u64(json, NULL, site->bytes);
	torsh_json_put_u64(json, NULL, site->blocks);
	torsh_json_put_u64(json, NULL, torsh_html_process(page, site->process));
	torsh_html_put_text(page, NULL, torsh_site_operator(site));
	torsh_html_put_text(page, NULL, torsh_site_module(site));
	put_step(json, site->first_step);
	put_step(json, site->last_step);
	torsh_json_put_known(json, NULL, site->has_times, site->first_ns);
	torsh_json_put_known(json, NULL, site->has_times, site->last_ns);
	torsh_json_put_double(json, NULL, site->growth_span);
	torsh_json_put_bool(json, NULL, site->is_of_tensors);
	torsh_json_end_array(json);
}

static void put_sites(struct html_page *page, const struct html_sites *list)
{
	struct json_writer *json = &page->json;
	size_t n = torsh_html_limit(page, ROWS), n_left;
	uint64_t bytes = 0, blocks = 0;

	n = n < list->sites->n ? n : list->sites->n;
	n_left = list->sites->n - n;
	torsh_json_begin_array(json, "rows");
	for (size_t i = 0; i < n; i++)
		put_site(page, &list->sites->items[i], list->nodes[i]);
	torsh_json_end_array(json);
	for (size_t i = n; i < list->sites->n; i++) {
		bytes += list->sites->items[i].bytes;
		blocks += list->sites->items[i].blocks;
	}
	torsh_json_begin_object(json, "omitted");
	torsh_json_put_u64(json, "rows", n_left);
	torsh_json_put_u64(json, "bytes", bytes);
	torsh_json_put_u64(json, "blocks", blocks);
	torsh_json_end_object(json);
}

static void put_packages(struct html_page *page, const char *name,
			 const struct kept_imports *imports)
{
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < imports->n; i++) {
		torsh_json_begin_array(json, NULL);
		torsh_html_put_text(page, NULL, imports->items[i].package);
		torsh_json_put_u64(json, NULL, imports->items[i].bytes);
		torsh_json_put_u64(json, NULL, imports->items[i].blocks);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
}

static void put_kept(struct html_page *page)
{
	const struct leaks *leaks = &page->memory.leaks;
	const struct suppress *suppress = page->trace->suppress;
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, "bookkeeping");
	for (size_t i = 0; i < leaks->n_bookkeeping; i++) {
		torsh_json_begin_array(json, NULL);
		torsh_html_put_text(page, NULL, leaks->bookkeeping[i].what);
		torsh_json_put_u64(json, NULL, leaks->bookkeeping[i].bytes);
		torsh_json_put_u64(json, NULL, leaks->bookkeeping[i].blocks);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
	put_packages(page, "imports", &leaks->imports);
	put_packages(page, "first_uses", &leaks->first_uses);
	torsh_json_begin_array(json, "suppressed");
	for (size_t i = 0; suppress && i < suppress->n; i++) {
		const struct suppress_rule *rule = &suppress->rules[i];

		if (!rule->n_stacks)
			continue;
		torsh_json_begin_array(json, NULL);
		torsh_html_put_text(page, NULL, rule->pattern);
		torsh_json_put_u64(json, NULL, rule->bytes);
		torsh_json_put_u64(json, NULL, rule->blocks);
		torsh_json_put_u64(json, NULL, rule->n_stacks);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
}

static void put_leaks(struct html_page *page)
{
	const struct leaks *leaks = &page->memory.leaks;
	const struct trace *trace = page->trace;
	struct json_writer *json = &page->json;
	bool is_known = torsh_recording_has_heaps(trace->processes, trace->n_processes);

	torsh_json_begin_object(json, "leaks");
	torsh_json_put_known(json, "bytes", is_known, leaks->bytes);
	torsh_json_put_known(json, "blocks", is_known, leaks->blocks);
	torsh_json_put_u64(json, "alive_bytes", leaks->alive_bytes);
	torsh_json_put_u64(json, "alive_blocks", leaks->alive_blocks);
	torsh_json_put_u64(json, "bookkeeping_bytes", leaks->bookkeeping_bytes);
	torsh_json_put_u64(json, "bookkeeping_blocks", leaks->bookkeeping_blocks);
	torsh_json_put_u64(json, "imports_bytes", leaks->imports.bytes);
	torsh_json_put_u64(json, "first_uses_bytes", leaks->first_uses.bytes);
	torsh_json_put_u64(json, "suppressed_bytes", leaks->suppressed_bytes);
	torsh_json_put_u64(json, "suppressed_blocks", leaks->suppressed_blocks);
	torsh_json_put_u64(json, "exec_bytes", leaks->exec_bytes);
	torsh_json_put_u64(json, "exec_blocks", leaks->exec_blocks);
	put_kept(page);
	put_sites(page, &page->memory.leaked);
	torsh_json_end_object(json);
	torsh_json_begin_object(json, "growth");
	torsh_json_put_u64(json, "steps", page->memory.growth.n_steps);
	torsh_json_put_bool(json, "is_enough", page->memory.growth.is_enough);
	put_sites(page, &page->memory.grown);
	torsh_json_end_object(json);
}

static void put_peak(struct html_page *page)
{
	const struct html_memory *memory = &page->memory;
	const struct peak *peak = &memory->peak;
	const struct recorded_vm *vm = &memory->mapper->vm;
	struct json_writer *json = &page->json;

	torsh_json_begin_object(json, "peak");
	torsh_json_put_known(json, "process", peak->process != NULL,
			     peak->process ? torsh_html_process(page, peak->process) : 0);
	torsh_json_put_known(json, "bytes", peak->is_known, peak->bytes);
	torsh_json_put_known(json, "blocks", peak->is_known, peak->blocks);
	torsh_json_put_known(json, "at_ns", peak->is_known, peak->at_ns);
	torsh_json_put_u64(json, "late_changes", peak->late_changes);
	torsh_json_put_u64(json, "mapper", torsh_html_process(page, memory->mapper));
	torsh_json_put_known(json, "mapped_bytes", vm->is_there, vm->peak_bytes);
	torsh_json_put_known(json, "mapped_at_ns", vm->is_there, vm->peak_ns);
	torsh_json_end_object(json);
}

void torsh_html_memory_put(struct html_page *page)
{
	struct html_memory *memory = &page->memory;
	struct json_writer *json = &page->json;

	torsh_json_begin_object(json, "trees");
	torsh_html_tree_put(&memory->merged, "merged", &page->frames, json,
			    torsh_html_limit(page, HTML_NODES_MERGED));
	if (memory->has_native)
		torsh_html_tree_put(&memory->native, "native", &page->frames, json,
				    torsh_html_limit(page, HTML_NODES_NATIVE));
	torsh_html_tree_put(&memory->scopes, "scopes", &page->frames, json,
			    torsh_html_limit(page, HTML_NODES_SCOPES));
	torsh_json_end_object(json);
	torsh_html_moments_put(page);
	put_peak(page);
	put_leaks(page);
}
