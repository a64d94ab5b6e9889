/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/export/export_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/cpu/cpu_samples.h"
#include "tools/export/output.h"
#include "tools/export/stacks/merged_stacks.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/memory/peak.h"
#include "tools/recording/progress.h"

/* Who weighs: the sites of one process, one after the other. */
struct weigher {
	struct weighed_stacks *stacks;
	struct symbols *symbols;
	enum stack_view view;
	enum export_weight weight;
};

static void weigh(const struct allocation_site *site, void *context)
{
	const struct weigher *weigher = context;
	/* The view only appends to the process's table of stacks. */
	uint32_t shown = torsh_stack_view((struct recorded_process *)site->process, site->stack,
					  weigher->symbols, weigher->view);

	torsh_weighed_stacks_add(weigher->stacks, shown, weigher->weight, site->blocks,
				 site->bytes);
}

/* Other programs merge stacks themselves. */
static void weigh_leaks(struct weigher *weigher, struct recorded_process *process,
			struct suppress *suppress)
{
	struct leaks leaks = {.found = {.view = weigher->view, .is_unmerged = true}};

	torsh_leaks_find(&leaks, &process, 1, weigher->symbols, suppress);
	for (size_t i = 0; i < leaks.found.n; i++)
		torsh_weighed_stacks_add(weigher->stacks, leaks.found.items[i].stack, EXPORT_LEAKED,
					 leaks.found.items[i].blocks, leaks.found.items[i].bytes);
	torsh_leaks_free(&leaks);
	torsh_symbols_close_files(weigher->symbols);
}

/* The samples of processor time of all processes, if they are exported. */
struct cpu_weights {
	bool is_there;
	struct prepass prepass;
	struct cpu_samples samples;
};

static void collect_cpu(struct cpu_weights *cpu, const struct export *export,
			struct reading *reading, const struct read_options *options)
{
	*cpu = (struct cpu_weights){.is_there = torsh_export_has(export, EXPORT_CPU)};
	if (!cpu->is_there)
		return;
	torsh_reading_prepass(&cpu->prepass, reading, options);
	torsh_cpu_samples_collect(&cpu->samples, reading->recording, reading->processes,
				  reading->n_processes, &cpu->prepass);
	if (!cpu->samples.n_samples)
		torsh_warn("no samples of processor time were recorded: torsh run --cpu");
}

static void free_cpu(struct cpu_weights *cpu)
{
	if (!cpu->is_there)
		return;
	torsh_cpu_samples_free(&cpu->samples);
	torsh_prepass_free(&cpu->prepass);
}

static void weigh_cpu(const struct weigher *weigher, const struct recorded_process *process,
		      const struct cpu_samples *samples)
{
	for (size_t i = 0; i < samples->n; i++) {
		const struct cpu_row *row = &samples->rows[i];

		if (row->process != process)
			continue;
		torsh_weighed_stacks_add(
			weigher->stacks,
			torsh_stack_view(row->process, row->stack, weigher->symbols, weigher->view),
			EXPORT_CPU, row->n, row->ns);
	}
}

/* peak_of: SITES_PEAK or SITES_SESSION_PEAK */
static void weigh_process(struct weighed_stacks *stacks, struct recorded_process *process,
			  enum sites_of peak_of, const struct export *export,
			  struct read_options *options, const struct cpu_weights *cpu)
{
	const struct {
		enum export_weight weight;
		enum sites_of of;
	} plain[] = {
		{EXPORT_PEAK, peak_of},
		{EXPORT_ALLOCATED, SITES_ALLOCATED},
		{EXPORT_TEMPORARY, SITES_TEMPORARY},
	};
	struct weigher weigher = {
		.stacks = stacks, .symbols = export->symbols, .view = options->view};

	torsh_weighed_stacks_create(stacks, process);
	if (torsh_export_has(export, EXPORT_LEAKED))
		weigh_leaks(&weigher, process, &options->suppress);
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		weigher.weight = plain[i].weight;
		if (torsh_export_has(export, plain[i].weight))
			torsh_sites_each(process, plain[i].of, weigh, &weigher);
	}
	if (cpu->is_there)
		weigh_cpu(&weigher, process, &cpu->samples);
	torsh_weighed_stacks_end(stacks);
}

/* Returns the weights of the stacks, by number and weight; the caller frees them. */
static struct export_value *unpack(const struct weighed_stacks *stacks)
{
	struct export_value *values =
		torsh_need_items(NULL, 0, stacks->n, N_EXPORT_WEIGHTS * sizeof(*values));

	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		struct usage_at at = {0};

		while (torsh_usage_list_next(&stacks->weights[i], &at)) {
			values[at.number * N_EXPORT_WEIGHTS + i].blocks += at.blocks;
			values[at.number * N_EXPORT_WEIGHTS + i].bytes += at.bytes;
		}
	}
	return values;
}

/* Write the stacks unmerged, with all their addresses. */
static void write_stacks(struct export *export, const struct weighed_stacks *stacks)
{
	struct export_value *values = unpack(stacks);
	uint32_t *addresses = NULL;
	size_t n_room = 0;
	struct progress progress;

	torsh_progress_start(&progress, "exporting", stacks->n);
	for (size_t i = 0; i < stacks->n; i++) {
		struct export_sample sample = {.process = stacks->process,
					       .stack = stacks->items[i]};

		memcpy(sample.values, values + i * N_EXPORT_WEIGHTS, sizeof(sample.values));
		sample.n_addresses = torsh_recording_walk(sample.process, sample.stack, NULL, 0);
		addresses = torsh_array_extend(addresses, sample.n_addresses, &n_room,
					       sizeof(*addresses));
		torsh_recording_walk(sample.process, sample.stack, addresses, sample.n_addresses);
		sample.addresses = addresses;
		export->exporter->sample(export, &sample);
		torsh_progress_show(&progress, i);
	}
	torsh_progress_end(&progress);
	free(addresses);
	free(values);
}

static void write_folded(struct export *export, const struct weighed_stacks *stacks,
			 const struct export_value *totals)
{
	struct folded_samples folded;

	torsh_samples_fold(&folded, stacks, totals, export->symbols);
	for (size_t i = 0; i < folded.n; i++)
		export->exporter->sample(export, &folded.items[i]);
	torsh_samples_fold_free(&folded);
}

static int write_all(struct export *export, struct reading *reading, struct read_options *options,
		     bool is_all)
{
	struct peak peak =
		torsh_peak_choose(reading->recording, reading->processes, reading->n_processes);
	enum sites_of peak_of = peak.process ? SITES_PEAK : SITES_SESSION_PEAK;
	size_t n = reading->n_processes;
	struct weighed_stacks *stacks = torsh_need_items(NULL, 0, n, sizeof(*stacks));
	struct export_value totals[N_EXPORT_WEIGHTS] = {{0}};
	struct cpu_weights cpu;

	collect_cpu(&cpu, export, reading, options);
	for (size_t i = 0; i < n; i++) {
		weigh_process(&stacks[i], reading->processes[i], peak_of, export, options, &cpu);
		torsh_weighed_stacks_sum(&stacks[i], totals);
	}
	free_cpu(&cpu);
	/* No other stack is shown. */
	torsh_reading_end_views(reading);
	export->exporter->begin(export);
	for (size_t i = 0; i < n; i++) {
		if (is_all)
			write_stacks(export, &stacks[i]);
		else
			write_folded(export, &stacks[i], totals);
		torsh_weighed_stacks_free(&stacks[i]);
	}
	free(stacks);
	return export->exporter->end(export);
}

void torsh_stacks_export(const struct stacks_export *own, struct reading *reading,
			 struct read_options *options)
{
	struct export export = {
		.exporter = own->exporter,
		.what = own->has_what ? own->what : own->exporter->default_what,
		.recording = reading->recording,
		.symbols = reading->symbols,
		.n_processes = reading->n_processes,
	};
	struct output output;

	torsh_output_open(&output, own->output);
	export.file = output.file;
	torsh_output_close(&output, write_all(&export, reading, options, own->is_all));
}
