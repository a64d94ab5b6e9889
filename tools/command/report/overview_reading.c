/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/report/overview_reading.h"

void torsh_overview_read(struct overview_reading *of, struct read_options *options, size_t n_leaks)
{
	struct overview *overview = &of->overview;
	struct reading *reading = &of->reading;

	*of = (struct overview_reading){.overview.path = options->path};
	torsh_reading_open(reading, options);
	overview->recording = reading->recording;
	overview->processes = reading->processes;
	overview->n_processes = reading->n_processes;
	overview->highest =
		torsh_peak_choose(reading->recording, reading->processes, reading->n_processes);
	overview->unfollowed = reading->unfollowed;
	overview->n_unfollowed = reading->n_unfollowed;
	overview->suppress = &options->suppress;
	overview->symbols = reading->symbols;
	overview->leaks.found.depth = overview->peak.depth = overview->temporary.depth =
		options->depth;
	overview->leaks.found.view = overview->peak.view = overview->temporary.view = options->view;
	torsh_leaks_find(&overview->leaks, reading->processes, reading->n_processes,
			 reading->symbols, &options->suppress);
	overview->n_leaks =
		torsh_options_choose(options, &overview->leaks.found, reading->symbols, n_leaks);
}

void torsh_overview_read_lists(struct overview_reading *of, struct read_options *options, size_t n)
{
	struct overview *overview = &of->overview;
	struct reading *reading = &of->reading;
	const struct sites_source peak = torsh_peak_source(&overview->highest, reading->recording),
				  temporary = {
					  .processes = reading->processes,
					  .n_processes = reading->n_processes,
					  .what = SITES_TEMPORARY,
				  };
	enum sites_order order = options->order;

	torsh_options_collect(options, &overview->peak, &peak, false, reading->symbols);
	/* The number of temporary blocks matters more than their size. */
	options->order = ORDER_BLOCKS;
	torsh_options_collect(options, &overview->temporary, &temporary, false, reading->symbols);
	torsh_reading_end_views(reading);
	overview->n_temporary =
		torsh_options_choose(options, &overview->temporary, reading->symbols, n);
	options->order = order;
	overview->n_peak = torsh_options_choose(options, &overview->peak, reading->symbols, n);
}

void torsh_overview_read_timeline(struct overview_reading *of, const struct read_options *options,
				  bool with_findings)
{
	struct reading *reading = &of->reading;

	of->overview.has_timeline = true;
	torsh_reading_prepass(&of->prepass, reading, options);
	torsh_overview_devices_collect(&of->overview.devices, reading->recording,
				       reading->processes, reading->n_processes, &of->prepass,
				       reading->symbols);
	if (!with_findings)
		return;
	of->request = (struct analysis_request){.recording = reading->recording,
						.processes = reading->processes,
						.n_processes = reading->n_processes,
						.prepass = &of->prepass,
						.to_ns = UINT64_MAX};
	torsh_analysis_make(&of->overview.analysis, &of->request);
}

void torsh_overview_read_path(struct overview_reading *of, const struct critical_steps *chosen)
{
	struct reading *reading = &of->reading;

	torsh_critical_find(&of->overview.critical, reading->recording, reading->processes,
			    reading->n_processes, &of->prepass, chosen);
	torsh_bottlenecks_find(&of->overview.bottlenecks, &of->overview.critical, reading->symbols);
}

const struct prepass *torsh_overview_prepass(const struct overview_reading *of)
{
	return of->overview.has_timeline ? &of->prepass : NULL;
}

void torsh_overview_close(struct overview_reading *of, struct read_options *options)
{
	torsh_bottlenecks_free(&of->overview.bottlenecks);
	torsh_critical_free(&of->overview.critical);
	torsh_analysis_free(&of->overview.analysis);
	torsh_overview_devices_free(&of->overview.devices);
	if (of->overview.has_timeline)
		torsh_prepass_free(&of->prepass);
	torsh_leaks_free(&of->overview.leaks);
	torsh_sites_free(&of->overview.peak);
	torsh_sites_free(&of->overview.temporary);
	torsh_reading_close(&of->reading, options);
}
