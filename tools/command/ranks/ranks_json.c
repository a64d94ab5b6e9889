/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <math.h>
#include <stdlib.h>

#include "tools/command/ranks/ranks_view.h"

static void put_rank_number(struct json_writer *json, const struct job *job, uint32_t rank)
{
	torsh_json_put_known(json, "rank", job->ranks[rank].row->has_rank, job->ranks[rank].number);
}

static void put_total(struct json_writer *json, const struct job *job, uint32_t rank,
		      const char *name, enum fold_total total)
{
	uint64_t value = 0;
	bool is_known = torsh_job_total(job, rank, total, &value);

	torsh_json_put_known(json, name, is_known, value);
}

static void put_clock(struct json_writer *json, const struct job_clock *clock)
{
	torsh_json_begin_object(json, "clock");
	if (clock->source != CLOCK_IS_UNKNOWN) {
		torsh_json_put_i64(json, "offset_ns", clock->offset_ns);
		if (clock->has_drift)
			torsh_json_put_double(json, "drift_ppm", clock->drift * 1e6);
		else
			torsh_json_put_null(json, "drift_ppm");
		torsh_json_put_u64(json, "error_ns", clock->error_ns);
	} else {
		torsh_json_put_null(json, "offset_ns");
		torsh_json_put_null(json, "drift_ppm");
		torsh_json_put_null(json, "error_ns");
	}
	if (torsh_job_clock_sources[clock->source])
		torsh_json_put_text(json, "source", torsh_job_clock_sources[clock->source]);
	else
		torsh_json_put_null(json, "source");
	torsh_json_end_object(json);
}

static void put_ranks(struct json_writer *json, const struct ranks_view *view)
{
	const struct job *job = view->job;
	size_t n = torsh_ranks_shown(view, job->n_ranks);

	torsh_json_begin_lines(json, "ranks");
	for (uint32_t i = 0; i < n; i++) {
		const Torsh__FoldRank *row = job->ranks[i].row;

		torsh_json_begin_object(json, NULL);
		put_rank_number(json, job, i);
		torsh_json_put_text(json, "host", row->host);
		torsh_json_put_u64(json, "pid", row->pid);
		torsh_json_put_text(json, "program", row->program);
		torsh_json_put_text(json, "device", row->device);
		put_clock(json, &job->clocks[job->ranks[i].clock]);
		torsh_json_put_u64(json, "steps", row->n_steps);
		torsh_json_put_text(json, "step_rule", row->step_rule);
#define TOTAL(name, unit) put_total(json, job, i, #name, FOLD_TOTAL_##name);
#include "tools/ranks/fold/fold_totals.def"
#undef TOTAL
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "omitted_ranks", job->n_ranks - n);
}

static void put_heat(struct json_writer *json, const struct ranks_view *view)
{
	const struct job *job = view->job;

	torsh_json_begin_object(json, "heatmap");
	torsh_json_put_u64(json, "steps_per_bucket", UINT64_C(1) << job->shift);
	torsh_json_begin_array(json, "own_ns");
	for (uint32_t i = 0; i < torsh_ranks_shown(view, job->n_ranks); i++) {
		torsh_json_begin_array(json, NULL);
		for (uint32_t k = 0; k < job->n_buckets; k++)
			torsh_json_put_u64(json, NULL, torsh_ranks_own_ns(job, i, k));
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void put_collectives(struct json_writer *json, const struct ranks_view *view)
{
	struct ranks_collective *items;
	size_t n = torsh_ranks_collectives(view->job, &items);

	torsh_json_begin_lines(json, "collectives");
	for (size_t i = 0; i < torsh_ranks_shown(view, n); i++) {
		const uint64_t *values = items[i].row->values;
		const struct job_bandwidth *bandwidth = items[i].bandwidth;
		const char *backend = view->job->fold->texts[items[i].node->build_id];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", view->job->fold->texts[items[i].node->function]);
		torsh_json_put_text(json, "group", view->job->fold->texts[items[i].node->file]);
		torsh_json_put_text(json, "backend", *backend ? backend : NULL);
		torsh_json_put_u64(json, "bytes", values[FOLD_COLLECTIVES_bytes]);
		torsh_json_put_u64(json, "calls", values[FOLD_COLLECTIVES_calls]);
		torsh_json_put_u64(json, "total_ns", values[FOLD_COLLECTIVES_total_ns]);
		torsh_json_put_u64(json, "exposed_ns", values[FOLD_COLLECTIVES_exposed_ns]);
		torsh_json_put_u64(json, "min_ns", values[FOLD_COLLECTIVES_min_ns]);
		torsh_json_put_u64(json, "max_ns", values[FOLD_COLLECTIVES_max_ns]);
		torsh_json_put_u64(json, "group_size", values[FOLD_COLLECTIVES_group_size]);
		torsh_json_put_double(json, "bus_bytes_per_s",
				      bandwidth ? (double)bandwidth->bytes * 1e9 /
							  (double)bandwidth->transfer_ns
						: NAN);
		torsh_json_put_double(json, "best_bus_bytes_per_s",
				      bandwidth ? bandwidth->best : NAN);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	free(items);
}

static void put_imbalance(struct json_writer *json, const struct job *job)
{
	torsh_json_begin_lines(json, "imbalance");
	for (size_t i = 0; i < torsh_ranks_n_phases; i++) {
		double ratio = torsh_job_imbalance(job, torsh_ranks_phases[i].phase);

		if (ratio < 0)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "phase", torsh_ranks_phases[i].name);
		torsh_json_put_double(json, "ratio", ratio);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void put_causes(struct json_writer *json, const struct job_straggler *straggler)
{
	torsh_json_begin_array(json, "causes");
	for (size_t i = 0; i < straggler->n_causes; i++) {
		const struct job_cause *cause = &straggler->causes[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "kind", torsh_job_cause_names[cause->kind]);
		torsh_json_put_double(json, "share", cause->share);
		torsh_json_put_text(json, "evidence", cause->evidence);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void put_stragglers(struct json_writer *json, const struct ranks_view *view)
{
	const struct job *job = view->job;

	torsh_json_begin_lines(json, "stragglers");
	for (size_t i = 0; i < torsh_ranks_shown(view, job->n_stragglers); i++) {
		const struct job_straggler *straggler = &job->stragglers[i];

		torsh_json_begin_object(json, NULL);
		put_rank_number(json, job, straggler->rank);
		torsh_json_put_u64(json, "times_last", straggler->times_last);
		torsh_json_put_u64(json, "compared", straggler->compared);
		torsh_json_put_u64(json, "cost_ns", straggler->cost_ns);
		torsh_json_put_u64(json, "waited_ns", straggler->waited_ns);
		torsh_json_put_double(json, "share", straggler->share);
		put_causes(json, straggler);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void put_path(struct json_writer *json, const struct ranks_view *view)
{
	const struct job *job = view->job;

	torsh_json_begin_object(json, "critical_path");
	torsh_json_put_u64(json, "ns", job->compared_ns);
	torsh_json_put_u64(json, "communication_ns", job->communicated_ns);
	torsh_json_begin_array(json, "ranks");
	for (size_t i = 0; i < torsh_ranks_shown(view, job->n_path); i++) {
		torsh_json_begin_object(json, NULL);
		put_rank_number(json, job, job->path[i].rank);
		torsh_json_put_u64(json, "ns", job->path[i].ns);
		torsh_json_put_u64(json, "collectives", job->path[i].calls);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void put_memory(struct json_writer *json, const struct ranks_view *view)
{
	const struct job *job = view->job;
	const char *reason;
	size_t first = torsh_ranks_first_out(job, &reason);

	torsh_json_begin_lines(json, "memory");
	for (uint32_t i = 0; i < torsh_ranks_shown(view, job->n_ranks); i++) {
		struct job_memory memory;

		torsh_job_memory(job, i, &memory);
		torsh_json_begin_object(json, NULL);
		put_rank_number(json, job, i);
		torsh_json_put_known(json, "peak_bytes", memory.of, memory.peak_bytes);
		torsh_json_put_text(json, "of", memory.of);
		torsh_json_put_known(json, "capacity_bytes", memory.has_capacity,
				     memory.capacity_bytes);
		torsh_json_put_double(json, "growth_bytes_per_step",
				      memory.has_growth ? memory.growth : NAN);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_begin_object(json, "first_out_of_memory");
	if (first == SIZE_MAX)
		torsh_json_put_null(json, "rank");
	else
		put_rank_number(json, job, (uint32_t)first);
	torsh_json_put_text(json, "reason", first == SIZE_MAX ? reason : NULL);
	torsh_json_end_object(json);
}

void torsh_ranks_put_json(struct json_writer *json, const struct ranks_view *view)
{
	const struct job *job = view->job;

	torsh_json_put_u64(json, "version", 1);
	torsh_json_put_known(json, "world_size", job->world_size, job->world_size);
	torsh_json_put_u64(json, "collectives_recorded", job->n_collectives);
	torsh_json_put_u64(json, "collectives_compared", job->n_verdicts);
	torsh_json_put_u64(json, "collectives_undecided", job->n_ties);
	torsh_json_put_u64(json, "compared_ns", job->compared_ns);
	torsh_json_put_u64(json, "other_processes_of_ranks", job->n_twins);
	put_ranks(json, view);
	put_heat(json, view);
	put_collectives(json, view);
	put_imbalance(json, job);
	put_stragglers(json, view);
	torsh_ranks_outliers_json(json, view);
	put_path(json, view);
	put_memory(json, view);
	if (view->traces)
		torsh_ranks_breakdown_json(json, view);
}

void torsh_ranks_json(const struct ranks_view *view)
{
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_ranks_put_json(&json, view);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
