/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/critical/critical.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/critical/build.h"
#include "tools/analysis/time_scope.h"
#include "tools/base/die.h"

/* Operators, launches and waits that are held at once: some 200 bytes each. */
#define EVENTS_MAX 1000000u
#define NO_STEPS "no steps are known"

const char *const torsh_critical_kind_names[N_CRITICAL_KINDS] = {
#define CRITICAL_KIND(NAME, name, text) #name,
#include "tools/analysis/critical/kinds.def"
#undef CRITICAL_KIND
};

const char *const torsh_critical_kind_texts[N_CRITICAL_KINDS] = {
#define CRITICAL_KIND(NAME, name, text) text,
#include "tools/analysis/critical/kinds.def"
#undef CRITICAL_KIND
};

/* ---- path ------------------------------------------------------------------------------------ */

struct path {
	struct built *built;
	uint64_t *ns; /* by what */
	size_t n_room;
};

/* Between what a node needed and its begin. */
static enum critical_kind kind_between(const struct built *built, const struct graph_node *node)
{
	enum critical_kind own = built->whats[node->what].kind;

	if (node->last == GRAPH_NONE)
		return CRITICAL_UNKNOWN;
	switch (built->graph.edges[node->last].kind) {
	case EDGE_LAUNCH:
	case EDGE_STREAM:
	case EDGE_STREAMS:
		return CRITICAL_LATENCY;
	case EDGE_SYNC:
		return CRITICAL_SYNC;
	case EDGE_WAKE:
		if (own == CRITICAL_IO)
			return own;
		if (built->graph.edges[node->last].delay_ns <= WAKE_NS_MAX)
			return CRITICAL_LOCKS;
		/* fall through */
	default:
		return own == CRITICAL_SYNC || own == CRITICAL_LOCKS ? own : CRITICAL_UNKNOWN;
	}
}

static void see_piece(void *context, const struct graph_node *node, bool is_work, uint64_t ns)
{
	struct path *path = context;
	uint32_t what = node->what;

	if (!is_work)
		what = torsh_built_what(path->built, kind_between(path->built, node), NULL,
					path->built->whats[node->what].lane);
	if (what >= path->n_room) {
		path->ns =
			torsh_need_items(path->ns, path->n_room, 2 * (what + 1), sizeof(*path->ns));
		path->n_room = 2 * (what + 1);
	}
	path->ns[what] += ns;
}

static void walk(struct path *path, uint32_t main, const struct step *steps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t node = torsh_built_node(path->built, main, steps[i].end_ns);

		if (node != GRAPH_NONE)
			torsh_graph_walk(&path->built->graph, node, steps[i].start_ns,
					 steps[i].end_ns, see_piece, path);
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct critical_row *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

static void take_lanes(struct critical *critical, const struct built *built)
{
	critical->n_lanes = built->lanes->n + built->n_streams;
	critical->lanes =
		torsh_need_items(NULL, 0, critical->n_lanes + 1, sizeof(*critical->lanes));
	for (uint32_t i = 0; i < built->lanes->n; i++)
		critical->lanes[i].thread = i;
	for (size_t i = 0; i < built->n_streams; i++)
		critical->lanes[built->lanes->n + i] =
			(struct critical_lane){.is_device = true,
					       .device = built->streams[i].pieces->device,
					       .stream = built->streams[i].pieces->stream};
}

static void take_rows(struct critical *critical, const struct path *path)
{
	const struct built *built = path->built;
	size_t n = path->n_room < built->n_whats ? path->n_room : built->n_whats;

	take_lanes(critical, built);
	critical->rows = torsh_need_items(NULL, 0, n + 1, sizeof(*critical->rows));
	for (size_t i = 0; i < n; i++) {
		const struct node_what *what = &built->whats[i];

		if (!path->ns[i])
			continue;
		critical->rows[critical->n_rows++] = (struct critical_row){.kind = what->kind,
									   .name = what->name,
									   .lane = what->lane,
									   .ns = path->ns[i]};
		critical->kind_ns[what->kind] += path->ns[i];
		critical->lanes[what->lane].ns += path->ns[i];
	}
	if (critical->n_rows)
		qsort(critical->rows, critical->n_rows, sizeof(*critical->rows), compare_rows);
}

/* The operator with most time, on all threads. */
static void find_operator(struct critical *critical)
{
	struct hash_map sums = {.n = 0};
	uint64_t *ns = torsh_need_items(NULL, 0, critical->n_rows + 1, sizeof(*ns));

	for (size_t i = 0; i < critical->n_rows; i++) {
		const struct critical_row *row = &critical->rows[i];
		size_t k;

		if (row->kind != CRITICAL_OPERATORS || !row->name)
			continue;
		k = torsh_hash_map_put_text(&sums, row->name, sums.n)->value;
		ns[k] += row->ns;
		if (ns[k] <= critical->operator_ns)
			continue;
		critical->operator_ns = ns[k];
		critical->operator_name = row->name;
	}
	torsh_hash_map_free(&sums);
	free(ns);
}

/* ---- replay ---------------------------------------------------------------------------------- */

struct replay {
	const struct built *built;
	const struct step *first, *last; /* steps */
	uint32_t end; /* the node that the last step ends with */
	int64_t *ends;
	bool *is_free;
};

/*
 * How long it takes with that change: until the main thread is at the end of the last step, and
 * devices have done what they had done then.
 */
static int64_t duration_of(const struct replay *replay, const struct graph_change *change)
{
	const struct graph *graph = &replay->built->graph;
	int64_t end_ns;

	torsh_graph_replay(graph, change, replay->ends);
	end_ns = replay->ends[replay->end];
	for (size_t i = 0; i < replay->built->n_streams; i++) {
		const struct stream *stream = &replay->built->streams[i];

		for (size_t k = 0; k < stream->n; k++) {
			if (stream->pieces[k].end_ns <= replay->last->end_ns &&
			    replay->ends[stream->first_node + k] > end_ns)
				end_ns = replay->ends[stream->first_node + k];
		}
	}
	return end_ns - (int64_t)replay->first->start_ns;
}

static struct critical_gain gain_of(const struct replay *replay, const struct graph_change *change,
				    int64_t whole_ns)
{
	int64_t ns = whole_ns - duration_of(replay, change);

	return (struct critical_gain){.is_known = true, .ns = ns > 0 ? (uint64_t)ns : 0};
}

static bool is_of_host(enum critical_kind kind)
{
	return kind == CRITICAL_OPERATORS || kind == CRITICAL_PYTHON || kind == CRITICAL_GAPS;
}

static void find_gains(struct critical *critical, const struct replay *replay)
{
	const struct built *built = replay->built;
	const struct graph_change none = {.is_free = NULL}, no_sync = {.without_sync = true},
				  is_free = {.is_free = replay->is_free};
	int64_t whole_ns = duration_of(replay, &none);

	for (int kind = 0; kind < N_CRITICAL_KINDS; kind++) {
		if (!critical->kind_ns[kind])
			continue;
		for (size_t i = 0; i < built->n_whats; i++)
			replay->is_free[i] = built->whats[i].kind == (enum critical_kind)kind;
		critical->gains[kind] = gain_of(replay, &is_free, whole_ns);
	}
	for (size_t i = 0; i < built->n_whats; i++)
		replay->is_free[i] = built->whats[i].kind == CRITICAL_OPERATORS &&
				     built->whats[i].name == critical->operator_name;
	if (critical->operator_name)
		critical->without_operator = gain_of(replay, &is_free, whole_ns);
	if (!critical->has_devices)
		return;
	for (size_t i = 0; i < built->n_whats; i++)
		replay->is_free[i] = is_of_host(built->whats[i].kind);
	critical->without_host = gain_of(replay, &is_free, whole_ns);
	critical->without_sync = gain_of(replay, &no_sync, whole_ns);
}

static void replay_changes(struct critical *critical, const struct built *built,
			   const struct step *steps, size_t n)
{
	struct replay replay = {
		.built = built,
		.first = &steps[0],
		.last = &steps[n - 1],
		.end = torsh_built_node(built, built->lanes->main, steps[n - 1].end_ns),
		.ends = torsh_need_items(NULL, 0, built->graph.n + 1, sizeof(int64_t)),
		.is_free = torsh_need_items(NULL, 0, built->n_whats + 1, sizeof(bool))};

	if (replay.end != GRAPH_NONE)
		find_gains(critical, &replay);
	free(replay.ends);
	free(replay.is_free);
}

/* ---- choice ---------------------------------------------------------------------------------- */

/* Returns how many of those there are; *from is the index of the first. */
static size_t find_steps(const struct time_scope *scope, const struct critical_steps *chosen,
			 size_t *from)
{
	size_t n = 0;

	for (*from = 0; *from < scope->n; (*from)++) {
		if (scope->intervals[*from].number >= chosen->first)
			break;
	}
	while (*from + n < scope->n && scope->intervals[*from + n].number <= chosen->last)
		n++;
	if (!n)
		torsh_die("the recording has no step %" PRIu64, chosen->first);
	return n;
}

/*
 * Those that are chosen, else the steady steps, or all; without those that would hold more than
 * EVENTS_MAX.
 */
static size_t choose_steps(const struct time_scope *scope, const struct prepass_process *of,
			   const struct critical_steps *chosen, const struct step **first)
{
	bool has_steady = scope->first_steady < scope->n_whole;
	size_t from = has_steady ? scope->first_steady : 0,
	       n = (has_steady ? scope->n_whole : scope->n) - from;
	uint64_t a_step = (of->n_operators + of->work.n_spans + of->work.n_launches) /
			  (scope->n ? scope->n : 1);
	uint64_t n_max = a_step ? EVENTS_MAX / a_step : n;

	if (chosen->is_some)
		n = find_steps(scope, chosen, &from);
	*first = scope->intervals + from;
	n_max = n_max ? n_max : 1;
	return n < n_max ? n : (size_t)n_max;
}

/* The thread with most bounds of steps, else that with most operators. */
static uint32_t choose_main(const struct collected *collected, const struct steps *steps)
{
	uint32_t most = 0, n_threads = (uint32_t)collected->process->n_threads;

	for (uint32_t i = 1; i < n_threads; i++)
		most = collected->n_bounds[i] > collected->n_bounds[most] ? i : most;
	return n_threads && collected->n_bounds[most]
		       ? most
		       : torsh_thread_stays_main(&collected->stays, steps, n_threads);
}

static void find_path(struct critical *critical, const struct recording *recording,
		      struct recorded_process *process, const struct prepass *prepass,
		      const struct critical_steps *chosen)
{
	const struct prepass_process *of = torsh_prepass_of(prepass, process);
	struct collected collected;
	struct time_scope scope;
	const struct step *steps;
	struct lanes lanes;
	struct built built;
	struct path path = {.built = &built};

	torsh_scope_create(&scope, of, 0, UINT64_MAX);
	critical->n_all = of->steps.n;
	critical->is_chosen = chosen->is_some;
	critical->n_steps = choose_steps(&scope, of, chosen, &steps);
	if (!critical->n_steps) {
		torsh_scope_destroy(&scope);
		critical->reason = NO_STEPS;
		return;
	}
	critical->first_step = steps->number;
	critical->last_step = steps[critical->n_steps - 1].number;
	torsh_collected_read(&collected, recording, process, prepass, steps->start_ns,
			     steps[critical->n_steps - 1].end_ns);
	torsh_lanes_make(&lanes, &collected, choose_main(&collected, &of->steps));
	torsh_lanes_find_wakers(&lanes, steps, critical->n_steps);
	torsh_built_make(&built, &lanes, &collected, steps, critical->n_steps);
	for (size_t i = 0; i < critical->n_steps; i++)
		critical->steps_ns += steps[i].end_ns - steps[i].start_ns;
	critical->window_ns = steps[critical->n_steps - 1].end_ns - steps->start_ns;
	critical->has_devices = built.n_streams;
	critical->has_waits = collected.has_waits;
	critical->n_guessed = lanes.n_guessed + built.n_guessed;
	critical->n_contradicting = built.graph.n_contradicting;
	walk(&path, lanes.main, steps, critical->n_steps);
	take_rows(critical, &path);
	find_operator(critical);
	replay_changes(critical, &built, steps, critical->n_steps);
	free(path.ns);
	torsh_built_free(&built);
	torsh_lanes_free(&lanes);
	torsh_collected_free(&collected);
	torsh_scope_destroy(&scope);
}

void torsh_critical_find(struct critical *critical, const struct recording *recording,
			 struct recorded_process *const *processes, size_t n_processes,
			 const struct prepass *prepass, const struct critical_steps *chosen)
{
	struct recorded_process *most = NULL;
	uint64_t most_ns = 0;

	*critical = (struct critical){.reason = NO_STEPS};
	for (size_t i = 0; i < n_processes; i++) {
		const struct steps *steps = &torsh_prepass_of(prepass, processes[i])->steps;
		uint64_t ns = 0;

		for (size_t k = 0; k < steps->n; k++)
			ns += steps->items[k].end_ns - steps->items[k].start_ns;
		if (processes[i]->is_data_worker || ns <= most_ns || !processes[i]->n_threads)
			continue;
		most = processes[i];
		most_ns = ns;
	}
	if (!most)
		return;
	critical->process = most;
	critical->reason = NULL;
	if (torsh_prepass_of(prepass, most)->steps.slices)
		critical->reason = "requests that overlap have no path in common";
	else
		find_path(critical, recording, most, prepass, chosen);
}

void torsh_critical_free(struct critical *critical)
{
	free(critical->lanes);
	free(critical->rows);
	*critical = (struct critical){0};
}
