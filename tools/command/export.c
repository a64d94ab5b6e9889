/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh export: a recording's stacks for other programs. The formats are in tools/export/. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/die.h"
#include "tools/export/exporter.h"
#include "tools/profile/leaks.h"
#include "tools/profile/peak.h"
#include "tools/profile/progress.h"

static const char doc[] = "Write a recording's stacks for flame graph tools (folded), https://www.speedscope.app "
			  "(speedscope) or `go tool pprof` (pprof).\v"
			  "Weights are bytes that the program asked for. speedscope and pprof files hold all weights "
			  "unless --what names one; folded has the leaked bytes by default. The peak is that of all processes "
			  "together, unless --pid or --rank choose some: then each one's own.";

enum { KEY_FORMAT = 0x2000, KEY_WHAT };

static const struct argp_option own_options[] = {
	{"format", KEY_FORMAT, "FORMAT", 0, "folded, speedscope or pprof", 0},
	{"what", KEY_WHAT, "WHAT", 0, "leaked, peak, allocated or temporary", 0},
	{"output", 'o', "FILE", 0, "write there instead of to standard output", 0},
	{0},
};

static const struct exporter *const exporters[] = {
	&torsh_export_folded,
	&torsh_export_speedscope,
	&torsh_export_pprof,
};

struct export_options {
	const struct exporter *exporter;
	const char *output;
	bool has_what;
	unsigned what;
};

static void parse_format(struct export_options *options, const char *argument, struct argp_state *state)
{
	for (size_t i = 0; i < sizeof(exporters) / sizeof(*exporters); i++) {
		if (strcmp(exporters[i]->name, argument) == 0)
			options->exporter = exporters[i];
	}
	if (!options->exporter)
		argp_error(state, "--format takes folded, speedscope or pprof, not \"%s\"", argument);
}

static void parse_what(struct export_options *options, const char *argument, struct argp_state *state)
{
	for (unsigned i = 0; i < N_EXPORT_WEIGHTS; i++) {
		if (strcmp(torsh_export_weight_names[i], argument) == 0) {
			options->what = i;
			options->has_what = true;
			return;
		}
	}
	argp_error(state, "--what takes leaked, peak, allocated or temporary, not \"%s\"", argument);
}

static error_t parse_export(int key, char *argument, struct argp_state *state)
{
	struct export_options *options = state->input;

	switch (key) {
	case KEY_FORMAT:
		parse_format(options, argument, state);
		return 0;
	case KEY_WHAT:
		parse_what(options, argument, state);
		return 0;
	case 'o':
		options->output = argument;
		return 0;
	case ARGP_KEY_END:
		if (!options->exporter)
			argp_error(state, "--format is missing: folded, speedscope or pprof");
		return ARGP_ERR_UNKNOWN;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Samples of one process, one for each stack that weighs something. */
struct samples {
	struct export_sample *items;
	size_t n, n_room;
	uint32_t *by_stack; /* index + 1 */
	size_t n_by_stack;
};

/* Room for a stack's index: views add stacks. */
static void make_room(struct samples *samples, uint32_t stack)
{
	size_t n = samples->n_by_stack;

	if (stack < n)
		return;
	while (stack >= n)
		n = n ? n * 2 : 64;
	samples->by_stack = torsh_need_items(samples->by_stack, samples->n_by_stack, n, sizeof(*samples->by_stack));
	samples->n_by_stack = n;
}

static void weigh(struct samples *samples, const struct holders *holders, enum export_weight weight)
{
	for (size_t i = 0; i < holders->n; i++) {
		const struct holder *holder = &holders->items[i];
		uint32_t *index;

		make_room(samples, holder->stack);
		index = &samples->by_stack[holder->stack];
		if (!*index) {
			samples->items =
				torsh_need_room(samples->items, samples->n, &samples->n_room, sizeof(*samples->items));
			samples->items[samples->n++] =
				(struct export_sample){.process = holder->process, .stack = holder->stack};
			*index = (uint32_t)samples->n;
		}
		samples->items[*index - 1].values[weight].blocks += holder->blocks;
		samples->items[*index - 1].values[weight].bytes += holder->bytes;
	}
}

/* peak_of: HOLDERS_PEAK or HOLDERS_JOINT_PEAK */
static void weigh_process(struct samples *samples, struct profile_process *process, enum holders_of peak_of,
			  const struct export *export, struct read_options *options)
{
	const struct {
		enum export_weight weight;
		enum holders_of of;
	} plain[] = {
		{EXPORT_PEAK, peak_of},
		{EXPORT_ALLOCATED, HOLDERS_ALLOCATED},
		{EXPORT_TEMPORARY, HOLDERS_TEMPORARY},
	};

	if (torsh_export_has(export, EXPORT_LEAKED)) {
		struct leaks leaks = {.found.view = options->view};

		torsh_leaks_find(&leaks, &process, 1, export->symbols, &options->suppress);
		weigh(samples, &leaks.found, EXPORT_LEAKED);
		torsh_leaks_free(&leaks);
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		struct holders holders = {.view = options->view};

		if (!torsh_export_has(export, plain[i].weight))
			continue;
		torsh_holders_collect(&holders, process, plain[i].of);
		torsh_holders_merge_stacks(&holders, export->symbols);
		weigh(samples, &holders, plain[i].weight);
		torsh_holders_free(&holders);
	}
}

static int write_all(struct export *export, const struct reading *reading, struct read_options *options)
{
	struct peak peak = torsh_peak_choose(reading->profile, reading->processes, reading->n_processes);
	enum holders_of peak_of = peak.process ? HOLDERS_PEAK : HOLDERS_JOINT_PEAK;

	export->exporter->begin(export);
	for (size_t i = 0; i < reading->n_processes; i++) {
		struct samples samples = {0};
		struct progress progress;

		weigh_process(&samples, reading->processes[i], peak_of, export, options);
		torsh_progress_start(&progress, "exporting", samples.n);
		for (size_t k = 0; k < samples.n; k++) {
			export->exporter->sample(export, &samples.items[k]);
			torsh_progress_show(&progress, k);
		}
		torsh_progress_end(&progress);
		free(samples.items);
		free(samples.by_stack);
	}
	return export->exporter->end(export);
}

int torsh_command_export(int argc, char **argv)
{
	struct read_options options = {0};
	struct export_options own = {0};
	struct reading reading;
	struct export export = {.file = stdout};
	int rc;

	torsh_options_parse(argc, argv, doc, own_options, parse_export, &own, &options);
	if (own.exporter->is_binary && !own.output && isatty(STDOUT_FILENO))
		torsh_die("%s is no text: give it a file with -o", own.exporter->name);
	torsh_reading_open(&reading, &options);
	export.exporter = own.exporter;
	export.what = own.has_what ? own.what : own.exporter->default_what;
	export.profile = reading.profile;
	export.symbols = reading.symbols;
	export.n_processes = reading.n_processes;
	if (own.output)
		export.file = fopen(own.output, "wbe");
	if (!export.file)
		torsh_die("can't write %s: %s", own.output, strerror(errno));
	rc = write_all(&export, &reading, &options);
	if (rc == 0 && (fflush(export.file) || ferror(export.file)))
		rc = -errno;
	if (own.output && fclose(export.file) != 0 && rc == 0)
		rc = -errno;
	if (rc < 0)
		torsh_die("can't write %s: %s", own.output ? own.output : "standard output", strerror(-rc));
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
