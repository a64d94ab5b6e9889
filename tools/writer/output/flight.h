/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A flight recorder: of the timelines of all processes the recording has only the latest part. Its
 * chunks stand in places of the file that are used again, so that neither the file nor the writer
 * grows with time. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_OUTPUT_FLIGHT_H
#define TORSH_WRITER_OUTPUT_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/store/recording_write.h"
#include "tools/writer/fold/process_state.h"

enum flight_unit { FLIGHT_OFF, FLIGHT_NS, FLIGHT_STEPS, FLIGHT_BYTES };

struct flight_limit {
	enum flight_unit unit;
	uint64_t amount;
};

/* Other limits than bytes keep at most so many bytes, too. */
#define FLIGHT_MOST_BYTES (UINT64_C(512) << 20)

/* A message of a timeline in the file. */
struct flight_chunk {
	struct extent extent;
	uint32_t process; /* number */
	uint32_t n_events;
	uint64_t first_ns, last_ns; /* session times of its events */
	uint64_t n_steps; /* of the process so far */
	struct timeline_passed *passed; /* of the process; NULL: it has ended */
};

struct flight {
	struct flight_limit limit;
	struct flight_chunk *chunks; /* a queue: n of them from number `first` on */
	size_t first, n, capacity;
	uint64_t n_bytes;
	uint64_t until_ns; /* what ended before passes, of processes without steps as well */
	/* nothing passes while a copy is made, up to twice the bytes */
	bool is_held;
};

/*
 * Write a message of a timeline and let pass what the limit leaves out; *about describes it,
 * without its extent. Returns as torsh_recording_append.
 */
int torsh_flight_put(struct flight *flight, struct recording_file *file, Torsh__Chunk *chunk,
		     const struct flight_chunk *about);

/*
 * Whether what a process has done since its last message, in this time and so many steps, is due to
 * be written: a message passes as a whole, so each is a small part of the limit.
 */
bool torsh_flight_is_due(const struct flight *flight, uint64_t ns, uint64_t n_steps);

/* Returns how long ago the oldest of the recording is, at now_ns (session time); 0: nothing is. */
uint64_t torsh_flight_span_ns(const struct flight *flight, uint64_t now_ns);

/* Let pass what is older now; n_steps: of that process. now_ns: session time. */
void torsh_flight_let_pass(struct flight *flight, struct recording_file *file, uint32_t process,
			   uint64_t n_steps, uint64_t now_ns);

/* The process ends: its row is the last one. */
void torsh_flight_leave(struct flight *flight, const struct timeline_passed *passed);

/* Free what it has. */
void torsh_flight_destroy(struct flight *flight);

#endif
