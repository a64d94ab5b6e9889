/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where processor time went, by samples, and what threads waited for: a tree of stacks with both
 * weights, nanoseconds in the place of bytes. A wait ends in what it was for.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/cpu/cpu_samples.h"
#include "tools/cpu/waits.h"
#include "tools/export/html/html_page.h"
#include "tools/export/sampled_stacks.h"

#define NODES 24000u

struct html_processor {
	struct cpu_samples samples;
	struct waits waits;
	struct html_tree tree; /* pruned */
};

struct grower {
	struct html_page *page;
	struct html_tree *tree;
	struct sampled_stacks stacks;
};

static uint32_t process_node(struct grower *grower, const struct recorded_process *process)
{
	char *name;
	uint32_t frame;

	if (grower->page->trace->n_processes == 1)
		return 0;
	name = torsh_need_text("%s (%" PRIu32 ")", torsh_recording_program_name(process),
			       process->pid);
	frame = torsh_html_frame_text(&grower->page->frames, HTML_FRAME_LABEL, name);
	free(name);
	return torsh_html_tree_child(grower->tree, 0, frame);
}

/* Returns the tree's node for a node of the stacks, below that of the process. */
static uint32_t descend(struct grower *grower, uint32_t root, uint32_t node)
{
	const struct sampled_node *at;
	uint32_t parent, frame;

	if (!node)
		return root;
	at = torsh_sampled_node(&grower->stacks, node);
	parent = descend(grower, root, at->parent);
	frame = torsh_html_frame(&grower->page->frames,
				 torsh_sampled_frame(&grower->stacks, at->frame));
	/* The many frames of the import system become one. */
	if (frame == HTML_FRAME_NUMBER_IMPORT && grower->tree->grown[parent].frame == frame)
		return parent;
	return torsh_html_tree_child(grower->tree, parent, frame);
}

static uint32_t node_of(struct grower *grower, const struct recorded_process *process,
			uint32_t stack)
{
	return descend(grower, process_node(grower, process),
		       torsh_sampled_stack(&grower->stacks, process, stack));
}

static void add_samples(struct grower *grower, const struct cpu_samples *samples)
{
	for (size_t i = 0; i < samples->n; i++) {
		const struct cpu_row *row = &samples->rows[i];

		torsh_html_tree_add(grower->tree, node_of(grower, row->process, row->stack),
				    HTML_CPU, row->n, row->ns);
	}
}

static void add_waits(struct grower *grower, const struct waits *waits)
{
	for (size_t i = 0; i < waits->n_sites; i++) {
		const struct wait_site *site = &waits->sites[i];
		uint32_t frame = torsh_html_frame_text(&grower->page->frames, HTML_FRAME_LABEL,
						       torsh_wait_kind_texts[site->kind]);
		uint32_t node = torsh_html_tree_child(
			grower->tree, node_of(grower, site->process, site->stack), frame);

		torsh_html_tree_add(grower->tree, node, HTML_WAITED, site->sum.n,
				    site->sum.total_ns);
	}
}

void torsh_html_processor_collect(struct html_page *page)
{
	const struct trace *trace = page->trace;
	struct html_processor *processor = torsh_need(calloc(1, sizeof(*processor)));
	struct grower grower = {.page = page, .tree = &processor->tree};

	torsh_waits_collect(&processor->waits, trace->processes, trace->n_processes, UINT32_MAX);
	if (!trace->prepass->counts.n_samples && !processor->waits.all.n) {
		torsh_waits_free(&processor->waits);
		free(processor);
		return;
	}
	page->processor = processor;
	torsh_cpu_samples_collect(&processor->samples, trace->recording, trace->processes,
				  trace->n_processes, trace->prepass);
	torsh_html_tree_create(&processor->tree);
	torsh_sampled_stacks_create(&grower.stacks, trace->symbols);
	add_samples(&grower, &processor->samples);
	add_waits(&grower, &processor->waits);
	torsh_sampled_stacks_free(&grower.stacks);
	torsh_html_tree_prune(&processor->tree, torsh_html_limit(page, NODES));
	torsh_html_tree_free_grown(&processor->tree);
}

void torsh_html_processor_free(struct html_page *page)
{
	if (!page->processor)
		return;
	torsh_html_tree_free(&page->processor->tree);
	torsh_cpu_samples_free(&page->processor->samples);
	torsh_waits_free(&page->processor->waits);
	free(page->processor);
}

void torsh_html_processor_put(struct html_page *page)
{
	struct html_processor *processor = page->processor;
	struct json_writer *json = &page->json;

	if (!processor) {
		torsh_json_put_null(json, "processor");
		return;
	}
	torsh_json_begin_object(json, "processor");
	torsh_json_put_u64(json, "samples", processor->samples.n_samples);
	torsh_json_put_u64(json, "ns", processor->samples.ns);
	torsh_json_put_u64(json, "lost", processor->samples.n_lost);
	torsh_json_put_u64(json, "waits", processor->waits.all.n);
	torsh_json_put_u64(json, "waited_ns", processor->waits.all.total_ns);
	torsh_json_put_u64(json, "shorter", processor->waits.all.n_shorter);
	torsh_json_put_u64(json, "shorter_ns", processor->waits.all.shorter_ns);
	torsh_html_tree_put(&processor->tree, "tree", &page->frames, json,
			    torsh_html_limit(page, NODES));
	torsh_json_end_object(json);
}
