/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/live/top/frame.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/live/top/top_sites.h"
#include "tools/report/screen/screen_processes.h"
#include "tools/terminal/columns.h"

#define SITE_NUMBERS 38 /* columns left of a function, and between it and its place */
#define NAME_LEAST 16 /* minimum width of a function */

/* One process's row. */
struct row {
	const struct recorded_process *process;
	uint64_t rate; /* events per second since the previous frame */
	bool has_rate;
};

struct rows {
	struct row *items;
	size_t n, n_room;
	size_t n_running; /* of these, which are first */
};

static void keep_past(struct top *top)
{
	size_t n = 0, n_room = 0;

	free(top->past);
	top->past = NULL;
	for (size_t i = 0; i < top->sessions.n; i++) {
		const struct live_session *session = &top->sessions.items[i];

		for (size_t k = 0; k < session->recording->n_processes; k++) {
			top->past = torsh_array_reserve(top->past, n, &n_room, sizeof(*top->past));
			top->past[n++] = (struct top_past){
				.writer_pid = session->writer_pid,
				.process = session->recording->processes[k]->number,
				.produced = session->recording->processes[k]->produced,
				.at_ns = session->recording->snapshot_ns,
			};
		}
	}
	top->n_past = n;
}

bool torsh_top_choose(struct top *top, uint32_t pid)
{
	struct live_sessions sessions;
	const struct live_session *chosen;

	torsh_live_sessions_look(&sessions, 0);
	torsh_live_sessions_warn(&sessions);
	chosen = torsh_live_sessions_find(&sessions, pid);
	if (chosen)
		top->socket_path = torsh_need(strdup(chosen->socket_path));
	torsh_live_sessions_free(&sessions);
	return chosen;
}

bool torsh_top_look(struct top *top)
{
	keep_past(top);
	torsh_symbols_forget(top->symbols);
	torsh_live_sessions_free(&top->sessions);
	if (!top->socket_path) {
		torsh_live_sessions_look(&top->sessions, TOP_SITES);
		return true;
	}
	torsh_live_sessions_look_at(&top->sessions, top->socket_path, TOP_SITES);
	return top->sessions.n;
}

void torsh_top_free(struct top *top)
{
	torsh_live_sessions_free(&top->sessions);
	torsh_symbols_destroy(top->symbols);
	free(top->past);
	free(top->socket_path);
	*top = (struct top){0};
}

/* Takes ownership of the text. */
static void put_line(struct top_frame *frame, bool is_heading, char *text)
{
	/* Names of programs and files may contain control characters. */
	for (char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	}
	frame->lines =
		torsh_array_reserve(frame->lines, frame->n, &frame->n_room, sizeof(*frame->lines));
	frame->lines[frame->n++] = (struct top_line){.text = text, .is_heading = is_heading};
}

static const struct top_past *find_past(const struct top *top, uint32_t writer_pid,
					uint32_t process)
{
	for (size_t i = 0; i < top->n_past; i++) {
		if (top->past[i].writer_pid == writer_pid && top->past[i].process == process)
			return &top->past[i];
	}
	return NULL;
}

static struct row make_row(const struct top *top, const struct live_session *session,
			   const struct recorded_process *process)
{
	const struct top_past *past = find_past(top, session->writer_pid, process->number);
	uint64_t now_ns = session->recording->snapshot_ns;
	struct row row = {.process = process};

	if (!past || now_ns <= past->at_ns || process->produced < past->produced)
		return row;
	row.has_rate = true;
	row.rate = (uint64_t)((double)(process->produced - past->produced) * 1e9 /
			      (double)(now_ns - past->at_ns));
	return row;
}

static bool is_running(const struct recorded_process *process)
{
	return process->end == TORSH__PROCESS__END_KIND__RUNNING;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? 1 : -(a > b);
}

static int compare_rows(const void *a, const void *b, void *order)
{
	const struct row *one = a, *other = b;
	int rc = 0;

	if (is_running(one->process) != is_running(other->process))
		return is_running(one->process) ? -1 : 1;
	switch (*(enum top_order *)order) {
	case TOP_BY_LIVE:
		rc = compare_numbers(one->process->heap.current_bytes,
				     other->process->heap.current_bytes);
		break;
	case TOP_BY_PEAK:
		rc = compare_numbers(one->process->heap.peak_bytes,
				     other->process->heap.peak_bytes);
		break;
	case TOP_BY_RATE:
		rc = compare_numbers(one->rate, other->rate);
		break;
	default:
		break;
	}
	return rc ? rc : -compare_numbers(one->process->pid, other->process->pid);
}

/* Add the running processes; all if none runs. */
static void collect_rows(struct rows *rows, const struct top *top)
{
	enum top_order order = top->order;

	for (size_t i = 0; i < top->sessions.n; i++) {
		const struct live_session *session = &top->sessions.items[i];

		for (size_t k = 0; k < session->recording->n_processes; k++) {
			rows->items = torsh_array_reserve(rows->items, rows->n, &rows->n_room,
							  sizeof(*rows->items));
			rows->items[rows->n++] =
				make_row(top, session, session->recording->processes[k]);
		}
	}
	if (rows->n)
		qsort_r(rows->items, rows->n, sizeof(*rows->items), compare_rows, &order);
	while (rows->n_running < rows->n && is_running(rows->items[rows->n_running].process))
		rows->n_running++;
}

static bool is_paused(const struct live_sessions *sessions)
{
	for (size_t i = 0; i < sessions->n; i++) {
		const struct recording *recording = sessions->items[i].recording;

		if (recording->n_pauses && recording->pauses[recording->n_pauses - 1].lasts)
			return true;
	}
	return false;
}

static void put_sums(struct top_frame *frame, const struct top *top, const struct rows *rows,
		     uint64_t *live_bytes)
{
	uint64_t blocks = 0, produced = 0, dropped = 0, rate = 0, sampled_every = 0;
	char a[SIZE_TEXT_BYTES], b[SIZE_TEXT_BYTES], c[SIZE_TEXT_BYTES], d[SIZE_TEXT_BYTES];
	const char *order[] = {[TOP_BY_LIVE] = "live",
			       [TOP_BY_PEAK] = "peak",
			       [TOP_BY_RATE] = "rate",
			       [TOP_BY_PID] = "pid"};
	bool has_rate = false;

	*live_bytes = 0;
	for (size_t i = 0; i < rows->n; i++) {
		*live_bytes += rows->items[i].process->heap.current_bytes;
		blocks += rows->items[i].process->heap.current_blocks;
		if (rows->items[i].process->heap.sampled_every > sampled_every)
			sampled_every = rows->items[i].process->heap.sampled_every;
		produced += rows->items[i].process->produced;
		dropped += rows->items[i].process->dropped;
		rate += rows->items[i].rate;
		has_rate = has_rate || rows->items[i].has_rate;
	}
	put_line(frame, true,
		 torsh_need_text("torsh top: %s, %s, sorted by %s%s%s",
				 torsh_size_counted(top->sessions.n, "session", a),
				 torsh_size_counted(rows->n, "process", b), order[top->order],
				 is_paused(&top->sessions) ? "; recording is paused" : "",
				 top->is_held ? "; view is held" : ""));
	put_line(frame, false,
		 torsh_need_text(
			 "live %s in %s; events %s, %s dropped%s%s",
			 torsh_size_human(*live_bytes, a), torsh_size_counted(blocks, "block", b),
			 torsh_size_grouped(produced, c), torsh_size_grouped(dropped, d),
			 has_rate ? ", a second " : "",
			 has_rate ? torsh_size_grouped(rate, (char[SIZE_TEXT_BYTES]){0}) : ""));
	if (sampled_every)
		put_line(frame, false,
			 torsh_need_text("live is estimated from samples, one in %s on average",
					 torsh_size_human(sampled_every, a)));
}

/* Print "78 have ended: bash 75, sed 3". */
static void put_ended(struct top_frame *frame, const struct rows *rows)
{
	size_t n = rows->n - rows->n_running;
	const struct recorded_process **ended = torsh_need_items(NULL, 0, n, sizeof(*ended));
	char *programs;

	for (size_t i = 0; i < n; i++)
		ended[i] = rows->items[rows->n_running + i].process;
	programs = torsh_screen_programs(ended, n);
	put_line(frame, false, torsh_need_text("%8s %zu ended: %s", "", n, programs));
	free(programs);
	free(ended);
}

static void put_processes(struct top_frame *frame, const struct rows *rows, size_t n_most)
{
	size_t n_rows = rows->n_running ? rows->n_running : rows->n;
	size_t n = n_most && n_most < n_rows ? n_most : n_rows;

	put_line(frame, false, torsh_need_text("%s", ""));
	put_line(frame, true,
		 torsh_need_text("%8s %5s %11s %12s %11s %12s %9s  %s", "PID", "RANK", "LIVE",
				 "BLOCKS", "PEAK", "EVENTS/S", "DROPPED", "PROGRAM"));
	for (size_t i = 0; i < n; i++) {
		const struct recorded_process *process = rows->items[i].process;
		char live[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES], peak[SIZE_TEXT_BYTES],
			rate[SIZE_TEXT_BYTES] = "-";
		char dropped[SIZE_TEXT_BYTES];

		if (rows->items[i].has_rate)
			torsh_size_grouped(rows->items[i].rate, rate);
		put_line(frame, false,
			 torsh_need_text("%8" PRIu32 " %5s %11s %12s %11s %12s %9s  %s",
					 process->pid, process->rank ? process->rank : "-",
					 torsh_size_human(process->heap.current_bytes, live),
					 torsh_size_grouped(process->heap.current_blocks, blocks),
					 torsh_size_human(process->heap.peak_bytes, peak), rate,
					 torsh_size_grouped(process->dropped, dropped),
					 torsh_recording_program_name(process)));
	}
	if (n < n_rows)
		put_line(frame, false, torsh_need_text("%8s and %zu more", "", n_rows - n));
	if (n_rows < rows->n)
		put_ended(frame, rows);
}

/* The end of a place stays, because it has file and line; the function is cut first. */
static void put_site(struct top_frame *frame, const struct top_site *site, uint64_t live_bytes,
		     size_t n_columns)
{
	char bytes[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];
	size_t room = n_columns > SITE_NUMBERS + 2 * NAME_LEAST ? n_columns - SITE_NUMBERS
								: 2 * NAME_LEAST;
	char *short_place, *short_function;
	size_t n_place;

	short_place = torsh_columns_cut(site->place, n_columns ? room - NAME_LEAST : 0, CUT_START);
	n_place = torsh_columns_of(short_place);
	short_function = torsh_columns_cut(site->name, n_columns ? room - n_place : 0, CUT_MIDDLE);
	put_line(frame, false,
		 torsh_need_text("%11s %12s %8s  %s  %s", torsh_size_human(site->bytes, bytes),
				 torsh_size_grouped(site->blocks, blocks),
				 torsh_size_percent((double)site->bytes, (double)live_bytes, share),
				 short_function, short_place));
	free(short_place);
	free(short_function);
}

static void put_sites(struct top_frame *frame, const struct top *top, uint64_t live_bytes,
		      size_t n_most, size_t n_columns)
{
	struct top_sites sites = {0};

	for (size_t i = 0; i < top->sessions.n; i++) {
		const struct recording *recording = top->sessions.items[i].recording;

		for (size_t k = 0; k < recording->n_processes; k++)
			torsh_top_sites_add(&sites, recording->processes[k], top->symbols);
	}
	torsh_top_sites_settle(&sites);
	put_line(frame, false, torsh_need_text("%s", ""));
	put_line(frame, true,
		 torsh_need_text("%11s %12s %8s  HELD BY", "BYTES", "BLOCKS", "SHARE"));
	for (size_t i = 0; i < sites.n && (!n_most || i < n_most); i++)
		put_site(frame, &sites.items[i], live_bytes, n_columns);
	torsh_top_sites_free(&sites);
}

void torsh_top_frame(struct top_frame *frame, const struct top *top, size_t n_processes,
		     size_t n_sites, size_t n_columns)
{
	struct rows rows = {0};
	uint64_t live_bytes;

	*frame = (struct top_frame){0};
	if (top->sessions.problem)
		put_line(frame, false, torsh_need_text("%s", top->sessions.problem));
	if (!top->sessions.n) {
		put_line(frame, true, torsh_need_text("torsh top: nothing is being recorded"));
		return;
	}
	collect_rows(&rows, top);
	put_sums(frame, top, &rows, &live_bytes);
	put_processes(frame, &rows, n_processes);
	put_sites(frame, top, live_bytes, n_sites, n_columns);
	free(rows.items);
}

void torsh_top_frame_free(struct top_frame *frame)
{
	for (size_t i = 0; i < frame->n; i++)
		free(frame->lines[i].text);
	free(frame->lines);
	*frame = (struct top_frame){0};
}
