/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh list: the sessions of this user that are being recorded on this machine. */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/live/live.h"
#include "tools/report/parts.h"

static const char doc[] =
	"List the sessions that are being recorded on this machine: for each its writer, its oldest "
	"process that is alive, when it began, how many processes it has, and its recording.\v"
	"Only your own are there: what other users record can't be seen. `torsh top`, `torsh snapshot`, "
	"`torsh pause` and `torsh resume` take the pid of any process of a session, or of its writer.";

enum { KEY_JSON = 1 };

static const struct argp_option options_list[] = {
	{"json", KEY_JSON, NULL, 0, "print JSON", 0},
	{0},
};

static error_t parse_list(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	switch (key) {
	case KEY_JSON:
		*(bool *)state->input = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "it lists all sessions: \"%s\" is too much", argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool is_paused(const struct recording *recording)
{
	return recording->n_pauses && recording->pauses[recording->n_pauses - 1].lasts;
}

static cJSON *make_processes(const struct recording *recording)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < recording->n_processes; i++) {
		const struct recorded_process *process = recording->processes[i];
		cJSON *object = torsh_parts_process(process);

		torsh_json_set(object, "live_bytes", torsh_json_u64(process->heap.current_bytes));
		torsh_json_set(object, "live_blocks", torsh_json_u64(process->heap.current_blocks));
		torsh_json_set(object, "peak_bytes", torsh_json_u64(process->heap.peak_bytes));
		torsh_json_set(object, "produced", torsh_json_u64(process->produced));
		torsh_json_set(object, "dropped", torsh_json_u64(process->dropped));
		torsh_json_add(list, object);
	}
	return list;
}

static cJSON *make_session(const struct live_session *session)
{
	const struct recording *recording = session->recording;
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "writer_pid", torsh_json_u64(session->writer_pid));
	torsh_json_set(object, "start_realtime_ns",
		       recording->start_realtime_ns ? torsh_json_u64(recording->start_realtime_ns)
						    : torsh_json_text(NULL));
	torsh_json_set(object, "recording", torsh_json_text(recording->snapshot_of));
	torsh_json_set(object, "record", torsh_json_text(recording->record));
	torsh_json_set(object, "agent_version", torsh_json_text(recording->agent_version));
	torsh_json_set(object, "paused", torsh_json_bool(is_paused(recording)));
	torsh_json_set(object, "pauses", torsh_parts_pauses(recording));
	torsh_json_set(object, "processes", make_processes(recording));
	return object;
}

static void print_json(const struct live_sessions *sessions)
{
	struct json json;

	torsh_json_begin(&json, stdout);
	torsh_json_member(&json, "version", torsh_json_u64(1));
	torsh_json_array(&json, "sessions");
	for (size_t i = 0; i < sessions->n; i++)
		torsh_json_item(&json, make_session(&sessions->items[i]));
	torsh_json_array_end(&json);
	torsh_json_end(&json);
}

static void print_text(const struct live_sessions *sessions)
{
	if (!sessions->n) {
		puts("nothing is being recorded");
		return;
	}
	printf("%10s %10s  %-20s %-19s %9s  %s\n", "WRITER", "PID", "PROGRAM", "STARTED",
	       "PROCESSES", "RECORDING");
	for (size_t i = 0; i < sessions->n; i++) {
		const struct recording *recording = sessions->items[i].recording;
		const struct recorded_process *first =
			recording->n_processes ? recording->processes[0] : NULL;
		time_t start_s = (time_t)(recording->start_realtime_ns / 1000000000u);
		char start[32] = "-", pid[16] = "-";
		struct tm local;

		if (start_s && localtime_r(&start_s, &local))
			strftime(start, sizeof(start), "%F %T", &local);
		if (first)
			snprintf(pid, sizeof(pid), "%" PRIu32, first->pid);
		printf("%10" PRIu32 " %10s  %-20s %-19s %9zu  %s%s\n",
		       sessions->items[i].writer_pid, pid,
		       first ? torsh_recording_program_name(first) : "-", start,
		       recording->n_processes,
		       recording->snapshot_of ? recording->snapshot_of : "-",
		       is_paused(recording) ? "  (paused)" : "");
	}
}

int torsh_command_list(int argc, char **argv)
{
	const struct argp argp = {.options = options_list, .parser = parse_list, .doc = doc};
	struct live_sessions sessions;
	bool is_json = false;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, 0, NULL, &is_json);
	torsh_live_sessions_look(&sessions, 0);
	torsh_live_sessions_warn(&sessions);
	if (is_json)
		print_json(&sessions);
	else
		print_text(&sessions);
	torsh_live_sessions_free(&sessions);
	return TORSH_EXIT_DONE;
}
