/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Offsets of clocks from what writers measured. Clocks are nodes: those of the job, and further
 * ones of writers that are not in it. Two of one kernel are a fixed distance apart; exchanges of
 * times measure others. The offset to clock 0 is the sum along the way with the smallest error.
 */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/ranks/clocks/clock_estimate.h"
#include "tools/ranks/job/job.h"

/* By which an event's stamp and the clock at that moment may differ. */
#define READING_NS 1000u
#define LOOKS 4 /* in each part between two points */

const char *const torsh_job_clock_sources[] = {
	[CLOCK_IS_UNKNOWN] = NULL,
	[CLOCK_BY_KERNEL] = "same clock",
	[CLOCK_BY_PROBES] = "probes",
	[CLOCK_BY_COLLECTIVES] = "collectives",
};

/* From a node to another one: a measurement by the first's writer, or a fixed distance. */
struct edge {
	size_t from, to;
	const Torsh__FoldClock *measured; /* NULL: offset_ns */
	int64_t offset_ns; /* to be added to the first's times */
	uint64_t error_ns; /* typically */
	int64_t start_ns; /* of measured: what its times count from, since the job's origin */
};

struct node {
	uint64_t error_ns; /* of the way to node 0; UINT64_MAX: none */
	const struct edge *edge; /* the first one of that way */
};

struct graph {
	const struct job *job;
	struct node *nodes; /* the job's clocks first */
	size_t n_nodes;
	struct hash_map of_clock; /* a recording's start: its node */
	struct edge *edges;
	size_t n_edges, edges_room;
};

/* ---- the graph ------------------------------------------------------------------------------- */

static int compare_errors(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median of a measurement's errors. */
static uint64_t typical_error(const Torsh__FoldClock *measured)
{
	size_t n = measured->n_error_ns;
	uint64_t *errors = torsh_need_items(NULL, 0, n, sizeof(*errors)), median;

	for (size_t i = 0; i < n; i++)
		errors[i] = measured->error_ns[i];
	qsort(errors, n, sizeof(*errors), compare_errors);
	median = errors[n / 2];
	free(errors);
	return median;
}

static void add_edge(struct graph *graph, const struct edge *edge)
{
	graph->edges = torsh_array_reserve(graph->edges, graph->n_edges, &graph->edges_room,
					   sizeof(*graph->edges));
	graph->edges[graph->n_edges++] = *edge;
}

static size_t node_of(struct graph *graph, uint64_t clock)
{
	size_t i =
		torsh_hash_map_put(&graph->of_clock, &clock, sizeof(clock), graph->n_nodes)->value;

	if (i == graph->n_nodes)
		graph->n_nodes++;
	return i;
}

/* Clocks of one kernel: each is a fixed distance from the first of them. */
static void join_kernel(struct graph *graph, struct hash_map *of_kernel,
			const Torsh__FoldRank **rows, size_t i)
{
	const Torsh__FoldRank *row = rows[i], *first;
	size_t k;

	if (!row->has_kernel_clock)
		return;
	k = torsh_hash_map_put(of_kernel, &row->kernel_clock, sizeof(row->kernel_clock), i)->value;
	first = rows[k];
	if (k != i)
		add_edge(graph,
			 &(struct edge){.from = i,
					.to = k,
					.offset_ns =
						(int64_t)(first->clock - first->clock_monotonic_ns -
							  row->clock + row->clock_monotonic_ns),
					.error_ns = READING_NS});
}

static void join_measured(struct graph *graph, const Torsh__FoldRank *row, size_t i)
{
	for (size_t k = 0; k < row->n_clocks; k++) {
		size_t to = node_of(graph, row->clocks[k]->clock);

		if (to != i)
			add_edge(graph,
				 &(struct edge){.from = i,
						.to = to,
						.measured = row->clocks[k],
						.error_ns = typical_error(row->clocks[k]),
						.start_ns = (int64_t)(row->clock -
								      graph->job->origin_ns)});
	}
}

/* By clock, the row that lasts longest: all rows of a recording have its measurements. */
static const Torsh__FoldRank **rows_of_clocks(const struct job *job)
{
	const Torsh__FoldRank **rows = torsh_need_items(NULL, 0, job->n_clocks, sizeof(*rows));

	for (size_t i = 0; i < job->n_ranks; i++) {
		const Torsh__FoldRank **row = &rows[job->ranks[i].clock];

		if (!*row || job->ranks[i].row->duration_ns > (*row)->duration_ns)
			*row = job->ranks[i].row;
	}
	return rows;
}

static void make_edges(struct graph *graph, const Torsh__FoldRank **rows)
{
	struct hash_map of_kernel = {0};

	for (size_t i = 0; i < graph->job->n_clocks; i++)
		torsh_hash_map_put(&graph->of_clock, &rows[i]->clock, sizeof(rows[i]->clock), i);
	graph->n_nodes = graph->job->n_clocks;
	for (size_t i = 0; i < graph->job->n_clocks; i++) {
		join_kernel(graph, &of_kernel, rows, i);
		join_measured(graph, rows[i], i);
	}
	torsh_hash_map_free(&of_kernel);
}

/* ---- ways to clock 0 ------------------------------------------------------------------------- */

static bool relax(struct graph *graph, const struct edge *edge, size_t from, size_t to)
{
	struct node *near = &graph->nodes[to], *far = &graph->nodes[from];

	if (near->error_ns > UINT64_MAX - edge->error_ns ||
	    near->error_ns + edge->error_ns >= far->error_ns)
		return false;
	far->error_ns = near->error_ns + edge->error_ns;
	far->edge = edge;
	return true;
}

/* Bellman and Ford: ways are a few edges long. */
static void find_ways(struct graph *graph)
{
	bool has_changed = true;

	graph->nodes = torsh_need_items(NULL, 0, graph->n_nodes, sizeof(*graph->nodes));
	for (size_t i = 1; i < graph->n_nodes; i++)
		graph->nodes[i].error_ns = UINT64_MAX;
	while (has_changed) {
		has_changed = false;
		for (size_t i = 0; i < graph->n_edges; i++) {
			const struct edge *edge = &graph->edges[i];

			has_changed |= relax(graph, edge, edge->from, edge->to);
			has_changed |= relax(graph, edge, edge->to, edge->from);
		}
	}
}

/* ---- times ----------------------------------------------------------------------------------- */

/* The offset that was measured, and its error, at a time of the clock since the job's origin. */
static int64_t measured_at(const struct edge *edge, int64_t at_ns, uint64_t *error_ns)
{
	const Torsh__FoldClock *measured = edge->measured;
	int64_t from_ns = edge->start_ns + (int64_t)measured->at_step[0], to_ns = from_ns,
		offset_ns = measured->offset_step[0];
	size_t i = 0, n = measured->n_at_step;

	if (at_ns >= from_ns) {
		while (i + 1 < n && to_ns + (int64_t)measured->at_step[i + 1] <= at_ns) {
			to_ns += (int64_t)measured->at_step[++i];
			offset_ns += measured->offset_step[i];
		}
	}
	from_ns = to_ns;
	*error_ns = measured->error_ns[i];
	if (at_ns < from_ns || i + 1 == n) {
		/* Outside of the process's time the clock may drift as much as any. */
		*error_ns += (uint64_t)((double)llabs(at_ns - from_ns) * CLOCK_DRIFT_MAX);
		return offset_ns;
	}
	return offset_ns + (int64_t)((double)measured->offset_step[i + 1] *
				     (double)(at_ns - from_ns) / (double)measured->at_step[i + 1]);
}

/* Moves a time over an edge; error_ns is added to. */
static int64_t over_edge(const struct edge *edge, bool is_forward, int64_t at_ns,
			 uint64_t *error_ns)
{
	uint64_t own_error_ns = edge->error_ns;
	int64_t offset_ns = edge->offset_ns, there_ns = at_ns;

	if (edge->measured)
		offset_ns = measured_at(edge, at_ns, &own_error_ns);
	/* Backwards the time that was measured at is the one to find: offsets change slowly. */
	for (int i = 0; i < 3 && !is_forward; i++) {
		there_ns = at_ns - offset_ns;
		if (edge->measured)
			offset_ns = measured_at(edge, there_ns, &own_error_ns);
	}
	*error_ns += own_error_ns;
	return is_forward ? at_ns + offset_ns : at_ns - offset_ns;
}

/* What to add to a time of a node, to get that of clock 0. */
static int64_t offset_of(const struct graph *graph, size_t node, int64_t at_ns, uint64_t *error_ns)
{
	int64_t time_ns = at_ns;

	*error_ns = 0;
	while (node) {
		const struct edge *edge = graph->nodes[node].edge;
		bool is_forward = edge->from == node;

		time_ns = over_edge(edge, is_forward, time_ns, error_ns);
		node = is_forward ? edge->to : edge->from;
	}
	return time_ns - at_ns;
}

/* ---- points ---------------------------------------------------------------------------------- */

/* The time between the first start and the last end of the clock's ranks. */
static void range_of(const struct job *job, size_t clock, int64_t *from_ns, int64_t *to_ns)
{
	*from_ns = INT64_MAX;
	*to_ns = INT64_MIN;
	for (size_t i = 0; i < job->n_ranks; i++) {
		const Torsh__FoldRank *row = job->ranks[i].row;
		int64_t start_ns = (int64_t)(row->start_ns - job->origin_ns),
			end_ns = (int64_t)(row->start_ns - job->origin_ns + row->duration_ns);

		if (job->ranks[i].clock != clock)
			continue;
		*from_ns = start_ns < *from_ns ? start_ns : *from_ns;
		*to_ns = end_ns > *to_ns ? end_ns : *to_ns;
	}
}

/* Of the line between two points: the largest error at some times, and how far it is off there. */
static uint64_t error_between(const struct graph *graph, size_t node,
			      const struct job_clock_point *from, const struct job_clock_point *to)
{
	uint64_t most_ns = 0;

	for (int i = 0; i <= LOOKS; i++) {
		int64_t at_ns = from->at_ns + (to->at_ns - from->at_ns) / LOOKS * i, line_ns;
		uint64_t error_ns, off_ns;

		line_ns = from->offset_ns + (to->offset_ns - from->offset_ns) / LOOKS * i;
		off_ns = (uint64_t)llabs(offset_of(graph, node, at_ns, &error_ns) - line_ns);
		most_ns = off_ns + error_ns > most_ns ? off_ns + error_ns : most_ns;
	}
	return most_ns;
}

static struct job_clock_point *make_points(const struct graph *graph, size_t node)
{
	struct job_clock_point *points =
		torsh_need_items(NULL, 0, JOB_CLOCK_POINTS, sizeof(*points));
	int64_t from_ns, to_ns;

	range_of(graph->job, node, &from_ns, &to_ns);
	for (size_t i = 0; i < JOB_CLOCK_POINTS; i++) {
		struct job_clock_point *point = &points[i];

		point->at_ns =
			from_ns + (to_ns - from_ns) / ((int64_t)JOB_CLOCK_POINTS - 1) * (int64_t)i;
		point->offset_ns = offset_of(graph, node, point->at_ns, &point->error_ns);
		if (i)
			points[i - 1].error_ns =
				error_between(graph, node, &points[i - 1], &points[i]);
	}
	return points;
}

static bool is_by_probes(const struct graph *graph, size_t node)
{
	while (node) {
		const struct edge *edge = graph->nodes[node].edge;

		if (edge->measured)
			return true;
		node = edge->from == node ? edge->to : edge->from;
	}
	return false;
}

static void set_clock(struct job_clock *clock, const struct graph *graph, size_t node)
{
	const struct job_clock_point *first, *last;

	clock->points = make_points(graph, node);
	first = clock->points;
	last = &clock->points[JOB_CLOCK_POINTS - 1];
	clock->source = is_by_probes(graph, node) ? CLOCK_BY_PROBES : CLOCK_BY_KERNEL;
	clock->has_drift = true;
	clock->drift = last->at_ns > first->at_ns ? (double)(last->offset_ns - first->offset_ns) /
							    (double)(last->at_ns - first->at_ns)
						  : 0;
	clock->offset_ns = first->offset_ns - (int64_t)(clock->drift * (double)first->at_ns);
	clock->error_ns = 0;
}

/* ---- the check ------------------------------------------------------------------------------- */

/*
 * Nobody leaves before the last has entered: of a call that contradicts this by more than the
 * errors, mark the clock of the one that entered, or that of the one that left if it is clock 0's.
 */
static void check_call(const struct job *job, const struct job_call *call, bool *is_contradicted)
{
	const struct job_entry *entries = &job->entries[call->first];
	size_t last = 0, left = 0;
	int64_t entered_ns, left_ns;
	uint64_t error_ns, more_ns;

	for (size_t i = 1; i < call->n; i++) {
		const struct job_entry *of = &entries[i];

		if (torsh_job_time(job, of->rank, of->entered_ns) >
		    torsh_job_time(job, entries[last].rank, entries[last].entered_ns))
			last = i;
		if (torsh_job_time(job, of->rank, of->left_ns) <
		    torsh_job_time(job, entries[left].rank, entries[left].left_ns))
			left = i;
	}
	entered_ns = torsh_job_time(job, entries[last].rank, entries[last].entered_ns);
	left_ns = torsh_job_time(job, entries[left].rank, entries[left].left_ns);
	error_ns = torsh_job_time_error(job, entries[last].rank, entries[last].entered_ns);
	more_ns = torsh_job_time_error(job, entries[left].rank, entries[left].left_ns);
	if (entered_ns <= left_ns || error_ns > INT64_MAX / 2 || more_ns > INT64_MAX / 2 ||
	    entered_ns - left_ns <= (int64_t)(error_ns + more_ns))
		return;
	left = job->ranks[entries[left].rank].clock;
	last = job->ranks[entries[last].rank].clock;
	is_contradicted[last ? last : left] = left != last;
}

/* The largest error of the times that are compared. */
static void take_errors(struct job *job)
{
	for (size_t i = 0; i < job->n_entries; i++) {
		const struct job_entry *entry = &job->entries[i];
		struct job_clock *clock = &job->clocks[job->ranks[entry->rank].clock];
		uint64_t error_ns;

		if (!clock->points)
			continue;
		error_ns = torsh_job_time_error(job, entry->rank, entry->entered_ns);
		clock->error_ns = error_ns > clock->error_ns ? error_ns : clock->error_ns;
	}
	/* Without collectives: over the whole time. */
	for (size_t i = 0; i < job->n_clocks; i++) {
		struct job_clock *clock = &job->clocks[i];

		for (size_t k = 0; clock->points && !job->n_entries && k < JOB_CLOCK_POINTS; k++) {
			if (clock->points[k].error_ns > clock->error_ns)
				clock->error_ns = clock->points[k].error_ns;
		}
	}
}

/* Go back to the collectives' offsets where these contradict. */
static void drop_contradicted(struct job *job, const struct job_clock *by_collectives)
{
	bool *is_contradicted = torsh_need_items(NULL, 0, job->n_clocks, sizeof(bool));

	for (size_t i = 0; i < job->n_calls; i++) {
		if (job->calls[i].joins && job->calls[i].all_end)
			check_call(job, &job->calls[i], is_contradicted);
	}
	for (size_t i = 1; i < job->n_clocks; i++) {
		if (!is_contradicted[i] || !job->clocks[i].points)
			continue;
		free(job->clocks[i].points);
		job->clocks[i] = by_collectives[i];
		job->n_contradicted++;
	}
	free(is_contradicted);
}

void torsh_job_use_probes(struct job *job)
{
	struct graph graph = {.job = job};
	const Torsh__FoldRank **rows;
	struct job_clock *by_collectives;

	if (job->n_clocks < 2)
		return;
	rows = rows_of_clocks(job);
	by_collectives = torsh_need_items(NULL, 0, job->n_clocks, sizeof(*by_collectives));
	memcpy(by_collectives, job->clocks, job->n_clocks * sizeof(*by_collectives));
	make_edges(&graph, rows);
	find_ways(&graph);
	for (size_t i = 1; i < job->n_clocks; i++) {
		if (graph.nodes[i].edge)
			set_clock(&job->clocks[i], &graph, i);
	}
	drop_contradicted(job, by_collectives);
	take_errors(job);
	free(by_collectives);
	free(rows);
	free(graph.nodes);
	free(graph.edges);
	torsh_hash_map_free(&graph.of_clock);
}
