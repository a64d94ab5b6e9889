/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh export: a recording's stacks, or its timeline, for other programs. The formats are in tools/export/. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/die.h"
#include "tools/export/exporter.h"
#include "tools/export/trace.h"
#include "tools/profile/leaks.h"
#include "tools/profile/peak.h"
#include "tools/profile/progress.h"

static const char doc[] =
	"Write a recording's stacks for flame graph tools (folded), https://www.speedscope.app (speedscope) or `go tool pprof` "
	"(pprof); or its timeline for chrome://tracing, HTA and TensorBoard (chrome) or https://ui.perfetto.dev (perfetto), tables (csv), a database (sqlite), or a directory of TensorBoard (tensorboard).\v"
	"Weights are bytes that the program asked for. speedscope and pprof files hold all weights "
	"unless --what names one; folded has the leaked bytes by default. The peak is that of all processes "
	"together, unless --pid or --rank choose some: then each one's own.\n\n"
	"Of a timeline --from, --to and --steps choose what begins in a window of time. A file whose name ends in .gz is "
	"compressed.";

enum { KEY_FORMAT = 0x2000, KEY_WHAT, KEY_FROM, KEY_TO, KEY_STEPS };

static const struct argp_option own_options[] = {
	{"format", KEY_FORMAT, "FORMAT", 0, "folded, speedscope, pprof; chrome, perfetto, csv, sqlite or tensorboard",
	 0},
	{"what", KEY_WHAT, "WHAT", 0, "leaked, peak, allocated or temporary", 0},
	{"output", 'o', "FILE", 0, "write there instead of to standard output", 0},
	{"from", KEY_FROM, "TIME", 0, "the timeline from here on: 1.5s, 200ms, 30us since the recording began", 0},
	{"to", KEY_TO, "TIME", 0, "the timeline up to here", 0},
	{"steps", KEY_STEPS, "A[-B]", 0, "the timeline of these steps", 0},
	{0},
};

static const struct exporter *const exporters[] = {
	&torsh_export_folded,
	&torsh_export_speedscope,
	&torsh_export_pprof,
};

static const struct trace_format *const traces[] = {
	&torsh_trace_chrome, &torsh_trace_perfetto, &torsh_trace_csv, &torsh_trace_sqlite, &torsh_trace_tensorboard,
};

struct export_options {
	const struct exporter *exporter; /* of stacks */
	const struct trace_format *trace; /* of the timeline */
	const char *output;
	bool has_what;
	unsigned what;
	bool has_window, has_steps;
	uint64_t from_ns, to_ns, first_step, last_step;
};

static const char formats[] = "folded, speedscope, pprof, chrome, perfetto, csv, sqlite or tensorboard";

static void parse_format(struct export_options *options, const char *argument, struct argp_state *state)
{
	for (size_t i = 0; i < sizeof(exporters) / sizeof(*exporters); i++) {
		if (strcmp(exporters[i]->name, argument) == 0)
			options->exporter = exporters[i];
	}
	for (size_t i = 0; i < sizeof(traces) / sizeof(*traces); i++) {
		if (strcmp(traces[i]->name, argument) == 0)
			options->trace = traces[i];
	}
	if (!options->exporter && !options->trace)
		argp_error(state, "--format takes %s, not \"%s\"", formats, argument);
}

/* "1.5s", "200ms", "30us", "100ns"; seconds without a unit. */
static uint64_t parse_time(struct argp_state *state, const char *option, const char *argument)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	char *end;
	double number = strtod(argument, &end);

	for (size_t i = 0; end != argument && i < sizeof(units) / sizeof(*units); i++) {
		/* Also false for what is no number. */
		if (strcmp(end, units[i].unit) == 0 && number >= 0 && number * units[i].ns < 1e19)
			return (uint64_t)(number * units[i].ns);
	}
	argp_error(state, "--%s takes a time like 1.5s, 200ms or 30us, not \"%s\"", option, argument);
	return 0;
}

static void parse_steps(struct export_options *options, const char *argument, struct argp_state *state)
{
	char *end;

	errno = 0;
	options->has_steps = true;
	options->first_step = options->last_step = strtoull(argument, &end, 10);
	if (end != argument && *end == '-') {
		argument = end + 1;
		options->last_step = strtoull(argument, &end, 10);
	}
	if (errno || end == argument || *end || options->last_step < options->first_step)
		argp_error(state, "--steps takes a number, or two as in 3-5, not \"%s\"", argument);
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
	case KEY_FROM:
		options->from_ns = parse_time(state, "from", argument);
		options->has_window = true;
		return 0;
	case KEY_TO:
		options->to_ns = parse_time(state, "to", argument);
		options->has_window = true;
		return 0;
	case KEY_STEPS:
		parse_steps(options, argument, state);
		return 0;
	case ARGP_KEY_END:
		if (!options->exporter && !options->trace)
			argp_error(state, "--format is missing: %s", formats);
		if (options->exporter && (options->has_window || options->has_steps))
			argp_error(state, "--from, --to and --steps choose of the timeline, which %s doesn't hold",
				   options->exporter->name);
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

/* The window narrowed down to the steps that were asked for, of all processes. */
static void choose_steps(struct trace *trace, const struct export_options *own)
{
	uint64_t from_ns = UINT64_MAX, to_ns = 0;

	for (size_t i = 0; i < trace->survey->n; i++) {
		const struct steps *steps = &trace->survey->items[i].steps;

		for (size_t k = 0; k < steps->n; k++) {
			const struct step *step = &steps->items[k];

			if (step->number < own->first_step || step->number > own->last_step)
				continue;
			from_ns = step->start_ns < from_ns ? step->start_ns : from_ns;
			to_ns = step->end_ns > to_ns ? step->end_ns : to_ns;
		}
	}
	if (from_ns >= to_ns)
		torsh_die("no step in %s has such a number; torsh steps lists them", trace->profile->path);
	trace->from_ns = from_ns > trace->from_ns ? from_ns : trace->from_ns;
	trace->to_ns = to_ns < trace->to_ns ? to_ns : trace->to_ns;
}

/* Where an export goes: standard output, a file under another name until it is whole, or something that is no file. */
struct output {
	const char *path; /* NULL: standard output */
	char *temporary; /* NULL: it is written in its place */
	FILE *file;
};

static void open_output(struct output *output, const char *path)
{
	struct stat status;

	*output = (struct output){.path = path, .file = stdout};
	if (!path)
		return;
	/* A device or a pipe can't be replaced. */
	if (stat(path, &status) < 0 || S_ISREG(status.st_mode))
		output->temporary = torsh_need_text("%s.tmp", path);
	output->file = fopen(output->temporary ? output->temporary : path, "wbe");
	if (!output->file)
		torsh_die("can't write %s: %s", path, strerror(errno));
}

/* rc: of writing; dies where the file isn't whole. */
static void close_output(struct output *output, int rc)
{
	if (rc == 0 && (fflush(output->file) || ferror(output->file)))
		rc = errno ? -errno : -EIO;
	if (output->path && fclose(output->file) != 0 && rc == 0)
		rc = -errno;
	if (output->temporary && rc == 0 && rename(output->temporary, output->path) < 0)
		rc = -errno;
	if (output->temporary && rc < 0)
		unlink(output->temporary);
	free(output->temporary);
	if (rc < 0)
		torsh_die("can't write %s: %s", output->path ? output->path : "standard output", strerror(-rc));
}

static int write_stream(const struct trace *trace, const struct trace_format *format, FILE *file)
{
	struct trace own = *trace;
	struct sink sink;
	size_t n = trace->path ? strlen(trace->path) : 0;
	int rc, closed;

	torsh_sink_open(&sink, file, n > 3 && strcmp(trace->path + n - 3, ".gz") == 0);
	own.sink = &sink;
	rc = format->write(&own);
	closed = torsh_sink_close(&sink);
	return rc < 0 ? rc : closed;
}

static void export_trace(const struct export_options *own, const struct reading *reading)
{
	struct survey survey;
	struct trace trace = {
		.profile = reading->profile,
		.processes = reading->processes,
		.n_processes = reading->n_processes,
		.survey = &survey,
		.symbols = reading->symbols,
		.from_ns = own->from_ns,
		.to_ns = own->to_ns ? own->to_ns : UINT64_MAX,
		.path = own->output,
	};
	struct output output;

	torsh_survey_make(&survey, reading->profile, reading->processes, reading->n_processes);
	if (!survey.counts.n_events)
		torsh_warn("there is no timeline to export: nothing said what it does");
	if (own->has_steps)
		choose_steps(&trace, own);
	if (own->trace->needs_path) {
		int rc = own->trace->write(&trace);

		if (rc < 0)
			torsh_die("can't write %s: %s", own->output, strerror(-rc));
	} else {
		open_output(&output, own->output);
		close_output(&output, write_stream(&trace, own->trace, output.file));
	}
	torsh_survey_free(&survey);
}

static void export_stacks(const struct export_options *own, const struct reading *reading, struct read_options *options)
{
	struct export export = {
		.exporter = own->exporter,
		.what = own->has_what ? own->what : own->exporter->default_what,
		.profile = reading->profile,
		.symbols = reading->symbols,
		.n_processes = reading->n_processes,
	};
	struct output output;

	open_output(&output, own->output);
	export.file = output.file;
	close_output(&output, write_all(&export, reading, options));
}

int torsh_command_export(int argc, char **argv)
{
	struct read_options options = {0};
	struct export_options own = {0};
	struct reading reading;
	const char *name;
	bool is_binary;

	torsh_options_parse(argc, argv, doc, own_options, parse_export, &own, &options);
	name = own.trace ? own.trace->name : own.exporter->name;
	is_binary = own.trace ? own.trace->is_binary : own.exporter->is_binary;
	if (own.trace && own.trace->needs_path && !own.output)
		torsh_die("%s needs a name for what it writes: -o FILE", name);
	if (is_binary && !own.output && isatty(STDOUT_FILENO))
		torsh_die("%s is no text: give it a file with -o", name);
	torsh_reading_open(&reading, &options);
	if (own.trace)
		export_trace(&own, &reading);
	else
		export_stacks(&own, &reading, &options);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
