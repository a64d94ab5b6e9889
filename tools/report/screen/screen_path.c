/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/base/size.h"
#include "tools/frames/short_name.h"
#include "tools/report/screen/screen_line.h"
#include "tools/report/text.h"

#define ROWS_SHOWN 3u /* of the chain */
#define BOTTLENECKS_SHOWN 2u
#define PAGE_ROWS 12u
#define JSON_ROWS 50u

static const char *share_text(const struct critical *critical, uint64_t ns, char *out)
{
	return torsh_size_percent((double)ns, (double)critical->steps_ns, out);
}

/* "step 7", "steps 3-5" or, of those that nobody chose, "11 steps". */
static const char *steps_text(const struct critical *critical, char out[SIZE_TEXT_BYTES])
{
	if (!critical->is_chosen)
		return torsh_size_counted(critical->n_steps, "step", out);
	if (critical->n_steps == 1)
		snprintf(out, SIZE_TEXT_BYTES, "step %" PRIu64, critical->first_step);
	else
		snprintf(out, SIZE_TEXT_BYTES, "steps %" PRIu64 "-%" PRIu64, critical->first_step,
			 critical->last_step);
	return out;
}

/* ---- the screen ------------------------------------------------------------------------------ */

static void print_chain(const struct overview *overview)
{
	const struct critical *critical = &overview->critical;
	size_t chain = torsh_critical_chain(critical), n = 0;
	char *lane = torsh_critical_lane_text(critical, chain), *text = NULL;
	char share[SIZE_TEXT_BYTES], steps[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < critical->n_rows && n < ROWS_SHOWN; i++) {
		const struct critical_row *row = &critical->rows[i];

		if (row->lane != chain)
			continue;
		text = torsh_screen_append(text, "%s %s",
					   torsh_critical_what(row, overview->symbols),
					   share_text(critical, row->ns, share));
		n++;
	}
	torsh_screen_line(STYLE_PLAIN, 2, "%*s%-*s%s of %s is one chain, %s: %s", SCREEN_INDENT, "",
			  SCREEN_LABEL, "path",
			  share_text(critical, critical->lanes[chain].ns, share),
			  critical->is_chosen ? steps_text(critical, steps) : "a step", lane,
			  text ? text : "");
	free(lane);
	free(text);
}

void torsh_screen_path(const struct overview *overview)
{
	const struct bottlenecks *bottlenecks = &overview->bottlenecks;
	char share[SIZE_TEXT_BYTES];

	if (overview->critical.reason || !overview->critical.n_rows)
		return;
	print_chain(overview);
	for (size_t i = 0; i < bottlenecks->n && i < BOTTLENECKS_SHOWN; i++) {
		const struct bottleneck *item = &bottlenecks->items[i];

		torsh_screen_line(STYLE_WARNING, 2, "%*s%-*s%s, %s: %s.  See: %s", SCREEN_INDENT,
				  "", SCREEN_LABEL, i ? "" : "slowed by", item->text,
				  share_text(&overview->critical, item->ns, share), item->evidence,
				  item->next);
	}
}

/* ---- the page -------------------------------------------------------------------------------- */

static void print_rows(const struct overview *overview)
{
	const struct critical *critical = &overview->critical;
	char share[SIZE_TEXT_BYTES], ns[SIZE_TEXT_BYTES];
	size_t n = critical->n_rows < PAGE_ROWS ? critical->n_rows : PAGE_ROWS;
	uint64_t rest_ns = 0;

	for (size_t i = 0; i < n; i++) {
		const struct critical_row *row = &critical->rows[i];
		char *lane = torsh_critical_lane_text(critical, row->lane);

		printf("  %6s  %s  ", share_text(critical, row->ns, share),
		       torsh_size_duration(row->ns / critical->n_steps, ns));
		torsh_text_function(stdout, torsh_critical_what(row, overview->symbols));
		printf(", %s\n", lane);
		free(lane);
	}
	for (size_t i = n; i < critical->n_rows; i++)
		rest_ns += critical->rows[i].ns;
	if (rest_ns)
		printf("  %6s  %s  %zu more\n", share_text(critical, rest_ns, share),
		       torsh_size_duration(rest_ns / critical->n_steps, ns), critical->n_rows - n);
}

void torsh_path_text(const struct overview *overview)
{
	const struct critical *critical = &overview->critical;
	const struct bottlenecks *bottlenecks = &overview->bottlenecks;
	char *notes[CRITICAL_NOTES], steps[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];
	size_t n_notes;

	if (critical->reason || !critical->n_rows)
		return;
	putchar('\n');
	torsh_text_heading(stdout, "Critical path of %s", steps_text(critical, steps));
	print_rows(overview);
	n_notes = torsh_critical_notes(critical, notes);
	for (size_t i = 0; i < n_notes; i++) {
		printf("  %s\n", notes[i]);
		free(notes[i]);
	}
	for (size_t i = 0; i < bottlenecks->n; i++) {
		const struct bottleneck *item = &bottlenecks->items[i];

		printf("  bottleneck: %s, %s: %s (%s)\n", item->text,
		       share_text(critical, item->ns, share), item->evidence, item->next);
	}
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static double share_of(const struct critical *critical, uint64_t ns)
{
	return critical->steps_ns ? (double)ns / (double)critical->steps_ns : 0;
}

static void emit_bottlenecks(struct json_writer *json, const struct overview *overview)
{
	const struct critical *critical = &overview->critical;

	torsh_json_begin_array(json, "bottlenecks");
	for (size_t i = 0; i < overview->bottlenecks.n; i++) {
		const struct bottleneck *item = &overview->bottlenecks.items[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "kind", item->name);
		torsh_json_put_double(json, "share", share_of(critical, item->ns));
		torsh_json_put_double(json, "gain", share_of(critical, item->gain_ns));
		torsh_json_put_text(json, "evidence", item->evidence);
		torsh_json_put_text(json, "next", item->next);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_row(struct json_writer *json, const struct overview *overview,
		     const struct critical_row *row)
{
	char *lane = torsh_critical_lane_text(&overview->critical, row->lane);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "what", torsh_critical_what(row, overview->symbols));
	torsh_json_put_text(json, "kind", torsh_critical_kind_names[row->kind]);
	torsh_json_put_text(json, "lane", lane);
	torsh_json_put_u64(json, "ns", row->ns);
	torsh_json_put_double(json, "share", share_of(&overview->critical, row->ns));
	torsh_json_end_object(json);
	free(lane);
}

static void emit_gain(struct json_writer *json, const char *what, const struct critical_gain *gain)
{
	if (!gain->is_known)
		return;
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "without", what);
	torsh_json_put_u64(json, "gain_ns", gain->ns);
	torsh_json_end_object(json);
}

static void emit_gains(struct json_writer *json, const struct critical *critical)
{
	torsh_json_begin_array(json, "gains");
	for (int kind = 0; kind < N_CRITICAL_KINDS; kind++)
		emit_gain(json, torsh_critical_kind_names[kind], &critical->gains[kind]);
	emit_gain(json, "synchronisation", &critical->without_sync);
	emit_gain(json, "host", &critical->without_host);
	torsh_json_end_array(json);
}

static void emit_of(struct json_writer *json, const struct critical *critical)
{
	char *notes[CRITICAL_NOTES];
	size_t n = torsh_critical_notes(critical, notes);

	torsh_json_begin_object(json, "critical_path_of");
	torsh_json_put_u64(json, "pid", critical->process->pid);
	torsh_json_put_u64(json, "steps", critical->n_steps);
	torsh_json_put_u64(json, "first_step", critical->first_step);
	torsh_json_put_u64(json, "last_step", critical->last_step);
	torsh_json_put_u64(json, "steps_ns", critical->steps_ns);
	emit_gains(json, critical);
	torsh_json_begin_array(json, "notes");
	for (size_t i = 0; i < n; i++) {
		torsh_json_put_text(json, NULL, notes[i]);
		free(notes[i]);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

void torsh_path_json(struct json_writer *json, const struct overview *overview)
{
	const struct critical *critical = &overview->critical;
	const char *reason =
		overview->has_timeline ? critical->reason : "the timeline was not read";
	size_t n = critical->n_rows < JSON_ROWS ? critical->n_rows : JSON_ROWS;

	torsh_json_put_text(json, "critical_path_reason", reason);
	if (reason) {
		torsh_json_put_null(json, "bottlenecks");
		torsh_json_put_null(json, "critical_path");
		torsh_json_put_null(json, "critical_path_of");
		return;
	}
	emit_bottlenecks(json, overview);
	torsh_json_begin_array(json, "critical_path");
	for (size_t i = 0; i < n; i++)
		emit_row(json, overview, &critical->rows[i]);
	torsh_json_end_array(json);
	emit_of(json, critical);
}
