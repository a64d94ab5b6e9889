/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What checkpoints have is read only where last rows may be missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/recording/read.h"
#include "tools/store/recording_write.h"

static struct extent put_total(struct recording_file *file, uint32_t stack, uint64_t allocs,
			       enum recording_priority priority)
{
	Torsh__StackTotals row = TORSH__STACK_TOTALS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	int64_t no_change = 0;
	uint64_t none = 0;
	uint32_t seen = 0;
	struct extent extent;

	row.has_process = 1;
	row.process = 1;
	row.stack = &stack;
	row.allocs = &allocs;
	row.seen = &seen;
	row.alloc_bytes = row.temporary = row.temporary_bytes = &none;
	row.base_blocks = row.base_bytes = &none;
	row.delta_blocks = row.delta_bytes = &no_change;
	row.n_stack = row.n_allocs = row.n_seen = row.n_alloc_bytes = row.n_temporary = 1;
	row.n_temporary_bytes = row.n_base_blocks = row.n_base_bytes = 1;
	row.n_delta_blocks = row.n_delta_bytes = 1;
	chunk.n_stack_totals = 1;
	chunk.stack_totals = &rows;
	assert_int_equal(torsh_recording_put(file, &chunk, priority, &extent), 0);
	return extent;
}

/* A checkpoint with stacks 5 and 9, and last rows with stack 5. Returns where these are. */
static struct extent write_file(int fd, bool is_complete)
{
	const struct recording_limits limits = {0};
	struct recording_file *file = torsh_recording_create(fd, &limits, 12345);
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__End end = TORSH__END__INIT;
	struct extent last;

	put_total(file, 5, 3, RECORDING_CHECKPOINT);
	put_total(file, 9, 4, RECORDING_CHECKPOINT);
	last = put_total(file, 5, 7, RECORDING_LAST);
	end.has_complete = 1;
	end.complete = is_complete;
	chunk.end = &end;
	assert_int_equal(torsh_recording_append(file, &chunk, RECORDING_LAST), 0);
	torsh_recording_finish(file);
	return last;
}

/* Returns the allocations of stack 5, and 10 times those of stack 9. */
static uint64_t read_allocs(bool is_complete, bool is_damaged)
{
	char path[] = "/tmp/torsh-replaced-XXXXXX", error[256];
	int fd = mkstemp(path);
	struct recorded_total five, nine;
	struct recording *recording;
	struct extent last;

	assert_true(fd >= 0);
	last = write_file(fd, is_complete);
	if (is_damaged)
		assert_int_equal(pwrite(fd, "?", 1, (off_t)(last.offset + last.n_bytes - 1)), 1);
	recording = torsh_recording_read(path, 0, RECORDING_MOMENTS, error, sizeof(error));
	unlink(path);
	close(fd);
	assert_non_null(recording);
	assert_int_equal(recording->is_truncated, is_damaged);
	torsh_totals_find(&recording->processes[0]->totals, 5, &five);
	torsh_totals_find(&recording->processes[0]->totals, 9, &nine);
	torsh_recording_destroy(recording);
	return five.allocs + 10 * nine.allocs;
}

static void checkpoints_are_left_out_of_a_complete_recording(void **state)
{
	(void)state;
	assert_int_equal(read_allocs(true, false), 7);
}

static void checkpoints_are_read_where_the_end_is_not_complete(void **state)
{
	(void)state;
	assert_int_equal(read_allocs(false, false), 47);
}

static void checkpoints_stand_in_for_damaged_last_rows(void **state)
{
	(void)state;
	assert_int_equal(read_allocs(true, true), 43);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checkpoints_are_left_out_of_a_complete_recording),
		cmocka_unit_test(checkpoints_are_read_where_the_end_is_not_complete),
		cmocka_unit_test(checkpoints_stand_in_for_damaged_last_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
