/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh-writer: the writer process of one session. Started by the agent, with
 *	fd 3	a listening AF_UNIX SOCK_SEQPACKET socket, bound at the path of --socket in a
 *		directory of its own
 *	fd 4	the recording, empty and locked: the lock shows that the writer is running
 * and TORSH_PROFILER_CLOCK_PEERS and TORSH_PROFILER_CLOCK_KEY as the first process had them.
 * It serves every process that sends its hello there, and ends after the last of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/terminal/terminal.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/output/summary.h"
#include "tools/writer/threads/control.h"
#include "tools/writer/threads/drain/drain.h"
#include "tools/writer/threads/drain/exit_reply.h"
#include "tools/writer/threads/end_exports.h"
#include "tools/writer/threads/inherited.h"

#define SOCKET_FD 3
#define RECORDING_FD 4
#define RESERVE_DEFAULT (UINT64_C(256) << 20)
#define CHECKPOINT_DEFAULT_NS UINT64_C(5000000000)

struct options {
	const char *socket;
	struct end_exports exports;
	bool has_summary;
	bool without_flops;
	const char *record; /* "folded", "full", "ring:60s" */
	char ring[48];
	struct flight_limit flight;
	struct keep_limits keep;
	const char *keep_with;
	uint64_t checkpoint_ns;
	struct recording_limits limits;
	pid_t first_pid;
};

static int parse_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno || end == text || *end || *text == '-' ? -EINVAL : 0;
}

/* "folded", "full", "last-ns:60000000000", "last-steps:20", "last-bytes:536870912" */
static int parse_record(struct options *options, const char *value)
{
	static const struct {
		const char *name, *text;
		uint64_t unit; /* of the text */
	} kinds[] = {[FLIGHT_NS] = {"last-ns:", "ring:%.10gs", 1000000000},
		     [FLIGHT_STEPS] = {"last-steps:", "ring:%.10gsteps", 1},
		     [FLIGHT_BYTES] = {"last-bytes:", "ring:%.10gM", 1 << 20}};

	options->record = value;
	for (size_t i = FLIGHT_NS; i <= FLIGHT_BYTES; i++) {
		size_t n = strlen(kinds[i].name);

		if (strncmp(value, kinds[i].name, n))
			continue;
		options->flight.unit = (enum flight_unit)i;
		options->record = options->ring;
		if (parse_number(value + n, &options->flight.amount))
			return -EINVAL;
		snprintf(options->ring, sizeof(options->ring), kinds[i].text,
			 (double)options->flight.amount / (double)kinds[i].unit);
		return 0;
	}
	return !strcmp(value, "full") || !strcmp(value, "folded") ? 0 : -EINVAL;
}

/* "200:300000000000:1": percent, nanoseconds, whether on memory */
static int parse_keep(const char *value, struct keep_limits *keep)
{
	unsigned is_on;
	char end;

	if (sscanf(value, "%" SCNu32 ":%" SCNu64 ":%u%c", &keep->slow_percent, &keep->hang_ns,
		   &is_on, &end) != 3 ||
	    is_on > 1)
		return -EINVAL;
	keep->on_memory = is_on;
	return 0;
}

static int parse_option(struct options *options, int option, const char *value)
{
	uint64_t number = 0;

	switch (option) {
	case 's':
		options->socket = value;
		return 0;
	case 'r':
		options->exports.recording = value;
		return 0;
	case 'x':
		options->exports.formats = value;
		return 0;
	case 'o':
		options->exports.export_to = value;
		return 0;
	case 'f':
		return parse_record(options, value);
	case 'm':
		return parse_number(value, &options->limits.max_bytes);
	case 'e':
		return parse_number(value, &options->limits.reserve_bytes);
	case 'y':
		if (parse_number(value, &number) || number > 1)
			return -EINVAL;
		options->has_summary = number;
		options->exports.is_quiet = !number;
		return 0;
	case 'w':
		if (parse_number(value, &number) || number > 1)
			return -EINVAL;
		options->without_flops = !number;
		return 0;
	case 't':
		if (parse_number(value, &number) || number > INT_MAX)
			return -EINVAL;
		options->first_pid = (pid_t)number;
		return 0;
	case 'k':
		return parse_keep(value, &options->keep);
	case 'p':
		options->keep_with = value;
		return 0;
	case 'c':
		return parse_number(value, &options->checkpoint_ns);
	}
	return -EINVAL;
}

static int parse_options(struct options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{"socket", required_argument, NULL, 's'},
		{"recording", required_argument, NULL, 'r'},
		{"record", required_argument, NULL, 'f'},
		{"max-size", required_argument, NULL, 'm'},
		{"reserve", required_argument, NULL, 'e'},
		{"target", required_argument, NULL, 't'},
		{"summary", required_argument, NULL, 'y'},
		{"export", required_argument, NULL, 'x'},
		{"export-to", required_argument, NULL, 'o'},
		{"flops", required_argument, NULL, 'w'},
		{"checkpoint", required_argument, NULL, 'c'},
		{"keep", required_argument, NULL, 'k'},
		{"keep-with", required_argument, NULL, 'p'},
		{0},
	};
	int option;

	*options = (struct options){
		.exports = {.formats = "", .export_to = ""},
		.record = "folded",
		.keep_with = "",
		.has_summary = true,
		.limits.reserve_bytes = RESERVE_DEFAULT,
		.checkpoint_ns = CHECKPOINT_DEFAULT_NS,
	};
	while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		if (option == '?')
			return -EINVAL;
		if (parse_option(options, option, optarg)) {
			fprintf(stderr, "torsh-writer: bad value: %s\n", optarg);
			return -EINVAL;
		}
	}
	return options->socket && options->exports.recording && optind == argc ? 0 : -EINVAL;
}

/* Started by hand it has neither. */
static bool has_descriptors(void)
{
	bool is_listening = false;
	socklen_t n = sizeof(is_listening);

	return !getsockopt(SOCKET_FD, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &n) &&
	       is_listening && fcntl(RECORDING_FD, F_GETFL) >= 0;
}

/* See torsh_control_run. */
static pid_t export_early(void *context, int messages_fd)
{
	const struct options *options = context;

	return torsh_end_exports_begin(&options->exports, options->socket, messages_fd);
}

/* Returns whether nothing was recorded after the exports that the first process waited for. */
static bool is_all_exported(const struct drain *drain)
{
	const struct summary *summary = torsh_drain_summary(drain);

	return summary->n == 1 && summary->processes[0].ended_with_exit;
}

/* Calls on the socket never block, and no child inherits a descriptor. */
static void prepare_descriptors(void)
{
	fcntl(SOCKET_FD, F_SETFL, fcntl(SOCKET_FD, F_GETFL) | O_NONBLOCK);
	fcntl(SOCKET_FD, F_SETFD, FD_CLOEXEC);
	fcntl(RECORDING_FD, F_SETFD, FD_CLOEXEC);
}

static struct drain_options options_of_drain(const struct options *options)
{
	return (struct drain_options){
		.recording_fd = RECORDING_FD,
		.recording_path = options->exports.recording,
		.socket_path = options->socket,
		.limits = options->limits,
		.record = options->record,
		.is_full = !strcmp(options->record, "full"),
		.flight = options->flight,
		.keep = options->keep,
		.keep_with = options->keep_with,
		.without_flops = options->without_flops,
		.checkpoint_ns = options->checkpoint_ns,
		.clock_peers = getenv("TORSH_PROFILER_CLOCK_PEERS"),
		.clock_key = getenv("TORSH_PROFILER_CLOCK_KEY"),
		.first_pid = options->first_pid,
		.exit_wishes = torsh_exit_reply_wishes(options->has_summary,
						       torsh_end_exports_has(&options->exports)),
	};
}

/* Returns the writer's exit status. */
static int serve(struct options *options)
{
	struct control_options control = {
		.socket_fd = SOCKET_FD,
		.socket_path = options->socket,
		.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.answer_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.first_pid = options->first_pid,
		.first_pidfd =
			options->first_pid ? torsh_process_open(options->first_pid) : -ENOENT,
		.export_early = torsh_end_exports_has(&options->exports) ? export_early : NULL,
		.has_summary = options->has_summary,
		.context = options,
	};
	struct drain_options drain_options = options_of_drain(options);
	struct drain *drain;
	bool has_exported, is_whole;
	int result;

	drain_options.done_fd = control.done_fd;
	drain_options.answer_fd = control.answer_fd;
	prepare_descriptors();
	drain = torsh_drain_start(&drain_options);
	if (!drain || control.done_fd < 0 || control.answer_fd < 0) {
		fprintf(stderr, "torsh: the writer can't start: %s\n", strerror(errno));
		return 1;
	}
	result = torsh_control_run(&control, drain, &has_exported);
	torsh_drain_stop(drain, result == 1);
	/* The first process has printed it, unless it was killed. */
	options->has_summary = options->has_summary && !torsh_drain_has_replied_to_exit(drain);
	if (options->has_summary)
		torsh_summary_print(stderr, torsh_drain_summary(drain), options->exports.recording);
	is_whole = has_exported && is_all_exported(drain);
	torsh_drain_destroy(drain);
	/* The recording is complete: readers, including the exports below, need not wait. */
	flock(RECORDING_FD, LOCK_UN);
	/* Export again if something was recorded since, without repeating a message. */
	options->exports.is_quiet = !options->has_summary;
	if (!is_whole)
		torsh_end_exports_run(&options->exports, RECORDING_FD);
	return result < 0;
}

int main(int argc, char **argv)
{
	struct options options;

	torsh_memory_start(true);
	torsh_terminal_guard();
	torsh_inherited_drop();
	if (parse_options(&options, argc, argv)) {
		fputs("usage: torsh-writer --socket PATH --recording PATH [--record folded|full] [--max-size BYTES]\n"
		      "       [--reserve BYTES] [--checkpoint NS] [--summary 0|1] [--target PID] [--export FORMAT,...] [--export-to FILE]\n"
		      "It is started by the agent, with a socket as descriptor 3 and the recording as 4.\n",
		      stderr);
		return 2;
	}
	if (!has_descriptors()) {
		fputs("torsh-writer: it is started by the agent, not by hand: descriptors 3 and 4 are not there\n",
		      stderr);
		return 2;
	}
	return serve(&options);
}
