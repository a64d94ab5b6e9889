/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/html/html_page.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/leaks/rules/growth_rules.h"

/* Adds stacks of one process, in one view, to a tree. */
struct grower {
	struct html_page *page;
	struct html_tree *tree;
	struct recorded_process *process;
	enum stack_view view;
	enum html_weight weight; /* of the sites that are added */
	uint32_t root; /* the node of the process */
	/* By stack: its node + 1, as what is innermost, and as what called a line of Python. */
	struct sparse_array inner, outer;
	struct path_stack *path;
	size_t path_room;
};

/* A stack without a node yet. */
struct path_stack {
	uint32_t stack;
	bool is_inner;
};

static uint32_t process_node(struct html_page *page, struct html_tree *tree,
			     const struct recorded_process *process)
{
	char name[256];

	if (page->trace->n_processes == 1)
		return 0;
	snprintf(name, sizeof(name), "%s (%" PRIu32 ")", torsh_recording_program_name(process),
		 process->pid);
	return torsh_html_tree_child(tree, 0,
				     torsh_html_frame_text(&page->frames, HTML_FRAME_LABEL, name));
}

/* Returns the descendant of a node for all frames of an address, innermost last. */
static uint32_t descend(struct grower *grower, uint32_t node, uint32_t address)
{
	struct html_page *page = grower->page;
	const struct frames *at =
		torsh_symbols_frames(page->trace->symbols, grower->process, address);

	for (size_t i = at->n; i > 0; i--) {
		uint32_t frame = torsh_html_frame(&page->frames, &at->frames[i - 1]);

		/* The many frames of the import system become one. */
		if (frame != HTML_FRAME_NUMBER_IMPORT || grower->tree->grown[node].frame != frame)
			node = torsh_html_tree_child(grower->tree, node, frame);
	}
	return node;
}

static bool is_python(const struct recorded_process *process, uint32_t stack)
{
	uint32_t address = process->tables->stacks[stack].address;

	return address < process->tables->n_addresses &&
	       process->tables->addresses[address].flags == ADDRESS_PYTHON;
}

static struct sparse_array *nodes_of(struct grower *grower, bool is_inner)
{
	return is_inner ? &grower->inner : &grower->outer;
}

static void keep(struct grower *grower, size_t n, uint32_t stack, bool is_inner)
{
	grower->path =
		torsh_array_reserve(grower->path, n, &grower->path_room, sizeof(*grower->path));
	grower->path[n] = (struct path_stack){.stack = stack, .is_inner = is_inner};
}

/* Returns the node of the first n stacks of the path, below the node around them. */
static uint32_t grow_path(struct grower *grower, size_t n, uint32_t node)
{
	struct recorded_process *process = grower->process;

	while (n-- > 0) {
		struct path_stack at = grower->path[n];
		uint32_t *known = torsh_sparse_array_at(nodes_of(grower, at.is_inner), at.stack);

		if (torsh_stack_view_shows(process, at.stack, at.is_inner,
					   grower->page->trace->symbols, grower->view))
			node = descend(grower, node, process->tables->stacks[at.stack].address);
		*known = node + 1;
	}
	return node;
}

/*
 * Returns the node of a stack's innermost frame. The frames that a view shows become nodes without
 * becoming stacks: those would be as many again as were recorded.
 */
static uint32_t node_of(struct grower *grower, uint32_t recorded)
{
	const struct recorded_process *process = grower->process;
	uint32_t node = grower->root, stack = recorded;
	bool is_inner = true;
	size_t n = 0;

	if (stack >= process->tables->n_stacks)
		return node;
	for (; stack; stack = process->tables->stacks[stack].parent) {
		const uint32_t *known;

		is_inner = is_inner && !is_python(process, stack);
		known = torsh_sparse_array_find(nodes_of(grower, is_inner), stack);
		if (known && *known) {
			node = *known - 1;
			break;
		}
		keep(grower, n++, stack, is_inner);
	}
	return grow_path(grower, n, node);
}

/* Returns the innermost Python line of a shown stack, or the root's frame. */
static uint32_t python_frame(struct grower *grower, uint32_t node)
{
	const struct html_tree *tree = grower->tree;

	for (; node; node = tree->grown[node].parent) {
		uint32_t frame = tree->grown[node].frame;

		if (grower->page->frames.items[frame].kind == HTML_FRAME_PYTHON)
			return frame;
	}
	return HTML_FRAME_NUMBER_ROOT;
}

static uint32_t scope_child(struct html_page *page, uint32_t parent, const char *name,
			    uint32_t label, const char *none)
{
	const char *text = label == PROFILE_SEVERAL ? "(several)" : name ? name : none;

	return torsh_html_tree_child(&page->memory.scopes, parent,
				     torsh_html_frame_text(&page->frames, HTML_FRAME_LABEL, text));
}

/* Returns a site's node by module, operator and line; node: in the tree of stacks. */
static uint32_t scope_of(struct grower *grower, const struct allocation_site *site, uint32_t node)
{
	struct html_page *page = grower->page;
	struct html_tree *scopes = &page->memory.scopes;
	uint32_t line = python_frame(grower, node), scope;

	scope = scope_child(page, process_node(page, scopes, site->process),
			    torsh_site_module(site), site->module, "(in no module)");
	scope = scope_child(page, scope, torsh_site_operator(site), site->operator,
			    "(in no operator)");
	if (line != HTML_FRAME_NUMBER_ROOT)
		scope = torsh_html_tree_child(scopes, scope, line);
	return scope;
}

/* Add a site's bytes by module, operator and line. */
static void add_scope(struct grower *grower, const struct allocation_site *site, uint32_t node)
{
	torsh_html_tree_add(&grower->page->memory.scopes, scope_of(grower, site, node),
			    grower->weight, site->blocks, site->bytes);
}

/* Returns the site's node. */
static uint32_t add_site(struct grower *grower, const struct allocation_site *site)
{
	uint32_t node = node_of(grower, site->stack);

	torsh_html_tree_add(grower->tree, node, grower->weight, site->blocks, site->bytes);
	if (grower->view == STACK_VIEW_MERGED)
		add_scope(grower, site, node);
	return node;
}

static void add_each(const struct allocation_site *site, void *grower)
{
	add_site(grower, site);
}

static void add_sites(struct grower *grower, enum sites_of what, enum html_weight weight)
{
	grower->weight = weight;
	torsh_sites_each(grower->process, what, add_each, grower);
}

/* Add the leaks of a process; rows of merged stacks get the nodes, too. */
static void add_leaks(struct grower *grower, const struct leaks *leaks, uint32_t *nodes)
{
	grower->weight = HTML_LEAKED;
	for (size_t i = 0; i < leaks->found.n; i++) {
		const struct allocation_site *site = &leaks->found.items[i];
		uint32_t node;

		if (site->process != grower->process)
			continue;
		node = add_site(grower, site);
		if (nodes)
			nodes[i] = node;
	}
}

static void add_growth(struct grower *grower, struct html_memory *memory)
{
	for (size_t i = 0; i < memory->growth.found.n; i++) {
		const struct allocation_site *site = &memory->growth.found.items[i];

		if (site->process == grower->process)
			memory->grown.nodes[i] = node_of(grower, site->stack);
	}
}

/* Sets the nodes of the stacks of all moments. */
static void add_moments(struct grower *grower, struct html_moments *moments)
{
	const struct recorded_process *process = grower->process;

	grower->weight = HTML_HIGHEST;
	for (size_t i = 0; i < moments->n_stacks; i++) {
		struct html_moment_stack *stack = &moments->stacks[i];
		struct recorded_total total;
		struct allocation_site site = {
			.process = process, .stack = stack->stack, .bytes = stack->bytes};

		torsh_totals_find(&process->totals, stack->stack, &total);
		site.operator= total.operator;
		site.module = total.module;
		if (grower->view == STACK_VIEW_MERGED) {
			stack->nodes[HTML_IN_MERGED] = add_site(grower, &site);
			stack->nodes[HTML_IN_SCOPES] =
				scope_of(grower, &site, stack->nodes[HTML_IN_MERGED]);
		} else {
			stack->nodes[HTML_IN_NATIVE] = add_site(grower, &site);
		}
	}
}

static void grow_process(struct grower *grower, const struct leaks *leaks)
{
	struct html_memory *memory = &grower->page->memory;
	const struct recorded_process *shown = memory->peak.process;
	bool is_merged = grower->view == STACK_VIEW_MERGED;

	if (!shown || shown == grower->process)
		add_sites(grower, shown ? SITES_PEAK : SITES_SESSION_PEAK, HTML_PEAK);
	add_leaks(grower, leaks, is_merged ? memory->leaked.nodes : NULL);
	add_sites(grower, SITES_LIVE, HTML_LIVE);
	add_sites(grower, SITES_ALLOCATED, HTML_ALLOCATED);
	add_sites(grower, SITES_TEMPORARY, HTML_TEMPORARY);
	if (memory->mapper == grower->process)
		add_sites(grower, SITES_MAPPED, HTML_MAPPED);
	if (is_merged)
		add_growth(grower, memory);
}

/* Add all weights of all processes, in one view. */
static void grow_tree(struct html_page *page, struct html_tree *tree, enum stack_view view,
		      const struct leaks *leaks)
{
	for (size_t i = 0; i < page->trace->n_processes; i++) {
		struct grower grower = {.page = page,
					.tree = tree,
					.process = page->trace->processes[i],
					.view = view};

		torsh_sparse_array_create(&grower.inner, sizeof(uint32_t));
		torsh_sparse_array_create(&grower.outer, sizeof(uint32_t));
		grower.root = process_node(page, tree, grower.process);
		grow_process(&grower, leaks);
		add_moments(&grower, &page->memory.moments[i]);
		torsh_sparse_array_destroy(&grower.inner);
		torsh_sparse_array_destroy(&grower.outer);
		free(grower.path);
	}
}

/* ---- pruning --------------------------------------------------------------------------------- */

static void prune_sites(const struct html_tree *tree, const struct html_sites *list)
{
	for (size_t i = 0; i < list->sites->n; i++)
		list->nodes[i] = torsh_html_tree_pruned(tree, list->nodes[i]);
}

/* Prune a tree, for the stacks of all moments too. */
static void prune_tree(struct html_page *page, enum html_moment_tree in, struct html_tree *tree,
		       size_t n_max)
{
	torsh_html_tree_prune(tree, torsh_html_limit(page, n_max));
	for (size_t i = 0; i < page->trace->n_processes; i++) {
		struct html_moments *moments = &page->memory.moments[i];

		for (size_t k = 0; k < moments->n_stacks; k++) {
			uint32_t *node = &moments->stacks[k].nodes[in];

			*node = torsh_html_tree_pruned(tree, *node);
		}
	}
}

static void prune_merged(struct html_page *page)
{
	struct html_memory *memory = &page->memory;

	prune_tree(page, HTML_IN_MERGED, &memory->merged, HTML_NODES_MERGED);
	prune_sites(&memory->merged, &memory->leaked);
	prune_sites(&memory->merged, &memory->grown);
	torsh_html_tree_free_grown(&memory->merged);
	prune_tree(page, HTML_IN_SCOPES, &memory->scopes, HTML_NODES_SCOPES);
	torsh_html_tree_free_grown(&memory->scopes);
}

/* ---- all trees ------------------------------------------------------------------------------- */

/* Add native frames only; a process has only one view at a time. */
static void grow_native(struct html_page *page)
{
	const struct trace *trace = page->trace;
	struct leaks leaks = {.found.view = STACK_VIEW_NATIVE};

	torsh_leaks_find(&leaks, trace->processes, trace->n_processes, trace->symbols,
			 trace->suppress);
	grow_tree(page, &page->memory.native, STACK_VIEW_NATIVE, &leaks);
	prune_tree(page, HTML_IN_NATIVE, &page->memory.native, HTML_NODES_NATIVE);
	torsh_html_tree_free_grown(&page->memory.native);
	torsh_leaks_free(&leaks);
	torsh_suppress_restart(trace->suppress);
	for (size_t i = 0; i < trace->n_processes; i++)
		torsh_stack_views_forget(trace->processes[i]);
}

static const struct recorded_process *find_mapper(const struct html_page *page)
{
	const struct trace *trace = page->trace;
	const struct recorded_process *most = trace->processes[0];

	if (page->memory.peak.process)
		return page->memory.peak.process;
	for (size_t i = 1; i < trace->n_processes; i++) {
		if (trace->processes[i]->vm.peak_bytes > most->vm.peak_bytes)
			most = trace->processes[i];
	}
	return most;
}

void torsh_html_memory_collect(struct html_page *page)
{
	struct html_memory *memory = &page->memory;
	struct trace *trace = page->trace;

	torsh_symbols_name_stacks(trace->symbols, trace->processes, trace->n_processes);
	memory->peak = torsh_peak_choose(trace->recording, trace->processes, trace->n_processes);
	memory->mapper = find_mapper(page);
	torsh_html_tree_create(&memory->merged);
	torsh_html_tree_create(&memory->native);
	torsh_html_tree_create(&memory->scopes);
	for (size_t i = 0; i < trace->n_processes; i++)
		memory->has_native = memory->has_native || trace->processes[i]->tables->has_python;
	torsh_html_moments_collect(page);
	if (memory->has_native)
		grow_native(page);
	torsh_leaks_find(&memory->leaks, trace->processes, trace->n_processes, trace->symbols,
			 trace->suppress);
	torsh_sites_sort(&memory->leaks.found, ORDER_BYTES);
	torsh_growth_find(&memory->growth, trace->processes, trace->n_processes);
	torsh_growth_suppress(&memory->growth, trace->suppress, trace->symbols);
	torsh_sites_sort(&memory->growth.found, ORDER_BYTES);
	memory->leaked.sites = &memory->leaks.found;
	memory->leaked.nodes =
		torsh_need_items(NULL, 0, memory->leaks.found.n + 1, sizeof(*memory->leaked.nodes));
	memory->grown.sites = &memory->growth.found;
	memory->grown.nodes =
		torsh_need_items(NULL, 0, memory->growth.found.n + 1, sizeof(*memory->grown.nodes));
	grow_tree(page, &memory->merged, STACK_VIEW_MERGED, &memory->leaks);
	prune_merged(page);
}

void torsh_html_memory_free(struct html_page *page)
{
	struct html_memory *memory = &page->memory;

	torsh_html_tree_free(&memory->merged);
	torsh_html_tree_free(&memory->native);
	torsh_html_tree_free(&memory->scopes);
	torsh_leaks_free(&memory->leaks);
	torsh_growth_free(&memory->growth);
	torsh_html_moments_free(page);
	free(memory->leaked.nodes);
	free(memory->grown.nodes);
}
