/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The columns of an Events message: every event of one process in fold order, compact and in an
 * order that zstd compresses well. FORMAT.md describes the bytes. Each message is decoded on its
 * own.
 *
 * EVENT_STACK never occurs: an event with a stack carries its number.
 */
#ifndef TORSH_STORE_EVENTS_COLUMNS_H
#define TORSH_STORE_EVENTS_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"

struct columns_event {
	/* since Session.start_realtime_ns, in steps of COLUMNS_STEP_NS; the order is exact */
	uint64_t at_ns;
	uint32_t thread; /* row of the process's Threads */
	/* number of a stack; 0 for events without: all but ALLOC, MAP, REMAP, PROGRAM_BREAK */
	uint32_t stack;
	struct event event; /* event.stamp is not set */
};

#define COLUMNS_STEP_NS 1000u
#define COLUMNS_EVENTS_MAX (1u << 20) /* in one message */

struct columns_writer;
struct columns_reader;

/* Returns NULL if memory runs out. */
struct columns_writer *torsh_columns_create(void);

/* Free the writer. NULL is ignored. */
void torsh_columns_destroy(struct columns_writer *writer);

/* Add an event; at_ns must not go back. Returns 0, -ENOSPC when the message is full, or -ENOMEM. */
int torsh_columns_add(struct columns_writer *writer, const struct columns_event *event);

/* Number of events since the last torsh_columns_take. */
uint32_t torsh_columns_count(const struct columns_writer *writer);

/*
 * The message's fields; *bytes is the caller's to free. The writer is empty afterwards and can be
 * filled again. Returns 0 or -ENOMEM; then the events are lost.
 */
int torsh_columns_take(struct columns_writer *writer, uint64_t *first_ns, uint32_t *n_events,
		       uint8_t **bytes, size_t *n_bytes);

/*
 * Read the message with these fields (Events of recording.proto); the bytes must outlive the
 * reader. Returns 0, -EPROTO when they can't be columns, or -ENOMEM.
 */
int torsh_columns_open(struct columns_reader **reader, uint64_t first_ns, uint32_t n_events,
		       const uint8_t *bytes, size_t n_bytes);

/* Free the reader. NULL is ignored. */
void torsh_columns_close(struct columns_reader *reader);

/* Returns 1 with *event filled, 0 after the last, or -EPROTO if the bytes are invalid. */
int torsh_columns_next(struct columns_reader *reader, struct columns_event *event);

#endif
