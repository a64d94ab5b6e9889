/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/export/export_stacks.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/export/output.h"
#include "tools/export/stacks/merged_stacks.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/memory/peak.h"
#include "tools/recording/progress.h"

/* Samples of one process, one per stack with a weight. */
struct samples {
	struct export_sample *items;
	size_t n, n_room;
	uint32_t *by_stack; /* index + 1 */
	size_t n_by_stack;
};

/* Reserve a stack's entry: views add stacks. */
static void make_room(struct samples *samples, uint32_t stack)
{
	samples->by_stack = torsh_array_extend(samples->by_stack, (size_t)stack + 1,
					       &samples->n_by_stack, sizeof(*samples->by_stack));
}

static void weigh(struct samples *samples, const struct allocation_sites *sites,
		  enum export_weight weight)
{
	for (size_t i = 0; i < sites->n; i++) {
		const struct allocation_site *site = &sites->items[i];
		uint32_t *index;

		make_room(samples, site->stack);
		index = &samples->by_stack[site->stack];
		if (!*index) {
			samples->items =
				torsh_array_reserve(samples->items, samples->n, &samples->n_room,
						    sizeof(*samples->items));
			samples->items[samples->n++] = (struct export_sample){
				.process = site->process, .stack = site->stack};
			*index = (uint32_t)samples->n;
		}
		samples->items[*index - 1].values[weight].blocks += site->blocks;
		samples->items[*index - 1].values[weight].bytes += site->bytes;
	}
}

/* peak_of: SITES_PEAK or SITES_SESSION_PEAK */
static void weigh_process(struct samples *samples, struct recorded_process *process,
			  enum sites_of peak_of, const struct export *export,
			  struct read_options *options)
{
	const struct {
		enum export_weight weight;
		enum sites_of of;
	} plain[] = {
		{EXPORT_PEAK, peak_of},
		{EXPORT_ALLOCATED, SITES_ALLOCATED},
		{EXPORT_TEMPORARY, SITES_TEMPORARY},
	};

	if (torsh_export_has(export, EXPORT_LEAKED)) {
		/* Other programs merge stacks themselves. */
		struct leaks leaks = {.found = {.view = options->view, .is_unmerged = true}};

		torsh_leaks_find(&leaks, &process, 1, export->symbols, &options->suppress);
		weigh(samples, &leaks.found, EXPORT_LEAKED);
		torsh_leaks_free(&leaks);
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		struct allocation_sites sites = {.view = options->view};

		if (!torsh_export_has(export, plain[i].weight))
			continue;
		torsh_sites_collect(&sites, process, plain[i].of);
		torsh_sites_merge_stacks(&sites, export->symbols);
		weigh(samples, &sites, plain[i].weight);
		torsh_sites_free(&sites);
	}
}

/* Write the samples unmerged, with all their addresses. */
static void write_samples(struct export *export, const struct samples *samples)
{
	uint32_t *addresses = NULL;
	size_t n_room = 0;
	struct progress progress;

	torsh_progress_start(&progress, "exporting", samples->n);
	for (size_t i = 0; i < samples->n; i++) {
		struct export_sample sample = samples->items[i];

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
}

static void write_folded(struct export *export, const struct samples *samples,
			 const struct export_value *totals)
{
	struct folded_samples folded;

	torsh_samples_fold(&folded, samples->items, samples->n, totals, export->symbols);
	for (size_t i = 0; i < folded.n; i++)
		export->exporter->sample(export, &folded.items[i]);
	torsh_samples_fold_free(&folded);
}

static void add_totals(struct export_value *totals, const struct samples *samples)
{
	for (size_t i = 0; i < samples->n; i++) {
		for (unsigned k = 0; k < N_EXPORT_WEIGHTS; k++) {
			totals[k].blocks += samples->items[i].values[k].blocks;
			totals[k].bytes += samples->items[i].values[k].bytes;
		}
	}
}

static int write_all(struct export *export, const struct reading *reading,
		     struct read_options *options, bool is_all)
{
	struct peak peak =
		torsh_peak_choose(reading->recording, reading->processes, reading->n_processes);
	enum sites_of peak_of = peak.process ? SITES_PEAK : SITES_SESSION_PEAK;
	size_t n = reading->n_processes;
	struct samples *samples = torsh_need_items(NULL, 0, n, sizeof(*samples));
	struct export_value totals[N_EXPORT_WEIGHTS] = {{0}};

	for (size_t i = 0; i < n; i++) {
		weigh_process(&samples[i], reading->processes[i], peak_of, export, options);
		add_totals(totals, &samples[i]);
	}
	export->exporter->begin(export);
	for (size_t i = 0; i < n; i++) {
		if (is_all)
			write_samples(export, &samples[i]);
		else
			write_folded(export, &samples[i], totals);
		free(samples[i].items);
		free(samples[i].by_stack);
	}
	free(samples);
	return export->exporter->end(export);
}

void torsh_stacks_export(const struct stacks_export *own, const struct reading *reading,
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
