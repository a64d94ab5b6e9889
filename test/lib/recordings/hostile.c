/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writes recordings that nobody should believe: some KB that would make a reader take memory or
 * time without end.
 *
 *	hostile FILE KIND [TEXT]	KIND: see kinds below; none, or another one: their
 *					names on stdout
 *
 * With TEXT as its argument `texts` is a recording of a leak in a module of that path, by a host of
 * that name too.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/store/recording_write.h"
#include "tools/store/timeline_columns.h"

#define N_PROCESSES 200u
#define N_MANY (1u << 19)
#define LAST_STACK ((1u << 27) - 2)

static struct recording_file *file;
static const char *text = "";
static uint32_t numbers[N_MANY], ones[N_MANY];
static uint64_t longs[N_MANY];
static int64_t signed_longs[N_MANY];
static char *texts[N_MANY];

static void append(Torsh__Chunk *chunk)
{
	if (torsh_recording_append(file, chunk, RECORDING_LAST))
		abort();
}

/* One message as a chunk of its own, again and again for each process. */
#define FOR_EACH_PROCESS(row, member)                          \
	for (uint32_t p = 1; p <= N_PROCESSES; p++) {          \
		Torsh__Chunk chunk = TORSH__CHUNK__INIT;       \
		(row).has_process = 1;                         \
		(row).process = p;                             \
		chunk.n_##member = 1;                          \
		chunk.member = (__typeof__(&(row))[]){&(row)}; \
		append(&chunk);                                \
	}
#define COLUMN(row, column, n, values) ((row)->n_##column = (n), (row)->column = (values))

static void put_stacks(uint32_t first, uint32_t n, bool is_chain)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Stacks row = TORSH__STACKS__INIT;
	static uint32_t parents[N_MANY], addresses[N_MANY];

	for (uint32_t i = 0; i < n; i++)
		parents[i] = is_chain ? first + i - 1 : 0;
	row.has_process = row.has_first = row.process = 1;
	row.first = first;
	COLUMN(&row, parent, n, parents);
	COLUMN(&row, address, n, addresses);
	chunk.n_stacks = 1;
	chunk.stacks = (Torsh__Stacks *[]){&row};
	append(&chunk);
}

static void put_live(uint32_t process, uint32_t n)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Live row = TORSH__LIVE__INIT;
	static uint64_t first[N_MANY], last[N_MANY];
	static uint32_t stacks[N_MANY];

	memcpy(stacks, numbers, n * sizeof(*stacks));
	row.has_process = 1;
	row.process = process;
	COLUMN(&row, stack, n, stacks);
	COLUMN(&row, blocks, n, longs);
	COLUMN(&row, bytes, n, longs);
	COLUMN(&row, usable_bytes, n, longs);
	COLUMN(&row, first_ns, n, first);
	COLUMN(&row, last_ns, n, last);
	chunk.n_live = 1;
	chunk.live = (Torsh__Live *[]){&row};
	append(&chunk);
}

static void put_process(uint32_t number)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Process row = TORSH__PROCESS__INIT;

	row.has_process = row.has_pid = row.has_end = row.has_end_code = 1;
	row.process = row.pid = number;
	row.end = TORSH__PROCESS__END_KIND__EXITED;
	row.program = "/opt/program";
	chunk.n_process = 1;
	chunk.process = (Torsh__Process *[]){&row};
	append(&chunk);
}

static void addresses_that_are_far(void)
{
	Torsh__Addresses row = TORSH__ADDRESSES__INIT;
	uint64_t ip = 1;

	row.has_first = 1;
	row.first = CHANNEL_ADDRESSES - 1;
	COLUMN(&row, flags, 1, ones);
	COLUMN(&row, module, 1, ones);
	for (uint32_t p = 1; p <= N_PROCESSES; p++) {
		Torsh__Chunk chunk = TORSH__CHUNK__INIT;

		/* Writing it makes another column of it. */
		row.has_process = 1;
		row.process = p;
		COLUMN(&row, ip_step, 0, NULL);
		COLUMN(&row, ip, 1, &ip);
		chunk.n_addresses = 1;
		chunk.addresses = (Torsh__Addresses *[]){&row};
		append(&chunk);
	}
}

static void functions_that_are_far(void)
{
	Torsh__Functions row = TORSH__FUNCTIONS__INIT;

	row.has_first = 1;
	row.first = CHANNEL_CODES - 1;
	COLUMN(&row, name, 1, texts);
	COLUMN(&row, file, 1, texts);
	COLUMN(&row, first_line, 1, ones);
	FOR_EACH_PROCESS(row, functions)
}

static void stacks_that_are_far(void)
{
	for (uint32_t i = 0; i < N_PROCESSES; i++)
		put_stacks(LAST_STACK, 1, false);
}

static void threads_that_are_far(void)
{
	for (uint32_t i = 1; i <= N_PROCESSES; i++) {
		Torsh__Threads row = TORSH__THREADS__INIT;
		uint32_t far = i << 20;

		COLUMN(&row, number, 1, &far);
		COLUMN(&row, tid, 1, ones);
		COLUMN(&row, name, 1, texts);
		COLUMN(&row, start_ns, 1, longs);
		COLUMN(&row, end_ns, 1, longs);
		COLUMN(&row, allocs, 1, longs);
		COLUMN(&row, alloc_bytes, 1, longs);
		COLUMN(&row, frees, 1, longs);
		COLUMN(&row, dropped, 1, longs);
		row.has_process = 1;
		row.process = 1;
		append(&(Torsh__Chunk){.base = PROTOBUF_C_MESSAGE_INIT(&torsh__chunk__descriptor),
				       .n_threads = 1,
				       .threads = (Torsh__Threads *[]){&row}});
	}
}

static void rows_of_stacks_that_are_far(void)
{
	numbers[0] = LAST_STACK;
	for (uint32_t p = 1; p <= N_PROCESSES; p++)
		put_live(p, 1);
}

static void mappings_of_stacks_that_are_far(void)
{
	Torsh__Mappings row = TORSH__MAPPINGS__INIT;

	numbers[0] = LAST_STACK;
	COLUMN(&row, stack, 1, numbers);
	COLUMN(&row, seen, 1, ones);
	COLUMN(&row, base_pieces, 1, signed_longs);
	COLUMN(&row, base_bytes, 1, signed_longs);
	COLUMN(&row, delta_pieces, 1, signed_longs);
	COLUMN(&row, delta_bytes, 1, signed_longs);
	COLUMN(&row, total_bytes, 1, longs);
	FOR_EACH_PROCESS(row, mappings)
}

/* Each of half a million live rows is of a stack that is hundreds of thousands deep. */
static void stacks_that_are_deep(void)
{
	put_stacks(1, N_MANY - 1, true);
	for (uint32_t i = 0; i < N_MANY; i++)
		numbers[i] = i;
	put_live(1, N_MANY);
}

static void live_rows_again_and_again(void)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	static Torsh__Live *rows[N_MANY];
	Torsh__Live row = TORSH__LIVE__INIT;

	put_stacks(1, N_MANY - 1, false);
	numbers[0] = N_MANY - 1;
	put_live(1, 1);
	row.has_process = row.process = 1;
	for (uint32_t i = 0; i < N_MANY; i++)
		rows[i] = &row;
	chunk.n_live = N_MANY;
	chunk.live = rows;
	append(&chunk);
}

/* Each has the whole of a deep stack. */
static void moments_without_end(void)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Moments row = TORSH__MOMENTS__INIT;
	static uint32_t zeros[N_MANY], rising[N_MANY];

	put_stacks(1, N_MANY - 1, true);
	for (uint32_t i = 0; i < N_MANY; i++)
		rising[i] = i;
	row.has_process = row.process = 1;
	COLUMN(&row, number, N_MANY, rising);
	COLUMN(&row, piece, N_MANY, zeros);
	COLUMN(&row, at_ns, N_MANY, longs);
	COLUMN(&row, kind, N_MANY, zeros);
	COLUMN(&row, name, N_MANY, zeros);
	COLUMN(&row, bytes, N_MANY, longs);
	COLUMN(&row, blocks, N_MANY, longs);
	COLUMN(&row, n_stacks, N_MANY, ones);
	memcpy(numbers, rising, sizeof(numbers));
	COLUMN(&row, stack, N_MANY, numbers);
	COLUMN(&row, stack_bytes, N_MANY, longs);
	COLUMN(&row, stack_blocks, N_MANY, longs);
	chunk.n_moments = 1;
	chunk.moments = (Torsh__Moments *[]){&row};
	append(&chunk);
}

static void messages_that_are_empty(void)
{
	static Torsh__Process *rows[32 * N_MANY];
	Torsh__Process row = TORSH__PROCESS__INIT;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	for (uint32_t i = 0; i < 32 * N_MANY; i++)
		rows[i] = &row;
	chunk.n_process = 31 * N_MANY;
	chunk.process = rows;
	append(&chunk);
}

static void put_processes(bool is_backwards)
{
	static Torsh__Process rows[N_MANY], *pointers[N_MANY];
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	for (uint32_t i = 0; i < N_MANY; i++) {
		torsh__process__init(&rows[i]);
		rows[i].has_process = 1;
		rows[i].process = is_backwards ? N_MANY - i : i + 1;
		pointers[i] = &rows[i];
	}
	chunk.n_process = N_MANY;
	chunk.process = pointers;
	append(&chunk);
}

static void processes_without_number(void)
{
	put_processes(false);
}

static void processes_backwards(void)
{
	put_processes(true);
}

static void unfollowed_backwards(void)
{
	static Torsh__Unfollowed rows[N_MANY], *pointers[N_MANY];
	static Torsh__Process processes[N_MANY];
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	for (uint32_t i = 0; i < N_MANY; i++) {
		torsh__unfollowed__init(&rows[i]);
		torsh__process__init(&processes[i]);
		processes[i].has_process = 1;
		processes[i].process = N_MANY - i;
		rows[i].process = &processes[i];
		pointers[i] = &rows[i];
	}
	chunk.n_unfollowed = N_MANY;
	chunk.unfollowed = pointers;
	append(&chunk);
}

/* A timeline with columns of zeros, except for the events' ids. */
static void put_timeline(uint32_t n_events, uint32_t id)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Timeline row = TORSH__TIMELINE__INIT;
	uint8_t *bytes = calloc(n_events + 16u, 1), *at = bytes;

	*at++ = 1;
	*at++ = 0;
	for (uint32_t n = n_events + 1; n || at == bytes + 2; n >>= 7)
		*at++ = (uint8_t)(n & 0x7f) | (n > 0x7f ? 0x80 : 0);
	*at++ = (uint8_t)(id << 1 & 0x7f) | 0x80;
	*at = (uint8_t)(id >> 6);
	row.has_process = row.process = row.has_n_events = row.has_columns = 1;
	row.n_events = n_events;
	row.columns.data = bytes;
	row.columns.len = (size_t)(at - bytes) + n_events;
	chunk.n_timeline = 1;
	chunk.timeline = (Torsh__Timeline *[]){&row};
	append(&chunk);
	free(bytes);
}

static void ranges_that_never_end(void)
{
	put_timeline(1u << 20, EVENT_RANGE_PUSH);
}

static void operators_that_never_end(void)
{
	put_timeline(1u << 20, EVENT_OP_BEGIN);
}

static void ranges_that_never_began(void)
{
	put_timeline(1u << 20, EVENT_RANGE_POP);
}

static void kernels_without_number(void)
{
	put_timeline(1u << 20, EVENT_KERNEL);
}

static void tensors_without_number(void)
{
	put_timeline(1u << 20, EVENT_TENSOR);
}

/* The texts in a recording, in names of files, in cells of tables: the caller's text. */
static void said_texts(void)
{
	Torsh__Modules modules = TORSH__MODULES__INIT;
	Torsh__Functions functions = TORSH__FUNCTIONS__INIT;
	Torsh__Addresses addresses = TORSH__ADDRESSES__INIT;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	uint64_t ip = 4096;
	char *formula = (char *)(uintptr_t) "=HYPERLINK(\"http://x\")";

	texts[0] = (char *)(uintptr_t)text;
	modules.has_process = modules.process = functions.has_process = functions.process = 1;
	addresses.has_process = addresses.process = 1;
	longs[0] = 0;
	longs[1] = 1 << 20;
	COLUMN(&modules, path, 1, texts);
	COLUMN(&modules, bias, 1, longs);
	COLUMN(&modules, start, 1, longs);
	COLUMN(&modules, end, 1, longs + 1);
	COLUMN(&functions, name, 1, &formula);
	COLUMN(&functions, file, 1, texts + 1);
	COLUMN(&functions, first_line, 1, numbers);
	COLUMN(&addresses, ip, 1, &ip);
	COLUMN(&addresses, flags, 1, numbers);
	COLUMN(&addresses, module, 1, numbers);
	chunk.n_modules = chunk.n_functions = chunk.n_addresses = 1;
	chunk.modules = (Torsh__Modules *[]){&modules};
	chunk.functions = (Torsh__Functions *[]){&functions};
	chunk.addresses = (Torsh__Addresses *[]){&addresses};
	append(&chunk);
	put_stacks(1, 1, false);
	numbers[0] = 1;
	longs[0] = 100;
	put_live(1, 1);
}

static void put_range(void)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Timeline row = TORSH__TIMELINE__INIT;
	struct timeline_writer *writer = torsh_timeline_create();
	struct timeline_event event = {
		.at_ns = 5, .event = {.id = EVENT_RANGE_PUSH, .range_push = {.name = 1}}};

	torsh_timeline_add(writer, &event);
	event.event.id = EVENT_OP_BEGIN;
	event.event.op_begin = (struct event_op_begin){.name = 1, .record = 1};
	torsh_timeline_add(writer, &event);
	row.has_process = row.process = row.has_n_events = row.has_columns = 1;
	torsh_timeline_take(writer, &row.n_events, &row.columns.data, &row.columns.len);
	chunk.n_timeline = 1;
	chunk.timeline = (Torsh__Timeline *[]){&row};
	append(&chunk);
	free(row.columns.data);
	torsh_timeline_destroy(writer);
}

static const struct {
	const char *name;
	void (*put)(void);
} kinds[] = {
	{"addresses_that_are_far", addresses_that_are_far},
	{"functions_that_are_far", functions_that_are_far},
	{"stacks_that_are_far", stacks_that_are_far},
	{"threads_that_are_far", threads_that_are_far},
	{"rows_of_stacks_that_are_far", rows_of_stacks_that_are_far},
	{"mappings_of_stacks_that_are_far", mappings_of_stacks_that_are_far},
	{"stacks_that_are_deep", stacks_that_are_deep},
	{"live_rows_again_and_again", live_rows_again_and_again},
	{"moments_without_end", moments_without_end},
	{"messages_that_are_empty", messages_that_are_empty},
	{"processes_without_number", processes_without_number},
	{"processes_backwards", processes_backwards},
	{"unfollowed_backwards", unfollowed_backwards},
	{"ranges_that_never_end", ranges_that_never_end},
	{"operators_that_never_end", operators_that_never_end},
	{"ranges_that_never_began", ranges_that_never_began},
	{"kernels_without_number", kernels_without_number},
	{"tensors_without_number", tensors_without_number},
};

static void put_session(void)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Session session = TORSH__SESSION__INIT;

	session.has_format = 1;
	session.format = RECORDING_FORMAT;
	session.host = (char *)(uintptr_t)text;
	chunk.session = &session;
	append(&chunk);
	for (uint32_t p = 1; p <= N_PROCESSES; p++)
		put_process(p);
}

static void put_end(void)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__End end = TORSH__END__INIT;

	end.has_complete = end.complete = 1;
	chunk.end = &end;
	append(&chunk);
}

int main(int argc, char **argv)
{
	const struct recording_limits limits = {0};
	void (*put)(void) = NULL;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc < 3)
			puts(kinds[i].name);
		else if (!strcmp(argv[2], kinds[i].name))
			put = kinds[i].put;
	}
	if (argc < 3)
		return 0;
	text = argc > 3 ? argv[3] : "";
	for (uint32_t i = 0; i < N_MANY; i++) {
		ones[i] = 1;
		longs[i] = 1;
		texts[i] = (char *)(uintptr_t) "";
	}
	file = torsh_recording_create(open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
				      &limits, 1);
	if (!file)
		return 2;
	put_session();
	if (put) {
		put();
	} else {
		said_texts();
		put_range();
	}
	put_end();
	torsh_recording_finish(file);
	return 0;
}
