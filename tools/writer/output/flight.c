/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/flight.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

#define PARTS 8u /* messages in the limit, at least */
#define LEAST_NS UINT64_C(50000000) /* of a message */
#define USUAL_NS UINT64_C(1000000000)

bool torsh_flight_is_due(const struct flight *flight, uint64_t ns, uint64_t n_steps)
{
	uint64_t due_ns = USUAL_NS;

	if (flight->limit.unit == FLIGHT_OFF || ns < LEAST_NS)
		return false;
	if (flight->limit.unit == FLIGHT_STEPS && n_steps > flight->limit.amount / PARTS)
		return true;
	if (flight->limit.unit == FLIGHT_NS && flight->limit.amount / PARTS < due_ns)
		due_ns = flight->limit.amount / PARTS;
	return ns >= due_ns;
}

uint64_t torsh_flight_span_ns(const struct flight *flight, uint64_t now_ns)
{
	uint64_t first_ns = flight->n ? flight->chunks[flight->first].first_ns : now_ns;

	return now_ns > first_ns ? now_ns - first_ns : 0;
}

static uint64_t most_bytes(const struct flight *flight)
{
	return flight->limit.unit == FLIGHT_BYTES ? flight->limit.amount : FLIGHT_MOST_BYTES;
}

/* The next chunk of the process is the first one in the recording then. */
static uint64_t next_begin_ns(const struct flight *flight, const struct flight_chunk *passing)
{
	for (size_t i = 1; i < flight->n; i++) {
		const struct flight_chunk *chunk = &flight->chunks[flight->first + i];

		if (chunk->process == passing->process)
			return chunk->first_ns;
	}
	return passing->last_ns;
}

static void let_first_pass(struct flight *flight, struct recording_file *file)
{
	struct flight_chunk *chunk = &flight->chunks[flight->first];

	if (chunk->passed) {
		chunk->passed->n_events += chunk->n_events;
		chunk->passed->from_ns = next_begin_ns(flight, chunk);
	}
	torsh_recording_drop_extent(file, chunk->extent);
	flight->n_bytes -= chunk->extent.n_bytes;
	flight->first++;
	flight->n--;
}

/* Whether the limit leaves the oldest chunk out. */
static bool is_passing(const struct flight *flight, const struct flight_chunk *chunk)
{
	if (flight->is_held && flight->n_bytes <= 2 * most_bytes(flight))
		return false;
	return flight->n_bytes > most_bytes(flight) || chunk->last_ns < flight->until_ns;
}

static void let_pass(struct flight *flight, struct recording_file *file)
{
	while (flight->n && is_passing(flight, &flight->chunks[flight->first]))
		let_first_pass(flight, file);
}

/* What ended before the step that is so many before this process's current one passes. */
static void count_steps(struct flight *flight, uint32_t process, uint64_t n_steps)
{
	for (size_t i = 0; i < flight->n; i++) {
		const struct flight_chunk *chunk = &flight->chunks[flight->first + i];

		if (chunk->process != process)
			continue;
		if (n_steps - chunk->n_steps <= flight->limit.amount)
			return;
		if (chunk->last_ns >= flight->until_ns)
			flight->until_ns = chunk->last_ns + 1;
	}
}

void torsh_flight_let_pass(struct flight *flight, struct recording_file *file, uint32_t process,
			   uint64_t n_steps, uint64_t now_ns)
{
	if (flight->limit.unit == FLIGHT_OFF)
		return;
	if (flight->limit.unit == FLIGHT_NS && now_ns > flight->limit.amount)
		flight->until_ns = now_ns - flight->limit.amount;
	if (flight->limit.unit == FLIGHT_STEPS && n_steps)
		count_steps(flight, process, n_steps);
	let_pass(flight, file);
}

static void add(struct flight *flight, const struct flight_chunk *chunk)
{
	if (flight->first && flight->first + flight->n == flight->capacity) {
		memmove(flight->chunks, flight->chunks + flight->first,
			flight->n * sizeof(*flight->chunks));
		flight->first = 0;
	}
	flight->chunks = torsh_array_reserve(flight->chunks, flight->first + flight->n,
					     &flight->capacity, sizeof(*flight->chunks));
	flight->chunks[flight->first + flight->n++] = *chunk;
	flight->n_bytes += chunk->extent.n_bytes;
}

int torsh_flight_put(struct flight *flight, struct recording_file *file, Torsh__Chunk *chunk,
		     const struct flight_chunk *about)
{
	struct flight_chunk written = *about;
	int result = torsh_recording_put(file, chunk, RECORDING_EVENTS, &written.extent);

	if (result)
		return result;
	add(flight, &written);
	torsh_flight_let_pass(flight, file, about->process, about->n_steps, about->last_ns);
	return 0;
}

void torsh_flight_leave(struct flight *flight, const struct timeline_passed *passed)
{
	for (size_t i = 0; i < flight->n; i++) {
		struct flight_chunk *chunk = &flight->chunks[flight->first + i];

		if (chunk->passed == passed)
			chunk->passed = NULL;
	}
}

void torsh_flight_destroy(struct flight *flight)
{
	free(flight->chunks);
}
