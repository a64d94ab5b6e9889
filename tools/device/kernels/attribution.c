/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/attribution.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"

#define PATH_MAX_OPERATORS 64u /* innermost operators of a path; outer ones are left out */
#define THREADS_LOST (1u << 20) /* thread numbers beyond the rows that still get a state */

const struct attribution_words torsh_attribution_words[N_ATTRIBUTION_METHODS] = {
#define METHOD(NAME, detail, method, confidence) {#detail, #method, #confidence},
	ATTRIBUTION_METHODS
#undef METHOD
};

/* The enclosing operators: the parent path and one more operator. */
struct path {
	uint32_t parent, label;
};

/* Open ranges of one thread that have names of operators, innermost last. */
struct open_ranges {
	struct span **spans;
	size_t n, n_room;
};

/*
 * The operators and ranges around a launch, shared by all launches with the same ones. path or
 * range is 0: none.
 */
struct site {
	uint32_t path, innermost; /* innermost: a label, the last of the path */
	uint32_t range, source; /* a label; enum range_source */
};

struct known_kernel {
	bool is_known;
	const struct inductor_kernel *fused;
	const char *family;
};

struct process_state {
	const struct recorded_process *process;
	struct key_index path_index, site_index; /* keyed by parent and label; by path and range */
	struct path *paths;
	size_t n_paths, paths_room;
	struct site *sites;
	size_t n_sites, sites_room;
	struct sparse_array threads; /* of struct open_ranges */
	/* by label: the operator that a range's text names; "": none. NULL: not parsed yet */
	char **operators;
	struct known_kernel *kernels; /* by label */
};

struct folder {
	const char *path;
	struct inductor inductor;
};

struct attributor {
	const struct prepass *prepass;
	struct folder *folders; /* of torch.compile; at most one per process */
	size_t n_folders;
	struct process_state *states;
	size_t n;
	struct process_state *last;
};

static struct process_state *find_state(const struct attributor *attributor,
					const struct recorded_process *process)
{
	struct attributor *own = (struct attributor *)attributor;

	if (own->last && own->last->process == process)
		return own->last;
	for (size_t i = 0; i < own->n; i++) {
		if (own->states[i].process == process)
			return own->last = &own->states[i];
	}
	return NULL;
}

/* ---- what names give away -------------------------------------------------------------------- */

static bool is_word(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

static size_t n_word(const char *text)
{
	size_t n = 0;

	while (is_word(text[n]))
		n++;
	return n;
}

static bool is_operators_namespace(const char *text, size_t n)
{
	static const char *const others[] = {"prims", "torch", "layer", "autograd"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (strlen(others[i]) == n && strncmp(text, others[i], n) == 0)
			return false;
	}
	return n && !(*text >= '0' && *text <= '9');
}

size_t torsh_attribution_operator_in(const char *text)
{
	size_t n = n_word(text), n_name;

	if (!is_operators_namespace(text, n) || strncmp(text + n, "::", 2) != 0)
		return 0;
	n += 2;
	n_name = n_word(text + n);
	if (!n_name)
		return 0;
	n += n_name;
	/*
	 * An overload, or what emit_nvtx appends to the name; a scope or other words make a text
	 * that names no operator.
	 */
	if (text[n] == '.' && n_word(text + n + 1))
		return text[n + 1 + n_word(text + n + 1)] == '\0' ? n : 0;
	return text[n] == '\0' || text[n] == ',' ? n : 0;
}

const char *torsh_attribution_family(const char *symbol)
{
	static const struct {
		const char *name, *part;
	} families[] = {
#define FAMILY(name, part) {#name, part},
#include "tools/device/kernels/kernel_families.def"
#undef FAMILY
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		if (strstr(symbol, families[i].part))
			return families[i].name;
	}
	return NULL;
}

static const char *operator_of_range(struct process_state *state, uint32_t label)
{
	const char *text = torsh_timeline_label(state->process, label);

	if (!text)
		return "";
	if (!state->operators)
		state->operators = torsh_need(
			calloc(state->process->tables->n_functions + 1, sizeof(*state->operators)));
	if (!state->operators[label])
		state->operators[label] =
			torsh_need(strndup(text, torsh_attribution_operator_in(text)));
	return state->operators[label];
}

/* Returns the source code that torch.compile left in the process's cache folder. */
static const struct inductor *inductor_of(struct attributor *attributor,
					  const struct process_state *state)
{
	const struct process_attributes *facts =
		&torsh_prepass_of(attributor->prepass, state->process)->facts;
	const char *path = torsh_process_attributes_find(facts, "inductor_cache");
	struct folder *folder = attributor->folders;

	if (!path)
		return NULL;
	for (; folder < attributor->folders + attributor->n_folders; folder++) {
		if (strcmp(folder->path, path) == 0)
			return &folder->inductor;
	}
	attributor->n_folders++;
	folder->path = path;
	torsh_inductor_read(&folder->inductor, path);
	return &folder->inductor;
}

static const struct inductor_kernel *
find_fused(struct attributor *attributor, const struct process_state *state, const char *symbol)
{
	if (strncmp(symbol, "triton_", 7) != 0)
		return NULL;
	return torsh_inductor_find(inductor_of(attributor, state), symbol);
}

static const struct known_kernel *find_kernel(struct attributor *attributor,
					      struct process_state *state, uint32_t label)
{
	static const struct known_kernel nothing;
	const char *symbol = torsh_timeline_label(state->process, label);
	struct known_kernel *known;

	if (!symbol)
		return &nothing;
	if (!state->kernels)
		state->kernels = torsh_need(
			calloc(state->process->tables->n_functions + 1, sizeof(*state->kernels)));
	known = &state->kernels[label];
	if (!known->is_known)
		*known = (struct known_kernel){.is_known = true,
					       .fused = find_fused(attributor, state, symbol),
					       .family = torsh_attribution_family(symbol)};
	return known;
}

/* ---- ranges that look like operators --------------------------------------------------------- */

static struct open_ranges *ranges_of(struct process_state *state, uint32_t thread)
{
	if (thread >= state->process->n_threads + THREADS_LOST)
		return NULL;
	return torsh_sparse_array_at(&state->threads, thread);
}

static bool is_evidence(const struct span *span)
{
	return span->kind == SPAN_RANGE && !span->is_module && !span->is_async;
}

void torsh_attributor_begin(struct attributor *attributor, const struct span *span)
{
	struct process_state *state = find_state(attributor, span->process);
	struct open_ranges *ranges;

	if (!is_evidence(span) || !state || !*operator_of_range(state, span->name))
		return;
	ranges = ranges_of(state, span->thread);
	if (!ranges)
		return;
	ranges->spans = torsh_array_reserve(ranges->spans, ranges->n, &ranges->n_room,
					    sizeof(*ranges->spans));
	ranges->spans[ranges->n++] = (struct span *)span;
}

void torsh_attributor_end(struct attributor *attributor, const struct span *span)
{
	struct process_state *state = find_state(attributor, span->process);
	struct open_ranges *ranges;

	if (span->kind != SPAN_RANGE || !state)
		return;
	ranges = torsh_sparse_array_find(&state->threads, span->thread);
	for (size_t i = ranges ? ranges->n : 0; i; i--) {
		if (ranges->spans[i - 1] != span)
			continue;
		memmove(&ranges->spans[i - 1], &ranges->spans[i],
			(ranges->n - i) * sizeof(*ranges->spans));
		ranges->n--;
		return;
	}
}

struct span *torsh_attributor_range(const struct attributor *attributor,
				    const struct recorded_process *process, uint32_t thread)
{
	const struct process_state *state = find_state(attributor, process);
	const struct open_ranges *ranges =
		state ? torsh_sparse_array_find(&state->threads, thread) : NULL;

	return ranges && ranges->n ? ranges->spans[ranges->n - 1] : NULL;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Always terminates: the labels of one parent are finite. */
static uint32_t add_to_path(struct process_state *state, uint32_t parent, uint32_t label)
{
	struct key_slot *slot =
		torsh_key_index_find(&state->path_index, ((uint64_t)parent << 32 | label) + 1);

	if (slot->key)
		return slot->number;
	state->paths = torsh_array_reserve(state->paths, state->n_paths, &state->paths_room,
					   sizeof(*state->paths));
	state->paths[state->n_paths] = (struct path){.parent = parent, .label = label};
	torsh_key_index_fill(&state->path_index, slot, ((uint64_t)parent << 32 | label) + 1,
			     (uint32_t)state->n_paths);
	return (uint32_t)state->n_paths++;
}

static uint32_t path_of(struct process_state *state, const struct span *innermost)
{
	uint32_t labels[PATH_MAX_OPERATORS], path = 0;
	size_t n = 0;

	for (; innermost && n < PATH_MAX_OPERATORS;
	     innermost = torsh_span_outer_operator(innermost))
		labels[n++] = innermost->name;
	while (n)
		path = add_to_path(state, path, labels[--n]);
	return path;
}

static uint32_t find_site(struct process_state *state, const struct site *site)
{
	/* Labels are below 2^30: an agent has at most 2^18 of them. */
	uint64_t key = ((uint64_t)site->path << 32 | site->range << 2 | site->source) + 1;
	struct key_slot *slot = torsh_key_index_find(&state->site_index, key);

	if (slot->key)
		return slot->number;
	state->sites = torsh_array_reserve(state->sites, state->n_sites, &state->sites_room,
					   sizeof(*state->sites));
	state->sites[state->n_sites] = *site;
	torsh_key_index_fill(&state->site_index, slot, key, (uint32_t)state->n_sites);
	return (uint32_t)state->n_sites++;
}

static uint32_t site_of(struct attributor *attributor, struct process_state *state, uint32_t thread,
			const struct span *innermost)
{
	const struct span *range =
		innermost ? NULL : torsh_attributor_range(attributor, state->process, thread);
	struct site site = {0};

	if (innermost) {
		site.path = path_of(state, innermost);
		site.innermost = innermost->name;
	} else if (range) {
		site.range = range->name;
		site.source = range->source;
	}
	return find_site(state, &site);
}

uint64_t torsh_attributor_place(struct attributor *attributor,
				const struct recorded_process *process,
				const struct timeline_event *event, const struct span *innermost,
				uint32_t owner)
{
	struct process_state *state = find_state(attributor, process);

	return state ? (uint64_t)site_of(attributor, state, event->thread, innermost) << 32 | owner
		     : 0;
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* Returns whether the launch site gives an operator. */
static bool by_site(struct process_state *state, const struct site *site,
		    struct attribution *attribution)
{
	static const enum attribution_method by_source[] = {[RANGE_BY_TORSH] =
								    ATTRIBUTION_BY_REGION,
							    [RANGE_BY_NVTX] = ATTRIBUTION_BY_NVTX,
							    [RANGE_BY_ITT] = ATTRIBUTION_BY_ITT};
	const char *name;

	if (site->path) {
		name = torsh_timeline_label(state->process, site->innermost);
		attribution->method = ATTRIBUTION_BY_DIRECT;
		attribution->operator_name = name && *name ? name : "?";
		return true;
	}
	if (!site->range || site->source > RANGE_BY_ITT)
		return false;
	attribution->method = by_source[site->source];
	attribution->operator_name = operator_of_range(state, site->range);
	return true;
}

/* Attribute a kernel by its name, if its launch was not recorded. */
static void by_name(const struct known_kernel *known, struct attribution *attribution)
{
	if (known->fused) {
		attribution->method = ATTRIBUTION_BY_INDUCTOR;
		attribution->operator_name = known->fused->operators[0];
		attribution->reason = KERNEL_NONE;
	} else if (known->family) {
		attribution->method = ATTRIBUTION_BY_FAMILY;
		attribution->family = known->family;
	} else {
		attribution->method = ATTRIBUTION_BY_NONE;
	}
}

void torsh_attribute(struct attributor *attributor, const struct device_activity *activity,
		     struct attribution *attribution)
{
	static const struct known_kernel copy = {.family = "memcpy"},
					 memset_ = {.family = "memset"};
	struct process_state *state = find_state(attributor, activity->process);
	const struct activity_record *record = &activity->record;
	const struct known_kernel *known = record->what == DEVICE_KERNEL
						   ? find_kernel(attributor, state, record->name)
					   : record->what == DEVICE_COPY ? &copy
									 : &memset_;
	uint32_t site = (uint32_t)(activity->cause.own >> 32);

	*attribution = (struct attribution){.fused = known->fused,
					    .owner = (uint32_t)activity->cause.own,
					    .stack = activity->stack,
					    .is_captured = activity->has_node_stack};
	if (activity->is_captured || activity->has_launch) {
		/* 0: no launch */
		attribution->site = (site + 1) << 1 | activity->is_captured;
		attribution->path = state->sites[site].path;
		if (by_site(state, &state->sites[site], attribution)) {
			attribution->method = activity->is_captured ? ATTRIBUTION_BY_CAPTURE
								    : attribution->method;
			return;
		}
	}
	attribution->reason = activity->reason;
	by_name(known, attribution);
}

size_t torsh_attribution_path(const struct attributor *attributor,
			      const struct recorded_process *process, uint32_t path,
			      uint32_t *labels, size_t n_max)
{
	const struct process_state *state = find_state(attributor, process);
	size_t n = 0;

	for (; path && n < n_max; path = state->paths[path].parent)
		labels[n++] = state->paths[path].label;
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t label = labels[i];

		labels[i] = labels[n - 1 - i];
		labels[n - 1 - i] = label;
	}
	return n;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct attributor *torsh_attributor_create(struct recorded_process *const *processes,
					   size_t n_processes, const struct prepass *prepass)
{
	struct attributor *attributor = torsh_need(calloc(1, sizeof(*attributor)));

	attributor->prepass = prepass;
	attributor->folders = torsh_need_items(NULL, 0, n_processes, sizeof(*attributor->folders));
	attributor->n = n_processes;
	attributor->states = torsh_need_items(NULL, 0, n_processes, sizeof(*attributor->states));
	for (size_t i = 0; i < n_processes; i++) {
		struct process_state *state = &attributor->states[i];

		state->process = processes[i];
		torsh_key_index_create(&state->path_index);
		torsh_key_index_create(&state->site_index);
		torsh_sparse_array_create(&state->threads, sizeof(struct open_ranges));
		/* Path 0 is the empty one. */
		state->paths =
			torsh_array_reserve(NULL, 0, &state->paths_room, sizeof(*state->paths));
		state->n_paths = 1;
	}
	return attributor;
}

static void free_state(struct process_state *state)
{
	struct open_ranges *ranges;

	torsh_key_index_destroy(&state->path_index);
	torsh_key_index_destroy(&state->site_index);
	for (size_t i = 0; (ranges = torsh_sparse_array_next(&state->threads, &i)); i++)
		free(ranges->spans);
	for (size_t i = 0; state->operators && i <= state->process->tables->n_functions; i++)
		free(state->operators[i]);
	free(state->operators);
	free(state->kernels);
	torsh_sparse_array_destroy(&state->threads);
	free(state->paths);
	free(state->sites);
}

void torsh_attributor_destroy(struct attributor *attributor)
{
	for (size_t i = 0; i < attributor->n; i++)
		free_state(&attributor->states[i]);
	for (size_t i = 0; i < attributor->n_folders; i++)
		torsh_inductor_free(&attributor->folders[i].inductor);
	free(attributor->folders);
	free(attributor->states);
	free(attributor);
}
