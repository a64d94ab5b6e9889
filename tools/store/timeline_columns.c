/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/timeline_columns.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/store/columns_bytes.h"

/* Columns of all events; the fields of each kind of event follow in columns of their own. */
enum common_column { COLUMN_ID, COLUMN_AT, COLUMN_THREAD, COLUMN_STACK, N_COMMON };

/*
 * Number of columns per event: the first events have FIELDS_MAX each, those from DEVICES_FROM on
 * have more.
 */
#define FIELDS_MAX 8u
#define DEVICES_FROM 64u
#define DEVICE_FIELDS_MAX 24u
#define FIELDS_MAX_OF(id) ((id) < DEVICES_FROM ? FIELDS_MAX : DEVICE_FIELDS_MAX)
#define N_COLUMNS \
	(N_COMMON + DEVICES_FROM * FIELDS_MAX + (EVENT_ID_END - DEVICES_FROM) * DEVICE_FIELDS_MAX)
#define VARINT_MAX 10u
#define DIRECTORY_ENTRY_MAX (2 * VARINT_MAX)

/* Returns the first column of an event's fields. */
static uint32_t column_of(uint32_t id)
{
	if (id < DEVICES_FROM)
		return N_COMMON + id * FIELDS_MAX;
	return N_COMMON + DEVICES_FROM * FIELDS_MAX + (id - DEVICES_FROM) * DEVICE_FIELDS_MAX;
}

#define EVENT(id, NAME, name, text) enum { FIELDS_OF_##NAME = 0
#define FIELD(type, name) +1
#define END(NAME)                                                                 \
	}                                                                         \
	;                                                                         \
	_Static_assert((int)EVENT_##NAME < EVENT_ID_END, "readers take its id");  \
	_Static_assert((int)FIELDS_OF_##NAME <= (int)FIELDS_MAX_OF(EVENT_##NAME), \
		       "its fields have columns");
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END

struct timeline_writer {
	struct column_bytes columns[N_COLUMNS];
	uint64_t last[N_COLUMNS];
	uint32_t n_events;
	int result; /* of the current event */
};

struct read_column {
	struct column_reader bytes;
	uint64_t last;
};

/*
 * The columns of an event's fields are adjacent, and exist only for events that the message
 * contains.
 */
struct timeline_reader {
	uint32_t n_left;
	struct read_column common[N_COMMON];
	struct read_column *fields[EVENT_ID_END]; /* indexed by event id */
	struct read_column none[DEVICE_FIELDS_MAX]; /* fields of all other events: empty */
	struct read_column columns[];
};

struct timeline_writer *torsh_timeline_create(void)
{
	return calloc(1, sizeof(struct timeline_writer));
}

void torsh_timeline_destroy(struct timeline_writer *writer)
{
	if (!writer)
		return;
	for (uint32_t i = 0; i < N_COLUMNS; i++)
		free(writer->columns[i].bytes);
	free(writer);
}

uint32_t torsh_timeline_count(const struct timeline_writer *writer)
{
	return writer->n_events;
}

static void put(struct timeline_writer *writer, uint32_t column, uint64_t value)
{
	struct column_bytes *bytes = &writer->columns[column];

	if (bytes->capacity - bytes->n < VARINT_MAX && torsh_bytes_reserve(bytes, VARINT_MAX)) {
		writer->result = -ENOMEM;
		return;
	}
	torsh_bytes_put_varint(bytes, torsh_bytes_zigzag(value - writer->last[column]));
	writer->last[column] = value;
}

static void put_fields(struct timeline_writer *writer, const struct event *event)
{
	uint32_t column = column_of(event->id);

	switch (event->id) {
#define EVENT(id, NAME, name, text) \
	case EVENT_##NAME: {        \
		const struct event_##name *e = &event->name;
#define FIELD(type, name) put(writer, column++, (uint64_t)e->name);
#define END(NAME) \
	break;    \
	}
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	}
}

int torsh_timeline_add(struct timeline_writer *writer, const struct timeline_event *event)
{
	if (writer->n_events == TIMELINE_EVENTS_MAX)
		return -ENOSPC;
	put(writer, COLUMN_ID, event->event.id);
	put(writer, COLUMN_AT, event->at_ns);
	put(writer, COLUMN_THREAD, event->thread);
	put(writer, COLUMN_STACK, event->stack);
	put_fields(writer, &event->event);
	writer->n_events++;
	return writer->result;
}

/* Write the number of columns in use, the number and length of each, then their bytes. */
static int join_columns(const struct timeline_writer *writer, struct column_bytes *joined)
{
	uint32_t n_used = 0;
	size_t n = VARINT_MAX;

	for (uint32_t i = 0; i < N_COLUMNS; i++) {
		n_used += writer->columns[i].n != 0;
		n += writer->columns[i].n ? writer->columns[i].n + DIRECTORY_ENTRY_MAX : 0;
	}
	if (torsh_bytes_reserve(joined, n))
		return -ENOMEM;
	torsh_bytes_put_varint(joined, n_used);
	for (uint32_t i = 0; i < N_COLUMNS; i++) {
		if (!writer->columns[i].n)
			continue;
		torsh_bytes_put_varint(joined, i);
		torsh_bytes_put_varint(joined, writer->columns[i].n);
	}
	for (uint32_t i = 0; i < N_COLUMNS; i++) {
		if (writer->columns[i].n)
			torsh_bytes_put(joined, writer->columns[i].bytes, writer->columns[i].n);
	}
	return 0;
}

int torsh_timeline_take(struct timeline_writer *writer, uint32_t *n_events, uint8_t **bytes,
			size_t *n_bytes)
{
	struct column_bytes joined = {0};
	int result = writer->result ? writer->result : join_columns(writer, &joined);

	*n_events = writer->n_events;
	*bytes = joined.bytes;
	*n_bytes = joined.n;
	for (uint32_t i = 0; i < N_COLUMNS; i++)
		writer->columns[i].n = 0;
	memset(writer->last, 0, sizeof(writer->last));
	writer->n_events = 0;
	writer->result = 0;
	return result;
}

/* Returns the event that owns a column from N_COMMON on. */
static uint32_t event_of(uint64_t column)
{
	if (column < N_COMMON + DEVICES_FROM * FIELDS_MAX)
		return (uint32_t)((column - N_COMMON) / FIELDS_MAX);
	return DEVICES_FROM + (uint32_t)((column - column_of(DEVICES_FROM)) / DEVICE_FIELDS_MAX);
}

/*
 * Walk the directory and collect which events have columns. Returns the number of columns of their
 * fields, or -EPROTO.
 */
static int measure(struct column_reader *directory, uint64_t n_used, bool has_columns[EVENT_ID_END])
{
	int n = 0;

	for (uint64_t i = 0; i < n_used; i++) {
		uint64_t column = torsh_bytes_take_varint(directory);

		torsh_bytes_take_varint(directory); /* skip its length */
		if (directory->is_short || column >= N_COLUMNS)
			return -EPROTO;
		if (column < N_COMMON || has_columns[event_of(column)])
			continue;
		has_columns[event_of(column)] = true;
		n += FIELDS_MAX_OF(event_of(column));
	}
	return n;
}

static struct timeline_reader *create_reader(uint32_t n_events,
					     const bool has_columns[EVENT_ID_END], int n_columns)
{
	struct timeline_reader *reader =
		calloc(1, sizeof(*reader) + (size_t)n_columns * sizeof(*reader->columns));
	struct read_column *at;

	if (!reader)
		return NULL;
	reader->n_left = n_events;
	at = reader->columns;
	for (uint32_t id = 0; id < EVENT_ID_END; id++) {
		reader->fields[id] = has_columns[id] ? at : reader->none;
		at += has_columns[id] ? FIELDS_MAX_OF(id) : 0;
	}
	return reader;
}

/* Open the directory's columns, one after the other from `at` on. */
static int open_columns(struct timeline_reader *reader, struct column_reader *directory,
			uint64_t n_used, const uint8_t *at)
{
	const uint8_t *end = directory->end;

	for (uint64_t i = 0; i < n_used; i++) {
		uint64_t column = torsh_bytes_take_varint(directory),
			 n = torsh_bytes_take_varint(directory);
		uint32_t id = column < N_COMMON ? 0 : event_of(column);
		struct read_column *opened =
			column < N_COMMON ? &reader->common[column]
					  : reader->fields[id] + (column - column_of(id));

		if (n > (uint64_t)(end - at))
			return -EPROTO;
		opened->bytes = (struct column_reader){.at = at, .end = at + n};
		at += n;
	}
	return 0;
}

int torsh_timeline_open(struct timeline_reader **opened, uint32_t n_events, const uint8_t *bytes,
			size_t n_bytes)
{
	/* bytes may be NULL if there are none. */
	struct column_reader directory = {.at = bytes, .end = n_bytes ? bytes + n_bytes : bytes},
			     measured;
	uint64_t n_used = torsh_bytes_take_varint(&directory);
	bool has_columns[EVENT_ID_END] = {false};
	struct timeline_reader *reader;
	int n_columns;

	if (directory.is_short || n_used > N_COLUMNS || n_events > TIMELINE_EVENTS_MAX)
		return -EPROTO;
	measured = directory;
	n_columns = measure(&measured, n_used, has_columns);
	if (n_columns < 0)
		return n_columns;
	reader = create_reader(n_events, has_columns, n_columns);
	if (!reader)
		return -ENOMEM;
	if (open_columns(reader, &directory, n_used, measured.at)) {
		free(reader);
		return -EPROTO;
	}
	*opened = reader;
	return 0;
}

void torsh_timeline_close(struct timeline_reader *reader)
{
	free(reader);
}

static inline uint64_t take(struct read_column *read, bool *is_short)
{
	struct column_reader *bytes = &read->bytes;

	/* A field that is newer than the writer of this recording. */
	if (!bytes->at)
		return 0;
	/* Most differences take one byte. */
	if (bytes->at < bytes->end && *bytes->at < 0x80)
		return read->last += torsh_bytes_unzigzag(*bytes->at++);
	read->last += torsh_bytes_unzigzag(torsh_bytes_take_varint(bytes));
	*is_short |= bytes->is_short;
	return read->last;
}

static void take_fields(struct timeline_reader *reader, struct event *event, bool *is_short)
{
	struct read_column *column = reader->fields[event->id];

	switch (event->id) {
#define EVENT(id, NAME, name, text) \
	case EVENT_##NAME: {        \
		struct event_##name *e = &event->name;
#define FIELD(type, name) e->name = (torsh_wire_##type)take(column++, is_short);
#define END(NAME) \
	break;    \
	}
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	}
}

int torsh_timeline_next(struct timeline_reader *reader, struct timeline_event *event)
{
	bool is_short = false;
	uint64_t id;

	if (!reader->n_left)
		return 0;
	id = take(&reader->common[COLUMN_ID], &is_short);
	if (!EVENT_IS_TIMELINE(id))
		return -EPROTO;
	memset(event, 0, sizeof(*event));
	event->event.id = (uint32_t)id;
	event->at_ns = take(&reader->common[COLUMN_AT], &is_short);
	event->thread = (uint32_t)take(&reader->common[COLUMN_THREAD], &is_short);
	event->stack = (uint32_t)take(&reader->common[COLUMN_STACK], &is_short);
	take_fields(reader, &event->event, &is_short);
	if (is_short)
		return -EPROTO;
	reader->n_left--;
	return 1;
}
