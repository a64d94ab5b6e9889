/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/ranks/ranks_view.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define N(array) (sizeof(array) / sizeof(*(array)))
#define LEAST_SHOWN_IMBALANCE 0.005

static void print_heading(const struct job *job)
{
	char ranks[SIZE_TEXT_BYTES], clocks[SIZE_TEXT_BYTES], calls[SIZE_TEXT_BYTES],
		compared[SIZE_TEXT_BYTES], ties[SIZE_TEXT_BYTES], twins[SIZE_TEXT_BYTES];
	uint32_t n_steps = 0;

	for (size_t i = 0; i < job->n_ranks; i++)
		n_steps =
			job->ranks[i].row->n_steps > n_steps ? job->ranks[i].row->n_steps : n_steps;
	torsh_size_counted(job->n_ranks, "rank", ranks);
	if (job->world_size && job->world_size != job->n_ranks)
		torsh_text_heading(stdout, "%s of %" PRIu32 " in %s, %" PRIu32 " steps", ranks,
				   job->world_size,
				   torsh_size_counted(job->n_clocks, "recording", clocks), n_steps);
	else
		torsh_text_heading(stdout, "%s in %s, %" PRIu32 " steps", ranks,
				   torsh_size_counted(job->n_clocks, "recording", clocks), n_steps);
	printf("%s of all ranks, %s compared",
	       torsh_size_counted(job->n_collectives, "collective", calls),
	       torsh_size_grouped(job->n_verdicts, compared));
	if (job->n_ties)
		printf(", %s undecided: the ranks' clocks are not known so exactly",
		       torsh_size_grouped(job->n_ties, ties));
	putchar('\n');
	if (job->n_contradicted)
		printf("%s: collectives contradict the exchanges of times, which are not used\n",
		       torsh_size_counted(job->n_contradicted, "clock", ties));
	if (job->n_twins)
		printf("%s of a rank that another process has too: that with fewer collectives is left out\n",
		       torsh_size_counted(job->n_twins, "process", twins));
}

/* ---- stragglers ------------------------------------------------------------------------------ */

static void print_straggler(const struct job *job, const struct job_straggler *straggler)
{
	char cost[SIZE_TEXT_BYTES], waited[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];

	printf("Rank %" PRIu32 " was last in %" PRIu64 " of %" PRIu64
	       " collectives: the job was %s (%s) later, the others waited %s\n",
	       job->ranks[straggler->rank].number, straggler->times_last, straggler->compared,
	       torsh_size_duration(straggler->cost_ns, cost),
	       torsh_size_percent(straggler->share, 1, share),
	       torsh_size_duration(straggler->waited_ns, waited));
	for (size_t i = 0; i < straggler->n_causes; i++) {
		const struct job_cause *cause = &straggler->causes[i];

		printf("  %s of that: %s (%s)\n", torsh_size_percent(cause->share, 1, share),
		       torsh_job_cause_texts[cause->kind], cause->evidence);
	}
}

static void print_stragglers(const struct ranks_view *view)
{
	const struct job *job = view->job;
	size_t n = torsh_ranks_shown(view, job->n_stragglers);

	putchar('\n');
	if (!job->n_verdicts) {
		puts("Stragglers: not known, because no collective of two ranks was recorded");
		return;
	}
	torsh_text_heading(stdout, "%s",
			   job->n_stragglers ? "Stragglers"
					     : "No stragglers: no rank is last more than by turns");
	for (size_t i = 0; i < n; i++)
		print_straggler(job, &job->stragglers[i]);
	torsh_text_more(stdout, job->n_stragglers - n);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static const struct table_column rank_columns[] = {
	{"rank", TABLE_NUMBER, .drop = 0},	    {"host", TABLE_NAME, .cut = CUT_MIDDLE},
	{"step", TABLE_NUMBER, .drop = 0},	    {"compute", TABLE_NUMBER, .drop = 3},
	{"data", TABLE_NUMBER, .drop = 5},	    {"gc", TABLE_NUMBER, .drop = 6},
	{"communication", TABLE_NUMBER, .drop = 2}, {"exposed", TABLE_NUMBER, .drop = 0},
	{"memory", TABLE_NUMBER, .drop = 4},	    {"device", TABLE_NAME, .drop = 9},
	{"clock error", TABLE_NUMBER, .drop = 7},   {"clock by", TABLE_NAME, .drop = 8},
};

static void put_of_step(struct table *table, const struct job *job, uint32_t rank,
			enum fold_phase phase)
{
	uint64_t n = torsh_job_phase_sum(job, rank, FOLD_PHASE_steps);

	if (n)
		torsh_table_time(table, torsh_job_phase_sum(job, rank, phase) / n);
	else
		torsh_table_unknown(table);
}

static void put_rank(struct table *table, const struct job *job, uint32_t rank)
{
	static const enum fold_phase phases[] = {
		FOLD_PHASE_wall_ns, FOLD_PHASE_compute_ns,	 FOLD_PHASE_data_ns,
		FOLD_PHASE_gc_ns,   FOLD_PHASE_communication_ns, FOLD_PHASE_exposed_ns};
	const struct job_clock *clock = &job->clocks[job->ranks[rank].clock];
	struct job_memory memory;

	torsh_table_cell(table, "%" PRIu32, job->ranks[rank].number);
	torsh_table_cell(table, "%s", clock->host);
	for (size_t i = 0; i < N(phases); i++)
		put_of_step(table, job, rank, phases[i]);
	torsh_job_memory(job, rank, &memory);
	if (memory.of)
		torsh_table_bytes(table, memory.peak_bytes);
	else
		torsh_table_unknown(table);
	if (job->ranks[rank].row->device)
		torsh_table_cell(table, "%s", job->ranks[rank].row->device);
	else
		torsh_table_unknown(table);
	if (clock->source != CLOCK_IS_UNKNOWN)
		torsh_table_time(table, clock->error_ns);
	else
		torsh_table_unknown(table);
	if (torsh_job_clock_sources[clock->source])
		torsh_table_cell(table, "%s", torsh_job_clock_sources[clock->source]);
	else
		torsh_table_unknown(table);
}

static bool has_devices(const struct job *job)
{
	for (size_t i = 0; i < job->n_ranks; i++) {
		if (job->ranks[i].row->device)
			return true;
	}
	return false;
}

static void print_ranks(const struct ranks_view *view)
{
	const struct job *job = view->job;
	size_t n = torsh_ranks_shown(view, job->n_ranks);
	struct table *table = torsh_table_create(rank_columns, N(rank_columns));

	putchar('\n');
	torsh_text_heading(stdout, "Each rank, on average of a step");
	if (job->n_clocks < 2) {
		torsh_table_hide(table, N(rank_columns) - 2);
		torsh_table_hide(table, N(rank_columns) - 1);
	}
	if (!has_devices(job))
		torsh_table_hide(table, N(rank_columns) - 3);
	for (uint32_t i = 0; i < n; i++)
		put_rank(table, job, i);
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, job->n_ranks - n);
}

/* ---- heat map -------------------------------------------------------------------------------- */

static const char *shade(uint64_t value, uint64_t most)
{
	static const char *const shades[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

	if (!value)
		return " ";
	return shades[value >= most ? N(shades) - 1 : value * N(shades) / most];
}

static void print_heat(const struct ranks_view *view)
{
	const struct job *job = view->job;
	size_t n = torsh_ranks_shown(view, job->n_ranks);
	char text[SIZE_TEXT_BYTES];
	uint64_t most = 0;

	for (uint32_t i = 0; i < job->n_ranks; i++) {
		for (uint32_t k = 0; k < job->n_buckets; k++) {
			uint64_t ns = torsh_ranks_own_ns(job, i, k);

			most = ns > most ? ns : most;
		}
	}
	if (!most)
		return;
	putchar('\n');
	torsh_text_heading(stdout,
			   "Ranks by steps: time of a step without exposed communication, up to %s",
			   torsh_size_duration(most, text));
	for (uint32_t i = 0; i < n; i++) {
		printf("%6" PRIu32 " ", job->ranks[i].number);
		for (uint32_t k = 0; k < job->n_buckets; k++)
			fputs(shade(torsh_ranks_own_ns(job, i, k), most), stdout);
		putchar('\n');
	}
	if (job->shift)
		printf("       a column is %u steps\n", 1u << job->shift);
}

/* ---- collectives ----------------------------------------------------------------------------- */

static const struct table_column collective_columns[] = {
	{"collective", TABLE_NAME, .cut = CUT_MIDDLE},
	{"group", TABLE_TEXT, .drop = 4},
	{"backend", TABLE_TEXT, .drop = 5},
	{"calls", TABLE_NUMBER, .drop = 0},
	{"each", TABLE_NUMBER, .drop = 1},
	{"time", TABLE_NUMBER, .drop = 2},
	{"exposed", TABLE_NUMBER, .drop = 0},
	{"bus", TABLE_NUMBER, .drop = 1},
	{"best", TABLE_NUMBER, .drop = 3},
};

static void put_rate(struct table *table, bool is_known, double rate)
{
	char text[SIZE_TEXT_BYTES];

	if (is_known)
		torsh_table_cell(table, "%sB/s", torsh_size_si((uint64_t)rate, text));
	else
		torsh_table_unknown(table);
}

static void put_backend(struct table *table, const char *backend)
{
	if (*backend)
		torsh_table_cell(table, "%s", backend);
	else
		torsh_table_unknown(table);
}

static void print_collectives(const struct ranks_view *view)
{
	const struct job *job = view->job;
	struct ranks_collective *items;
	size_t n = torsh_ranks_collectives(job, &items), n_shown = torsh_ranks_shown(view, n);
	struct table *table = torsh_table_create(collective_columns, N(collective_columns));

	putchar('\n');
	torsh_text_heading(stdout, "Collectives of all ranks");
	for (size_t i = 0; i < n_shown; i++) {
		const uint64_t *values = items[i].row->values;
		const struct job_bandwidth *row = items[i].bandwidth;

		torsh_table_cell(table, "%s", job->fold->texts[items[i].node->function]);
		torsh_table_cell(table, "%s", job->fold->texts[items[i].node->file]);
		put_backend(table, job->fold->texts[items[i].node->build_id]);
		torsh_table_count(table, values[FOLD_COLLECTIVES_calls]);
		torsh_table_bytes(table, values[FOLD_COLLECTIVES_calls]
						 ? values[FOLD_COLLECTIVES_bytes] /
							   values[FOLD_COLLECTIVES_calls]
						 : 0);
		torsh_table_time(table, values[FOLD_COLLECTIVES_total_ns]);
		torsh_table_time(table, values[FOLD_COLLECTIVES_exposed_ns]);
		put_rate(table, row, row ? (double)row->bytes * 1e9 / (double)row->transfer_ns : 0);
		put_rate(table, row, row ? row->best : 0);
	}
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, n - n_shown);
	free(items);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void print_imbalance(const struct job *job)
{
	const char *before = "\nLoad imbalance, (most - mean) / most: ";

	for (size_t i = 0; i < torsh_ranks_n_phases; i++) {
		double ratio = torsh_job_imbalance(job, torsh_ranks_phases[i].phase);
		char text[SIZE_TEXT_BYTES];

		if (ratio < LEAST_SHOWN_IMBALANCE)
			continue;
		printf("%s%s %s", before, torsh_ranks_phases[i].name,
		       torsh_size_percent(ratio, 1, text));
		before = ", ";
	}
	if (before[0] == ',')
		putchar('\n');
}

static void print_path(const struct ranks_view *view)
{
	const struct job *job = view->job;
	size_t n = torsh_ranks_shown(view, job->n_path);
	char ns[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];

	if (!job->compared_ns)
		return;
	printf("\nCritical path through the compared collectives, %s: transfers %s",
	       torsh_size_duration(job->compared_ns, ns),
	       torsh_size_percent((double)job->communicated_ns, (double)job->compared_ns, share));
	for (size_t i = 0; i < n; i++)
		printf(", rank %" PRIu32 " %s", job->ranks[job->path[i].rank].number,
		       torsh_size_percent((double)job->path[i].ns, (double)job->compared_ns,
					  share));
	puts(n < job->n_path ? ", ..." : "");
}

static void print_memory(const struct job *job)
{
	const char *reason;
	size_t first = torsh_ranks_first_out(job, &reason), largest = torsh_ranks_largest(job);
	char bytes[SIZE_TEXT_BYTES];
	struct job_memory memory;

	if (first != SIZE_MAX) {
		torsh_job_memory(job, (uint32_t)first, &memory);
		printf("Memory: rank %" PRIu32
		       " runs out first, in about %.0f steps, if it grows on\n",
		       job->ranks[first].number, memory.steps_left);
		return;
	}
	if (largest == SIZE_MAX)
		return;
	torsh_job_memory(job, (uint32_t)largest, &memory);
	printf("Memory: rank %" PRIu32
	       " has most, %s (%s); which one runs out first is not known: %s\n",
	       job->ranks[largest].number, torsh_size_human(memory.peak_bytes, bytes), memory.of,
	       reason);
}

void torsh_ranks_text(const struct ranks_view *view)
{
	if (view->traces) {
		torsh_ranks_breakdown_text(view);
		if (!view->job->n_collectives)
			return;
		putchar('\n');
	}
	print_heading(view->job);
	print_stragglers(view);
	torsh_ranks_outliers_text(view);
	print_ranks(view);
	print_heat(view);
	print_collectives(view);
	print_imbalance(view->job);
	print_path(view);
	print_memory(view->job);
}
