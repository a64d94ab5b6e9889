/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/kineto/kineto_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

static void put_text(struct event_text *to, struct json_slice from)
{
	to->text = torsh_array_reserve(to->text, from.n + 1, &to->room, 1);
	memcpy(to->text, from.text, from.n);
	to->text[from.n] = 0;
	to->n = from.n;
}

static void clear_text(struct event_text *text)
{
	if (text->text)
		text->text[0] = 0;
	text->n = 0;
}

/* Read a text; other values are passed over. Returns whether it was one. */
static bool read_text(struct json_reader *json, struct event_text *to)
{
	struct json_slice text;

	if (torsh_json_peek(json) != JSON_TEXT)
		return torsh_json_skip(json) && false;
	if (!torsh_json_text(json, &text))
		return false;
	put_text(to, text);
	return true;
}

static bool read_number(struct json_reader *json, double *value, bool *is_whole)
{
	if (torsh_json_peek(json) != JSON_NUMBER)
		return torsh_json_skip(json) && false;
	return torsh_json_number(json, value, is_whole);
}

/* Read a whole number, which may be a text, as HTA takes streams; others leave it as it is. */
static void read_whole(struct json_reader *json, int64_t *to)
{
	double value;
	bool is_whole;
	struct json_slice text;

	if (torsh_json_peek(json) == JSON_TEXT) {
		char digits[24], *end;
		long long number;

		if (!torsh_json_text(json, &text) || !text.n || text.n >= sizeof(digits))
			return;
		memcpy(digits, text.text, text.n);
		digits[text.n] = 0;
		errno = 0;
		number = strtoll(digits, &end, 10);
		if (!*end && !errno)
			*to = number;
		return;
	}
	if (read_number(json, &value, &is_whole) && value > -9e18 && value < 9e18)
		*to = (int64_t)value;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Read what describes a collective. Returns false if the name is of something else. */
static bool read_of_collective(struct json_reader *json, struct kineto_event *event,
			       struct json_slice name)
{
	bool is_whole;

	if (torsh_json_is(name, "Collective name"))
		read_text(json, &event->collective);
	else if (torsh_json_is(name, "Process Group Name"))
		read_text(json, &event->group);
	else if (torsh_json_is(name, "Process Group Ranks"))
		read_text(json, &event->group_ranks);
	else if (torsh_json_is(name, "dtype"))
		read_text(json, &event->type);
	else if (torsh_json_is(name, "In msg nelems"))
		read_number(json, &event->n_in, &is_whole);
	else if (torsh_json_is(name, "Out msg nelems"))
		read_number(json, &event->n_out, &is_whole);
	else if (torsh_json_is(name, "Group size"))
		read_number(json, &event->group_size, &is_whole);
	else if (torsh_json_is(name, "Seq"))
		read_number(json, &event->sequence, &is_whole);
	else
		return false;
	return true;
}

static void read_argument(struct json_reader *json, struct kineto_event *event,
			  struct json_slice name)
{
	if (torsh_json_is(name, "stream"))
		read_whole(json, &event->stream);
	else if (torsh_json_is(name, "correlation"))
		read_whole(json, &event->correlation);
	else if (!read_of_collective(json, event, name))
		torsh_json_skip(json);
}

/* Whether none of the arguments matters: most events are operators. */
static bool is_of_host(struct json_slice arguments)
{
	return !memmem(arguments.text, arguments.n, "\"stream\"", 8) &&
	       !memmem(arguments.text, arguments.n, "\"correlation\"", 13);
}

static void read_arguments(struct json_reader *json, struct kineto_event *event)
{
	struct json_slice name, whole;
	bool is_open = false;

	if (torsh_json_look(json, &whole) && is_of_host(whole)) {
		torsh_json_pass(json, whole);
		return;
	}
	if (torsh_json_peek(json) != JSON_OBJECT) {
		torsh_json_skip(json);
		return;
	}
	torsh_json_enter(json, JSON_OBJECT);
	while (torsh_json_member(json, &is_open, &name))
		read_argument(json, event, name);
}

/* ---- the event ------------------------------------------------------------------------------- */

static void clear(struct kineto_event *event)
{
	event->has_start = event->has_dur = event->has_category = event->has_fraction = false;
	event->stream = KINETO_NO_STREAM;
	event->correlation = KINETO_NO_CORRELATION;
	event->n_in = event->n_out = event->group_size = event->sequence = -1;
	clear_text(&event->name);
	clear_text(&event->category);
	clear_text(&event->collective);
	clear_text(&event->group);
	clear_text(&event->group_ranks);
	clear_text(&event->type);
}

bool torsh_kineto_event_read(struct json_reader *json, struct kineto_event *event)
{
	struct json_slice name;
	bool is_open = false, is_whole = true;

	clear(event);
	if (!torsh_json_enter(json, JSON_OBJECT))
		return false;
	while (torsh_json_member(json, &is_open, &name)) {
		if (torsh_json_is(name, "name")) {
			read_text(json, &event->name);
		} else if (torsh_json_is(name, "cat")) {
			event->has_category = read_text(json, &event->category);
		} else if (torsh_json_is(name, "ts")) {
			event->has_start = read_number(json, &event->start_us, &is_whole);
			event->has_fraction = event->has_start && !is_whole;
		} else if (torsh_json_is(name, "dur")) {
			event->has_dur = read_number(json, &event->dur_us, &is_whole);
		} else if (torsh_json_is(name, "args")) {
			read_arguments(json, event);
		} else {
			torsh_json_skip(json);
		}
	}
	return !json->fault;
}

void torsh_kineto_event_free(struct kineto_event *event)
{
	free(event->name.text);
	free(event->category.text);
	free(event->collective.text);
	free(event->group.text);
	free(event->group_ranks.text);
	free(event->type.text);
}
