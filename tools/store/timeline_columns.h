/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The columns of a Timeline message: the activity of a process in fold order. Each field of each
 * kind of event is a separate column of differences to the previous value, so that repeated values
 * take at most a byte after zstd. FORMAT.md describes the bytes. Each message is decoded on its
 * own.
 */
#ifndef TORSH_STORE_TIMELINE_COLUMNS_H
#define TORSH_STORE_TIMELINE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"

struct timeline_event {
	uint64_t at_ns; /* since Session.start_realtime_ns */
	uint32_t thread; /* row of the process's Threads */
	uint32_t stack; /* number of a stack, 0: none was taken */
	/* labels are numbers of Functions rows, and 1; event.stamp is not set */
	struct event event;
};

#define TIMELINE_EVENTS_MAX (1u << 20) /* in one message */

struct timeline_writer;
struct timeline_reader;

/* Returns NULL if memory runs out. */
struct timeline_writer *torsh_timeline_create(void);

/* Free the writer. NULL: nothing. */
void torsh_timeline_destroy(struct timeline_writer *writer);

/* Add an event of the timeline. Returns 0, -ENOSPC when the message is full, or -ENOMEM. */
int torsh_timeline_add(struct timeline_writer *writer, const struct timeline_event *event);

/* Number of events since the last torsh_timeline_take. */
uint32_t torsh_timeline_count(const struct timeline_writer *writer);

/*
 * The message's fields; *bytes is the caller's to free. The writer is empty afterwards and can be
 * filled again. Returns 0 or -ENOMEM; then the events are lost.
 */
int torsh_timeline_take(struct timeline_writer *writer, uint32_t *n_events, uint8_t **bytes,
			size_t *n_bytes);

/*
 * Read the message with these fields (Timeline of recording.proto); the bytes must outlive the
 * reader. Returns 0, -EPROTO when they can't be columns, or -ENOMEM.
 */
int torsh_timeline_open(struct timeline_reader **reader, uint32_t n_events, const uint8_t *bytes,
			size_t n_bytes);

/* Free the reader. */
void torsh_timeline_close(struct timeline_reader *reader);

/* Returns 1 with *event filled, 0 after the last, or -EPROTO if the bytes are invalid. */
int torsh_timeline_next(struct timeline_reader *reader, struct timeline_event *event);

#endif
