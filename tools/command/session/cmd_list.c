/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh list: this user's running sessions on this machine. */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/live/live.h"
#include "tools/report/parts.h"
#include "tools/terminal/terminal_options.h"

static const char doc[] =
	"List the sessions that are being recorded on this machine: for each its writer, its oldest "
	"process that is alive, when it began, how many processes it has, and its recording. Then the "
	"processes that wait to be started (TORSH_PROFILER_ENABLED=dormant).\v"
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

static void emit_processes(struct json_writer *json, const struct recording *recording)
{
	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < recording->n_processes; i++) {
		const struct recorded_process *process = recording->processes[i];

		torsh_parts_begin_process(json, process);
		torsh_json_put_u64(json, "live_bytes", process->heap.current_bytes);
		torsh_json_put_u64(json, "live_blocks", process->heap.current_blocks);
		torsh_json_put_u64(json, "peak_bytes", process->heap.peak_bytes);
		torsh_json_put_u64(json, "produced", process->produced);
		torsh_json_put_u64(json, "dropped", process->dropped);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_session(struct json_writer *json, const struct live_session *session)
{
	const struct recording *recording = session->recording;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "writer_pid", session->writer_pid);
	torsh_json_put_known(json, "start_realtime_ns", recording->start_realtime_ns,
			     recording->start_realtime_ns);
	torsh_json_put_text(json, "recording", recording->snapshot_of);
	torsh_json_put_text(json, "record", recording->record);
	torsh_json_put_text(json, "agent_version", recording->agent_version);
	torsh_json_put_bool(json, "paused", is_paused(recording));
	torsh_parts_emit_pauses(json, recording);
	emit_processes(json, recording);
	torsh_json_end_object(json);
}

static void emit_dormant(struct json_writer *json, const struct live_dormant_list *dormant)
{
	torsh_json_begin_lines(json, "dormant");
	for (size_t i = 0; i < dormant->n; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", dormant->items[i].pid);
		torsh_json_put_text(json, "program", dormant->items[i].program);
		torsh_json_put_bool(json, "armed", dormant->items[i].is_armed);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void print_json(const struct live_sessions *sessions,
		       const struct live_dormant_list *dormant)
{
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_begin_lines(&json, "sessions");
	for (size_t i = 0; i < sessions->n; i++)
		emit_session(&json, &sessions->items[i]);
	torsh_json_end_array(&json);
	emit_dormant(&json, dormant);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

static void print_dormant(const struct live_dormant_list *dormant)
{
	for (size_t i = 0; i < dormant->n; i++) {
		const struct live_dormant *one = &dormant->items[i];

		printf("dormant: %s (%" PRIu32 "), %s\n", one->program, one->pid,
		       one->is_armed ? "armed: its recording begins with its next call"
				     : "not recorded until it is started: torsh start PID");
	}
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
	const struct argp argp = {.options = options_list,
				  .parser = parse_list,
				  .doc = doc,
				  .children = torsh_terminal_children};
	struct live_sessions sessions;
	struct live_dormant_list dormant;
	bool is_json = false;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, 0, NULL, &is_json);
	torsh_live_sessions_look(&sessions, 0);
	torsh_live_sessions_warn(&sessions);
	torsh_live_dormant_look(&dormant);
	if (is_json) {
		print_json(&sessions, &dormant);
	} else {
		print_text(&sessions);
		print_dormant(&dormant);
	}
	torsh_live_dormant_free(&dormant);
	torsh_live_sessions_free(&sessions);
	return TORSH_EXIT_DONE;
}
