/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writes a recording of a process with any number of allocation sites, for tests of the readers'
 * bounds:
 *
 *	many_sites FILE STACKS [MOMENTS]
 *
 * Half of the stacks are leaves that hold blocks at the peak and at the end, each of a size of its
 * own, below others that fork out; their frames are FUNCTIONS lines of Python. With MOMENTS there
 * are so many regular ones, each with a few changes. Prints the bytes of the peak.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/wire/channel.h"
#include "tools/store/recording_write.h"

#define FUNCTIONS 50000u
#define BATCH (1u << 16)
#define FORK 40u /* stacks below each other one */
#define CHANGES 2000u /* of a moment */
#define END_NS UINT64_C(600000000000)

static struct recording_file *file;
static uint32_t numbers[BATCH], others[BATCH], zeros_32[BATCH];
static uint64_t sizes[BATCH], ones[BATCH], zeros[BATCH], times[BATCH];
static int64_t none[BATCH];
static char *texts[FUNCTIONS], *files[FUNCTIONS];

#define COLUMN(row, column, n, values) ((row)->n_##column = (n), (row)->column = (values))
#define SET(row, field, value) ((row)->has_##field = 1, (row)->field = (value))
#define APPEND(row, member)                                                \
	do {                                                               \
		Torsh__Chunk chunk_ = TORSH__CHUNK__INIT;                  \
                                                                           \
		SET(&(row), process, 1);                                   \
		chunk_.n_##member = 1;                                     \
		chunk_.member = (__typeof__(&(row))[]){&(row)};            \
		if (torsh_recording_append(file, &chunk_, RECORDING_LAST)) \
			abort();                                           \
	} while (0)

static uint64_t size_of(uint32_t stack)
{
	return 16 + (uint64_t)stack * 2654435761u % 100000;
}

static void put_session(void)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Session session = TORSH__SESSION__INIT;

	SET(&session, format, 3);
	SET(&session, start_realtime_ns, UINT64_C(1700000000000000000));
	session.record = "folded";
	chunk.session = &session;
	if (torsh_recording_append(file, &chunk, RECORDING_LAST))
		abort();
}

static void put_code(void)
{
	Torsh__Functions functions = TORSH__FUNCTIONS__INIT;
	static uint32_t lines[FUNCTIONS];

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		if (asprintf(&texts[i], "Class_%" PRIu32 ".method_of_some_length_%" PRIu32, i % 997,
			     i) < 0 ||
		    asprintf(&files[i], "/srv/project/package_%" PRIu32 "/module_%" PRIu32 ".py",
			     i % 97, i % 4999) < 0)
			abort();
	}
	COLUMN(&functions, name, FUNCTIONS, texts);
	COLUMN(&functions, file, FUNCTIONS, files);
	COLUMN(&functions, first_line, FUNCTIONS, lines);
	SET(&functions, first, 0);
	APPEND(functions, functions);
	for (uint32_t first = 0; first < FUNCTIONS; first += BATCH) {
		Torsh__Addresses addresses = TORSH__ADDRESSES__INIT;
		uint32_t n = FUNCTIONS - first < BATCH ? FUNCTIONS - first : BATCH;

		for (uint32_t i = 0; i < n; i++) {
			sizes[i] = 1 + i % 2000;
			others[i] = ADDRESS_PYTHON;
			numbers[i] = first + i;
		}
		SET(&addresses, first, first);
		COLUMN(&addresses, ip, n, sizes);
		COLUMN(&addresses, flags, n, others);
		COLUMN(&addresses, module, n, numbers);
		APPEND(addresses, addresses);
	}
}

static void put_stacks(uint32_t first, uint32_t n)
{
	Torsh__Stacks stacks = TORSH__STACKS__INIT;

	for (uint32_t i = 0; i < n; i++) {
		numbers[i] = (first + i - 1) / FORK;
		others[i] = (uint32_t)((first + i) * UINT64_C(2654435761) % FUNCTIONS);
	}
	SET(&stacks, first, first);
	COLUMN(&stacks, parent, n, numbers);
	COLUMN(&stacks, address, n, others);
	APPEND(stacks, stacks);
}

static void put_totals(uint32_t first, uint32_t n)
{
	Torsh__StackTotals totals = TORSH__STACK_TOTALS__INIT;
	Torsh__Live live = TORSH__LIVE__INIT;

	for (uint32_t i = 0; i < n; i++) {
		numbers[i] = first + i;
		sizes[i] = size_of(first + i);
		ones[i] = 1;
	}
	COLUMN(&totals, stack, n, numbers);
	COLUMN(&totals, allocs, n, ones);
	COLUMN(&totals, alloc_bytes, n, sizes);
	COLUMN(&totals, temporary, n, zeros);
	COLUMN(&totals, temporary_bytes, n, zeros);
	COLUMN(&totals, seen, n, zeros_32);
	COLUMN(&totals, base_blocks, n, ones);
	COLUMN(&totals, base_bytes, n, sizes);
	COLUMN(&totals, delta_blocks, n, none);
	COLUMN(&totals, delta_bytes, n, none);
	APPEND(totals, stack_totals);
	for (uint32_t i = 0; i < n; i++) {
		numbers[i] = first + i;
		times[i] = (first + i) * UINT64_C(1000);
	}
	SET(&live, at_ns, END_NS);
	COLUMN(&live, stack, n, numbers);
	COLUMN(&live, blocks, n, ones);
	COLUMN(&live, bytes, n, sizes);
	COLUMN(&live, first_ns, n, times);
	memcpy(none, times, sizeof(none));
	COLUMN(&live, last_ns, n, (uint64_t *)none);
	APPEND(live, live);
	memset(none, 0, sizeof(none));
}

/* The leaves come to be in equal parts, so many at each moment. */
static void put_moments(uint32_t first, uint32_t n_leaves, uint32_t n)
{
	uint64_t bytes = 0, blocks = 0;

	for (uint32_t i = 0; i < n; i++) {
		Torsh__Moments row = TORSH__MOMENTS__INIT;
		uint32_t number = i + 1, piece = 0, n_changes = CHANGES, none_32 = 0;
		uint64_t at_ns = END_NS / (n + 1) * (i + 1);

		for (uint32_t k = 0; k < CHANGES; k++) {
			numbers[k] = first + (uint32_t)(((uint64_t)i * CHANGES + k) % n_leaves);
			sizes[k] = size_of(numbers[k]);
			ones[k] = 1;
			bytes += sizes[k];
			blocks++;
		}
		COLUMN(&row, number, 1, &number);
		COLUMN(&row, piece, 1, &piece);
		COLUMN(&row, at_ns, 1, &at_ns);
		COLUMN(&row, kind, 1, &none_32);
		COLUMN(&row, name, 1, &none_32);
		COLUMN(&row, bytes, 1, &bytes);
		COLUMN(&row, blocks, 1, &blocks);
		COLUMN(&row, n_stacks, 1, &n_changes);
		COLUMN(&row, stack, CHANGES, numbers);
		COLUMN(&row, stack_bytes, CHANGES, sizes);
		COLUMN(&row, stack_blocks, CHANGES, ones);
		APPEND(row, moments);
	}
}

static void put_heap(uint64_t bytes, uint64_t blocks)
{
	Torsh__Heap heap = TORSH__HEAP__INIT;
	Torsh__Process process = TORSH__PROCESS__INIT;
	Torsh__Series series = TORSH__SERIES__INIT;

	SET(&heap, peak_number, 0);
	SET(&heap, peak_bytes, bytes);
	SET(&heap, peak_blocks, blocks);
	SET(&heap, peak_ns, END_NS - 1);
	SET(&heap, current_bytes, bytes);
	SET(&heap, current_blocks, blocks);
	SET(&heap, allocs, blocks);
	SET(&heap, alloc_bytes, bytes);
	APPEND(heap, heap);
	SET(&process, pid, 1000);
	SET(&process, end, TORSH__PROCESS__END_KIND__EXITED);
	SET(&process, end_code, 0);
	SET(&process, end_ns, END_NS);
	process.program = "/srv/project/server";
	APPEND(process, process);
	for (uint32_t i = 0; i < 1024; i++) {
		times[i] = END_NS / 1024 * i;
		sizes[i] = bytes / 1024 * i;
	}
	COLUMN(&series, at_ns, 1024, times);
	COLUMN(&series, heap_bytes, 1024, sizes);
	COLUMN(&series, mapped_bytes, 1024, sizes);
	COLUMN(&series, rss_bytes, 1024, sizes);
	APPEND(series, series);
}

static void put_end(void)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__End end = TORSH__END__INIT;

	SET(&end, complete, 1);
	SET(&end, at_ns, END_NS);
	chunk.end = &end;
	if (torsh_recording_append(file, &chunk, RECORDING_LAST))
		abort();
}

int main(int argc, char **argv)
{
	const struct recording_limits limits = {0};
	uint32_t n_stacks = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0, first;
	uint32_t n_moments = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	uint64_t bytes = 0;
	int fd;

	if (n_stacks < 2 * CHANGES)
		return 2;
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	file = torsh_recording_create(fd, &limits, 1);
	first = n_stacks / 2;
	put_session();
	put_code();
	for (uint32_t i = 1; i < n_stacks; i += BATCH)
		put_stacks(i, n_stacks - i < BATCH ? n_stacks - i : BATCH);
	for (uint32_t i = first; i < n_stacks; i += BATCH)
		put_totals(i, n_stacks - i < BATCH ? n_stacks - i : BATCH);
	put_moments(first, n_stacks - first, n_moments);
	for (uint32_t i = first; i < n_stacks; i++)
		bytes += size_of(i);
	put_heap(bytes, n_stacks - first);
	put_end();
	torsh_recording_finish(file);
	close(fd);
	printf("%" PRIu64 "\n", bytes);
	return 0;
}
