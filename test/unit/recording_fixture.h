/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Makes recordings for tests of the readers: stacks are written as texts, and become modules, addresses, symbols and
 * stack nodes of one process. Chunks go into a profile, or into a file in a directory of its own.
 */
#ifndef TORSH_TEST_RECORDING_FIXTURE_H
#define TORSH_TEST_RECORDING_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/wire/channel.h"
#include "tools/profile/profile.h"
#include "tools/store/recording_write.h"
#include "tools/store/timeline_columns.h"

#define FIXTURE_MAX 64
#define FIXTURE_BASE 0x10000000u /* where module 0 lies; the next one that much further */

struct fixture {
	Torsh__Modules modules;
	Torsh__Functions functions;
	Torsh__Addresses addresses;
	Torsh__Symbols symbols;
	Torsh__Stacks stacks;
	Torsh__StackTotals totals;
	Torsh__Live live;
	Torsh__Growth growth;
	Torsh__Heap heap;
	Torsh__Process process;
	const char *not_followed; /* NULL, or why: then only the row of the process counts */
	Torsh__Threads threads;
	Torsh__Timeline timeline;
	struct timeline_writer *writer; /* NULL: no events of the timeline */
	uint32_t event_stack; /* of events that are put; 0: none */
	uint32_t tid[FIXTURE_MAX];
	char *thread_name[FIXTURE_MAX];
	uint64_t zeros[FIXTURE_MAX];
	uint64_t bias[FIXTURE_MAX], start[FIXTURE_MAX], end[FIXTURE_MAX], ip[FIXTURE_MAX], offset[FIXTURE_MAX];
	char *path[FIXTURE_MAX], *name[FIXTURE_MAX], *frame[FIXTURE_MAX];
	char *function[FIXTURE_MAX], *file[FIXTURE_MAX];
	uint32_t first_line[FIXTURE_MAX];
	uint32_t flags[FIXTURE_MAX], module[FIXTURE_MAX], address[FIXTURE_MAX], symbol[FIXTURE_MAX];
	uint32_t parent[FIXTURE_MAX], node[FIXTURE_MAX];
	uint32_t total_stack[FIXTURE_MAX], seen[FIXTURE_MAX], live_stack[FIXTURE_MAX];
	uint64_t columns[16][FIXTURE_MAX];
	int64_t signed_columns[2][FIXTURE_MAX];
	uint32_t grown_stack[FIXTURE_MAX];
	uint64_t parts[FIXTURE_MAX], late_blocks[FIXTURE_MAX], late_bytes[FIXTURE_MAX];
	protobuf_c_boolean is_tensor[FIXTURE_MAX];
};

static inline void fixture_start(struct fixture *fixture, uint32_t number, uint32_t pid)
{
	memset(fixture, 0, sizeof(*fixture));
	torsh__modules__init(&fixture->modules);
	torsh__functions__init(&fixture->functions);
	torsh__addresses__init(&fixture->addresses);
	torsh__symbols__init(&fixture->symbols);
	torsh__stacks__init(&fixture->stacks);
	torsh__stack_totals__init(&fixture->totals);
	torsh__live__init(&fixture->live);
	torsh__growth__init(&fixture->growth);
	torsh__heap__init(&fixture->heap);
	torsh__process__init(&fixture->process);
	torsh__threads__init(&fixture->threads);
	torsh__timeline__init(&fixture->timeline);
#define OF_PROCESS(message)               \
	fixture->message.has_process = 1; \
	fixture->message.process = number;
	OF_PROCESS(modules)
	OF_PROCESS(functions)
	OF_PROCESS(addresses)
	OF_PROCESS(symbols)
	OF_PROCESS(stacks)
	OF_PROCESS(totals)
	OF_PROCESS(live)
	OF_PROCESS(growth)
	OF_PROCESS(heap)
	OF_PROCESS(process)
	OF_PROCESS(threads)
	OF_PROCESS(timeline)
#undef OF_PROCESS
	fixture->stacks.has_first = 1;
	fixture->stacks.first = 1;
	fixture->process.has_pid = 1;
	fixture->process.pid = pid;
	fixture->process.program = "/opt/program";
	fixture->process.has_end = fixture->process.has_end_code = 1;
	fixture->process.end = TORSH__PROCESS__END_KIND__EXITED;
	fixture->process.has_end_ns = 1;
	fixture->process.end_ns = 5000000000u;
}

static inline void fixture_free(struct fixture *fixture)
{
	for (size_t i = 0; i < FIXTURE_MAX; i++) {
		free(fixture->path[i]);
		free(fixture->name[i]);
		free(fixture->frame[i]);
		free(fixture->function[i]);
		free(fixture->file[i]);
		free(fixture->thread_name[i]);
	}
	torsh_timeline_destroy(fixture->writer);
	free(fixture->timeline.columns.data);
}

/* A thread. Returns its row. */
static inline uint32_t fixture_thread(struct fixture *fixture, uint32_t tid, const char *name)
{
	uint32_t n = (uint32_t)fixture->threads.n_tid;

	fixture->tid[n] = tid;
	fixture->thread_name[n] = strdup(name);
	fixture->threads.n_tid = fixture->threads.n_name = n + 1;
	fixture->threads.n_start_ns = fixture->threads.n_end_ns = fixture->threads.n_allocs = n + 1;
	fixture->threads.n_alloc_bytes = fixture->threads.n_frees = fixture->threads.n_dropped = n + 1;
	return n;
}

/* A label for events of the timeline; the same one for the same text. */
static inline uint32_t fixture_label(struct fixture *fixture, const char *text)
{
	uint32_t n = (uint32_t)fixture->functions.n_name;

	for (uint32_t i = 0; i < n; i++) {
		if (strcmp(fixture->function[i], text) == 0)
			return i + 1;
	}
	if (n == FIXTURE_MAX)
		abort();
	fixture->function[n] = strdup(text);
	fixture->file[n] = strdup("");
	fixture->functions.n_name = fixture->functions.n_file = fixture->functions.n_first_line = n + 1;
	return n + 1;
}

static inline void fixture_event(struct fixture *fixture, uint64_t at_ns, uint32_t thread, const struct event *event)
{
	const struct timeline_event added = {
		.at_ns = at_ns, .thread = thread, .stack = fixture->event_stack, .event = *event};

	if (!fixture->writer)
		fixture->writer = torsh_timeline_create();
	if (torsh_timeline_add(fixture->writer, &added) < 0)
		abort();
}

/* An operator's begin: inputs NULL, none are known. Backward's have scope 1, record_function's 7. */
static inline void fixture_op(struct fixture *fixture, uint64_t at_ns, uint32_t thread, uint32_t record,
			      const char *name, const char *inputs, uint32_t scope, uint64_t sequence)
{
	struct event event = {.id = EVENT_OP_BEGIN};

	event.op_begin.name = fixture_label(fixture, name);
	event.op_begin.inputs = inputs ? fixture_label(fixture, inputs) : 0;
	event.op_begin.scope = scope;
	event.op_begin.record = record;
	event.op_begin.sequence = sequence;
	fixture_event(fixture, at_ns, thread, &event);
}

static inline void fixture_op_end(struct fixture *fixture, uint64_t at_ns, uint32_t thread, uint32_t record)
{
	struct event event = {.id = EVENT_OP_END};

	event.op_end.record = record;
	fixture_event(fixture, at_ns, thread, &event);
}

/* source: enum range_source. domain NULL: none. */
static inline void fixture_push(struct fixture *fixture, uint64_t at_ns, uint32_t thread, const char *name,
				const char *domain, uint32_t source)
{
	struct event event = {.id = EVENT_RANGE_PUSH};

	event.range_push.name = fixture_label(fixture, name);
	event.range_push.domain = domain ? fixture_label(fixture, domain) : 0;
	event.range_push.source = source;
	fixture_event(fixture, at_ns, thread, &event);
}

static inline void fixture_pop(struct fixture *fixture, uint64_t at_ns, uint32_t thread, const char *domain,
			       uint32_t source)
{
	struct event event = {.id = EVENT_RANGE_POP};

	event.range_pop.domain = domain ? fixture_label(fixture, domain) : 0;
	event.range_pop.source = source;
	fixture_event(fixture, at_ns, thread, &event);
}

static inline void fixture_tensor(struct fixture *fixture, uint64_t at_ns, uint32_t thread, uint64_t address,
				  uint64_t bytes, bool is_free)
{
	struct event event = {.id = EVENT_TENSOR};

	event.tensor.address = address;
	event.tensor.bytes = bytes;
	event.tensor.is_free = is_free;
	fixture_event(fixture, at_ns, thread, &event);
}

static inline uint32_t fixture_module(struct fixture *fixture, const char *path)
{
	size_t n = fixture->modules.n_path;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(fixture->path[i], path) == 0)
			return (uint32_t)i;
	}
	fixture->path[n] = strdup(path);
	fixture->bias[n] = fixture->start[n] = FIXTURE_BASE * (n + 1);
	fixture->end[n] = fixture->start[n] + FIXTURE_BASE;
	fixture->modules.n_path = fixture->modules.n_bias = n + 1;
	fixture->modules.n_start = fixture->modules.n_end = n + 1;
	return (uint32_t)n;
}

/* "%function:line": a line of Python, in function.py. Returns the function's number, and the line. */
static inline uint32_t fixture_function(struct fixture *fixture, const char *frame, uint64_t *line)
{
	uint32_t n = (uint32_t)fixture->functions.n_name;
	const char *colon = strchr(frame, ':');

	*line = strtoull(colon + 1, NULL, 10);
	fixture->function[n] = strndup(frame + 1, (size_t)(colon - frame - 1));
	if (asprintf(&fixture->file[n], "%s.py", fixture->function[n]) < 0)
		abort();
	fixture->first_line[n] = 1;
	fixture->functions.n_name = fixture->functions.n_file = fixture->functions.n_first_line = n + 1;
	return n;
}

/* "function@/path/of/module"; "?@/path": no symbol; "function": no module. "%function:line". A frame with the same text is the same. */
static inline uint32_t fixture_address(struct fixture *fixture, const char *frame, uint32_t flags)
{
	uint32_t n = (uint32_t)fixture->addresses.n_ip;
	const char *at = strchr(frame, '@');

	for (uint32_t i = 0; i < n; i++) {
		if (strcmp(fixture->frame[i], frame) == 0)
			return i;
	}
	fixture->frame[n] = strdup(frame);
	fixture->module[n] = at ? fixture_module(fixture, at + 1) : CHANNEL_NO_MODULE;
	fixture->ip[n] = (at ? fixture->bias[fixture->module[n]] : 0x7000) + (n + 1) * 0x100;
	fixture->flags[n] = flags;
	fixture->addresses.n_ip = fixture->addresses.n_flags = fixture->addresses.n_module = n + 1;
	if (*frame == '%') {
		fixture->flags[n] = ADDRESS_PYTHON;
		fixture->module[n] = fixture_function(fixture, frame, &fixture->ip[n]);
		return n;
	}
	if (*frame != '?') {
		size_t symbol = fixture->symbols.n_name;

		fixture->name[symbol] = at ? strndup(frame, (size_t)(at - frame)) : strdup(frame);
		fixture->address[symbol] = n;
		fixture->symbol[symbol] = (uint32_t)symbol;
		fixture->offset[symbol] = 0x10;
		fixture->symbols.n_name = fixture->symbols.n_address = symbol + 1;
		fixture->symbols.n_symbol = fixture->symbols.n_offset = symbol + 1;
	}
	return n;
}

/* Frames with a blank between, innermost first. Returns the stack's number. */
static inline uint32_t fixture_stack(struct fixture *fixture, const char *frames)
{
	char *copy = strdup(frames), *last;
	uint32_t parent = 0;

	while (*copy) {
		uint32_t address, n = (uint32_t)fixture->stacks.n_parent, found = 0;

		last = strrchr(copy, ' ');
		address = fixture_address(fixture, last ? last + 1 : copy, ADDRESS_RETURN);
		*(last ? last : copy) = '\0';
		for (uint32_t i = 0; i < n; i++) {
			if (fixture->parent[i] == parent && fixture->node[i] == address)
				found = i + 1;
		}
		if (!found) {
			fixture->parent[n] = parent;
			fixture->node[n] = address;
			fixture->stacks.n_parent = fixture->stacks.n_address = n + 1;
			found = n + 1;
		}
		parent = found;
	}
	free(copy);
	return parent;
}

enum {
	ALLOCS,
	ALLOC_BYTES,
	TEMPORARY,
	TEMPORARY_BYTES,
	BASE_BLOCKS,
	BASE_BYTES,
	LIVE_BLOCKS,
	LIVE_BYTES,
	LIVE_USABLE,
	LIVE_FIRST,
	LIVE_LAST,
	LIVE_INHERITED,
	LIVE_INHERITED_BYTES
};

/* A row of StackTotals; also counted as allocated what base and delta are together. */
static inline void fixture_total(struct fixture *fixture, uint32_t stack, uint32_t seen, uint64_t base_blocks,
				 uint64_t base_bytes, int64_t delta_blocks, int64_t delta_bytes)
{
	Torsh__StackTotals *totals = &fixture->totals;
	size_t i = totals->n_stack;

	fixture->total_stack[i] = stack;
	fixture->seen[i] = seen;
	fixture->columns[ALLOCS][i] = base_blocks + (delta_blocks > 0 ? (uint64_t)delta_blocks : 0);
	fixture->columns[ALLOC_BYTES][i] = base_bytes + (delta_bytes > 0 ? (uint64_t)delta_bytes : 0);
	fixture->columns[BASE_BLOCKS][i] = base_blocks;
	fixture->columns[BASE_BYTES][i] = base_bytes;
	fixture->signed_columns[0][i] = delta_blocks;
	fixture->signed_columns[1][i] = delta_bytes;
	totals->n_stack = totals->n_seen = totals->n_allocs = totals->n_alloc_bytes = i + 1;
	totals->n_temporary = totals->n_temporary_bytes = totals->n_base_blocks = totals->n_base_bytes = i + 1;
	totals->n_delta_blocks = totals->n_delta_bytes = i + 1;
}

static inline void fixture_live(struct fixture *fixture, uint32_t stack, uint64_t blocks, uint64_t bytes)
{
	Torsh__Live *live = &fixture->live;
	size_t i = live->n_stack;

	fixture->live_stack[i] = stack;
	fixture->columns[LIVE_BLOCKS][i] = blocks;
	fixture->columns[LIVE_BYTES][i] = bytes;
	fixture->columns[LIVE_USABLE][i] = bytes + 8 * blocks;
	fixture->columns[LIVE_FIRST][i] = 1000 * (i + 1);
	fixture->columns[LIVE_LAST][i] = 2000 * (i + 1);
	live->n_stack = live->n_blocks = live->n_bytes = live->n_usable_bytes = i + 1;
	live->n_first_ns = live->n_last_ns = live->n_inherited_blocks = live->n_inherited_bytes = i + 1;
}

/* Survivors of 64 steps, 48 of them late, by the user's marks. */
static inline void fixture_survivors(struct fixture *fixture, uint32_t stack, uint64_t parts, uint64_t blocks,
				     uint64_t bytes, int is_tensor)
{
	Torsh__Growth *growth = &fixture->growth;
	size_t i = growth->n_stack;

	growth->has_rule = growth->has_n_steps = growth->has_part_count = growth->has_late_steps = 1;
	growth->rule = 3;
	growth->n_steps = 65;
	growth->part_count = 64;
	growth->late_steps = 48;
	fixture->grown_stack[i] = stack;
	fixture->parts[i] = parts;
	fixture->late_blocks[i] = blocks;
	fixture->late_bytes[i] = bytes;
	fixture->is_tensor[i] = is_tensor;
	growth->n_stack = growth->n_parts = growth->n_late_blocks = growth->n_late_bytes = growth->n_is_tensor = i + 1;
}

static inline void fixture_point(struct fixture *fixture)
{
	fixture->modules.path = fixture->path;
	fixture->modules.bias = fixture->bias;
	fixture->modules.start = fixture->start;
	fixture->modules.end = fixture->end;
	fixture->functions.name = fixture->function;
	fixture->functions.file = fixture->file;
	fixture->functions.first_line = fixture->first_line;
	fixture->addresses.ip = fixture->ip;
	fixture->addresses.flags = fixture->flags;
	fixture->addresses.module = fixture->module;
	fixture->symbols.name = fixture->name;
	fixture->symbols.address = fixture->address;
	fixture->symbols.symbol = fixture->symbol;
	fixture->symbols.offset = fixture->offset;
	fixture->stacks.parent = fixture->parent;
	fixture->stacks.address = fixture->node;
	fixture->totals.stack = fixture->total_stack;
	fixture->totals.seen = fixture->seen;
	fixture->totals.allocs = fixture->columns[ALLOCS];
	fixture->totals.alloc_bytes = fixture->columns[ALLOC_BYTES];
	fixture->totals.temporary = fixture->columns[TEMPORARY];
	fixture->totals.temporary_bytes = fixture->columns[TEMPORARY_BYTES];
	fixture->totals.base_blocks = fixture->columns[BASE_BLOCKS];
	fixture->totals.base_bytes = fixture->columns[BASE_BYTES];
	fixture->totals.delta_blocks = fixture->signed_columns[0];
	fixture->totals.delta_bytes = fixture->signed_columns[1];
	fixture->live.stack = fixture->live_stack;
	fixture->live.blocks = fixture->columns[LIVE_BLOCKS];
	fixture->live.bytes = fixture->columns[LIVE_BYTES];
	fixture->live.usable_bytes = fixture->columns[LIVE_USABLE];
	fixture->live.first_ns = fixture->columns[LIVE_FIRST];
	fixture->live.last_ns = fixture->columns[LIVE_LAST];
	fixture->live.inherited_blocks = fixture->columns[LIVE_INHERITED];
	fixture->live.inherited_bytes = fixture->columns[LIVE_INHERITED_BYTES];
	fixture->growth.stack = fixture->grown_stack;
	fixture->growth.parts = fixture->parts;
	fixture->growth.late_blocks = fixture->late_blocks;
	fixture->growth.late_bytes = fixture->late_bytes;
	fixture->growth.is_tensor = fixture->is_tensor;
	fixture->threads.tid = fixture->tid;
	fixture->threads.name = fixture->thread_name;
	fixture->threads.start_ns = fixture->threads.end_ns = fixture->threads.allocs = fixture->zeros;
	fixture->threads.alloc_bytes = fixture->threads.frees = fixture->threads.dropped = fixture->zeros;
	fixture->live.has_usable_is_known = fixture->live.usable_is_known = 1;
}

typedef int (*fixture_take)(void *sink, const Torsh__Chunk *chunk);

/* Of a program that was not followed there is only a row. */
static inline int fixture_give_unfollowed(struct fixture *fixture, fixture_take take, void *sink)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Unfollowed row = TORSH__UNFOLLOWED__INIT, *rows = &row;

	row.process = &fixture->process;
	row.reason = (char *)(uintptr_t)fixture->not_followed;
	chunk.n_unfollowed = 1;
	chunk.unfollowed = &rows;
	return take(sink, &chunk);
}

/* Hand all that was made, as one chunk, to take. */
static inline int fixture_give(struct fixture *fixture, fixture_take take, void *sink)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Modules *modules = &fixture->modules;
	Torsh__Functions *functions = &fixture->functions;
	Torsh__Addresses *addresses = &fixture->addresses;
	Torsh__Symbols *symbols = &fixture->symbols;
	Torsh__Stacks *stacks = &fixture->stacks;
	Torsh__StackTotals *totals = &fixture->totals;
	Torsh__Live *live = &fixture->live;
	Torsh__Growth *growth = &fixture->growth;
	Torsh__Heap *heap = &fixture->heap;
	Torsh__Process *process = &fixture->process;
	Torsh__Threads *threads = &fixture->threads;
	Torsh__Timeline *timeline = &fixture->timeline;

	fixture_point(fixture);
	if (fixture->not_followed)
		return fixture_give_unfollowed(fixture, take, sink);
	chunk.n_process = chunk.n_modules = chunk.n_addresses = chunk.n_symbols = chunk.n_stacks = 1;
	chunk.n_functions = chunk.n_stack_totals = chunk.n_live = chunk.n_heap = chunk.n_growth = 1;
	chunk.process = &process;
	chunk.modules = &modules;
	chunk.functions = &functions;
	chunk.addresses = &addresses;
	chunk.symbols = &symbols;
	chunk.stacks = &stacks;
	chunk.stack_totals = &totals;
	chunk.live = &live;
	chunk.heap = &heap;
	chunk.growth = &growth;
	if (fixture->threads.n_tid) {
		chunk.n_threads = 1;
		chunk.threads = &threads;
	}
	if (fixture->writer && torsh_timeline_count(fixture->writer)) {
		timeline->has_n_events = timeline->has_columns = 1;
		if (torsh_timeline_take(fixture->writer, &timeline->n_events, &timeline->columns.data,
					&timeline->columns.len))
			abort();
		chunk.n_timeline = 1;
		chunk.timeline = &timeline;
	}
	return take(sink, &chunk);
}

static inline int fixture_take_profile(void *profile, const Torsh__Chunk *chunk)
{
	return torsh_profile_apply(profile, chunk);
}

static inline int fixture_take_file(void *file, const Torsh__Chunk *chunk)
{
	return torsh_recording_append(file, (Torsh__Chunk *)(uintptr_t)chunk, RECORDING_LAST);
}

/* The session's first chunk, or its last. */
static inline int fixture_give_session(fixture_take take, void *sink, uint64_t start_realtime_ns)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Session session = TORSH__SESSION__INIT;

	session.has_format = session.has_start_realtime_ns = 1;
	session.format = 1;
	session.start_realtime_ns = start_realtime_ns;
	session.agent_version = "test";
	session.host = "host";
	session.record = "folded";
	chunk.session = &session;
	return take(sink, &chunk);
}

static inline int fixture_give_end(fixture_take take, void *sink)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__End end = TORSH__END__INIT;

	end.has_complete = end.complete = 1;
	end.has_at_ns = 1;
	end.at_ns = 6000000000u;
	chunk.end = &end;
	return take(sink, &chunk);
}

/* Write a whole recording with one or more processes to path. */
static inline void fixture_write(const char *path, struct fixture *fixtures, size_t n, uint64_t start_realtime_ns)
{
	const struct recording_limits limits = {0};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct recording_file *file = torsh_recording_create(fd, &limits, start_realtime_ns);

	if (!file || fixture_give_session(fixture_take_file, file, start_realtime_ns) < 0)
		abort();
	for (size_t i = 0; i < n; i++) {
		if (fixture_give(&fixtures[i], fixture_take_file, file) < 0)
			abort();
	}
	if (fixture_give_end(fixture_take_file, file) < 0)
		abort();
	torsh_recording_finish(file);
	close(fd);
}

#endif
