/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh run: sets the agent's environment and executes the program in this process, so that pid,
 * signals and exit status are the program's. The agent starts the writer.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/session/executable_report.h"
#include "tools/command/session/python_program.h"
#include "tools/terminal/terminal_options.h"

#define AGENT_NAME "libtorshagent.so"

static const char doc[] =
	"Run a program, a Python script or a Python module under the agent and record what it does with "
	"memory.\v"
	"Each option sets a variable TORSH_PROFILER_NAME, which works as well. The recording is "
	"written to a directory; read it with `torsh report DIR`.";

enum setting_kind { VALUE_TEXT, VALUE_SIZE, VALUE_FIXED };

/* Every option except --agent sets a variable of the agent. */
static const struct setting {
	const char *option, *argument, *variable, *fixed, *text;
	char letter;
	enum setting_kind kind;
} settings[] = {
	{"output", "DIR|FILE", "OUTPUT", NULL,
	 "where to record; %p pid, %n program, %r rank, %h host, %t time "
	 "(torsh-%n-%p)",
	 'o', VALUE_TEXT},
	{"record", "WHAT", "RECORD", NULL,
	 "full: every event is kept; folded: only what reports need", 0, VALUE_TEXT},
	{"activities", "LIST", "ACTIVITIES", NULL,
	 "what to record: heap,vm,... (all that is found)", 0, VALUE_TEXT},
	{"filter", "PATTERN", "FILTER", NULL, "only programs with such a name", 0, VALUE_TEXT},
	{"no-follow", NULL, "FOLLOW", "0", "don't record child processes", 0, VALUE_FIXED},
	{"summary", NULL, "SUMMARY", "1", "print a short summary at the end", 0, VALUE_FIXED},
	{"no-summary", NULL, "SUMMARY", "0", "don't print one", 0, VALUE_FIXED},
	{"suppress", "FILE", "SUPPRESS", NULL, "leaks not to report: lines leak:PATTERN", 0,
	 VALUE_TEXT},
	{"allocator", "NAME", "ALLOCATOR", NULL,
	 "system: the program's own; jemalloc: serve it from that", 0, VALUE_TEXT},
	{"ring", "SIZE", "RING", NULL, "bytes of a thread's ring (1M)", 0, VALUE_SIZE},
	{"max-size", "SIZE", "MAX_SIZE", NULL, "largest recording", 0, VALUE_SIZE},
	{"reserve", "SIZE", "RESERVE", NULL, "free disk space to leave", 0, VALUE_SIZE},
	{"checkpoint", "TIME", "CHECKPOINT", NULL, "how much a killed writer may lose (5s)", 0,
	 VALUE_TEXT},
	{"export-format", "LIST", "EXPORT_FORMAT", NULL, "exports to write at the end", 0,
	 VALUE_TEXT},
	{"schedule", "SPEC", "SCHEDULE", NULL, "skip:N,wait:N,warmup:N,active:N,repeat:N in steps",
	 0, VALUE_TEXT},
	{"counters", "WHAT", "COUNTERS", NULL,
	 "of devices: off, operators, operators:2, operators:full, timeline or timeline:INTERVAL (off)",
	 0, VALUE_TEXT},
	{"no-stack", NULL, "WITH_STACK", "0", "record no stacks", 0, VALUE_FIXED},
	{"no-memory", NULL, "PROFILE_MEMORY", "0", "record no heap", 0, VALUE_FIXED},
	{"no-shapes", NULL, "RECORD_SHAPES", "0", "record no operator shapes", 0, VALUE_FIXED},
	{"no-flops", NULL, "WITH_FLOPS", "0", "compute no FLOPs", 0, VALUE_FIXED},
	{"no-modules", NULL, "WITH_MODULES", "0", "record no modules", 0, VALUE_FIXED},
	{"python-allocators", NULL, "PYTHON_ALLOCATORS", "1", "record Python's own allocators too",
	 0, VALUE_FIXED},
	{"cpu-hz", "N", "CPU_HZ", NULL,
	 "samples a second of a thread's processor time, with --cpu (99)", 0, VALUE_TEXT},
	{"check-stacks", "N", "CHECK_STACKS", NULL,
	 "take every N-th stack a second way and compare", 0, VALUE_TEXT},
};

#define N_SETTINGS (sizeof(settings) / sizeof(*settings))
#define KEY_SETTING 0x1000
#define KEY_AGENT (KEY_SETTING + (int)N_SETTINGS)
#define KEY_CPU (KEY_AGENT + 1)
#define KEY_MODULE 'm'

struct run {
	const char *agent, *module;
	bool with_cpu;
	char **command; /* arguments of a module */
};

static void set_variable(const char *name, const char *value)
{
	char *variable = torsh_need_text("TORSH_PROFILER_%s", name);

	if (setenv(variable, value, 1) < 0)
		torsh_die("can't set %s: %s", variable, strerror(errno));
	free(variable);
}

static void apply_setting(const struct setting *setting, const char *argument,
			  struct argp_state *state)
{
	char digits[24];

	if (setting->kind == VALUE_SIZE) {
		snprintf(digits, sizeof(digits), "%" PRIu64,
			 torsh_argument_size(state, setting->option, argument));
		argument = digits;
	}
	set_variable(setting->variable, setting->kind == VALUE_FIXED ? setting->fixed : argument);
}

static error_t parse_run(int key, char *argument, struct argp_state *state)
{
	struct run *run = state->input;

	for (size_t i = 0; i < N_SETTINGS; i++) {
		if (key == (settings[i].letter ? settings[i].letter : KEY_SETTING + (int)i)) {
			apply_setting(&settings[i], argument, state);
			return 0;
		}
	}
	switch (key) {
	case KEY_AGENT:
		run->agent = argument;
		return 0;
	case KEY_CPU:
		run->with_cpu = true;
		return 0;
	case KEY_MODULE:
		run->module = argument;
		run->command = &state->argv[state->next];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_ARG:
		run->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		if (!run->module)
			argp_error(state, "which program? Give it after --");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A symbolic link is not resolved: it may replace a path that LD_PRELOAD can't contain. */
static char *take_agent(const char *given)
{
	char directory[PATH_MAX];

	if (access(given, R_OK) < 0)
		torsh_die("the agent %s can't be used: %s", given, strerror(errno));
	if (*given == '/')
		return torsh_need(strdup(given));
	if (!getcwd(directory, sizeof(directory)))
		torsh_die("can't find the current directory: %s", strerror(errno));
	return torsh_need_text("%s/%s", directory, given);
}

/* Next to this program, as in build/, or where `make install` puts it. */
static char *find_agent(const char *given)
{
	static const char *const places[] = {"", "../lib/torsh/", "../lib/"};
	char *directory;

	if (!given)
		given = getenv("TORSH_AGENT");
	if (given && *given)
		return take_agent(given);
	directory = torsh_own_directory();
	if (!directory)
		torsh_die("can't find this program's own path: %s. Set TORSH_AGENT",
			  strerror(errno));
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *path = torsh_need_text("%s/%s" AGENT_NAME, directory, places[i]);
		char *real = realpath(path, NULL);

		free(path);
		if (real) {
			free(directory);
			return real;
		}
	}
	torsh_die("there is no " AGENT_NAME
		  " in %s or %s/../lib/torsh: build it, or set TORSH_AGENT",
		  directory, directory);
}

/*
 * Put the agent first in LD_PRELOAD: libraries that the user preloads, e.g. another allocator, are
 * then its next definitions.
 */
static void preload(const char *agent)
{
	const char *others = getenv("LD_PRELOAD");
	char *all;

	if (strpbrk(agent, ": "))
		torsh_die(
			"LD_PRELOAD can't hold a path with a blank or a colon: %s. Set TORSH_AGENT to a symbolic link",
			agent);
	if (others && strstr(others, agent))
		return;
	all = others && *others ? torsh_need_text("%s:%s", agent, others)
				: torsh_need_text("%s", agent);
	if (setenv("LD_PRELOAD", all, 1) < 0)
		torsh_die("can't set LD_PRELOAD: %s", strerror(errno));
	free(all);
}

static struct argp_option *make_options(void)
{
	struct argp_option *options = torsh_need_items(NULL, 0, N_SETTINGS + 4, sizeof(*options));

	for (size_t i = 0; i < N_SETTINGS; i++) {
		options[i] = (struct argp_option){
			.name = settings[i].option,
			.key = settings[i].letter ? settings[i].letter : KEY_SETTING + (int)i,
			.arg = settings[i].argument,
			.doc = settings[i].text,
		};
	}
	options[N_SETTINGS] = (struct argp_option){
		.name = "agent", .key = KEY_AGENT, .arg = "FILE", .doc = "the agent to preload"};
	options[N_SETTINGS + 1] = (struct argp_option){
		.name = "cpu",
		.key = KEY_CPU,
		.doc = "also record where threads spend processor time, and what they wait for: torsh cpu"};
	options[N_SETTINGS + 2] = (struct argp_option){
		.name = "module",
		.key = KEY_MODULE,
		.arg = "MODULE",
		.doc = "run a Python module, as python3 -m does; what follows are its arguments"};
	return options;
}

/* Add samples and waits to the activities: those that were requested, or all others. */
static void add_times(void)
{
	static const char *const others = "heap,vm,python,torch,cuda,nvtx,itt,mpi";
	const char *asked = getenv("TORSH_PROFILER_ACTIVITIES");
	char *all = torsh_need_text("%s,samples,waits", asked && *asked ? asked : others);

	set_variable("ACTIVITIES", all);
	free(all);
}

/* What the costliest counters cost is printed before the program starts. */
static void warn_of_cost(void)
{
	const char *counters = getenv("TORSH_PROFILER_COUNTERS");

	if (counters && strcmp(counters, "operators:full") == 0)
		torsh_warn(
			"operators:full: up to three of the launches that are alike run alone, as often as the device's "
			"counters take (8 to 11 times), and what a kernel writes is saved and restored each time");
}

int torsh_command_run(int argc, char **argv)
{
	struct run run = {0};
	struct argp argp = {
		.options = make_options(),
		.parser = parse_run,
		.args_doc = "-- COMMAND...\nSCRIPT.py [ARGUMENT...]\n-m MODULE [ARGUMENT...]",
		.doc = doc,
		.children = torsh_terminal_children};
	char reason[PATH_MAX + 256], *agent, *program;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);
	if (run.with_cpu)
		add_times();
	warn_of_cost();
	if (run.module || torsh_is_python_script(run.command[0]))
		run.command = torsh_python_command(run.module, run.command);
	program = torsh_program_find(run.command[0]);
	if (!program)
		torsh_die("there is no program %s", run.command[0]);
	if (torsh_program_check(program, reason, sizeof(reason)) < 0)
		torsh_die("%s", reason);
	agent = find_agent(run.agent);
	preload(agent);
	execv(program, run.command);
	torsh_die("can't run %s: %s", program, strerror(errno));
}
