/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Why a recording isn't complete: all reasons are in it, each once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/recording/read.h"
#include "tools/writer/output/checkpoints.h"

#define N_REASONS 30u

static void every_reason_is_in_the_recording(void **state)
{
	char path[] = "/tmp/torsh-ledger-XXXXXX", error[256], why[16];
	int fd = mkstemp(path);
	struct checkpoints checkpoints;
	struct recording *recording;

	(void)state;
	assert_int_equal(torsh_checkpoints_open(&checkpoints, fd, &(struct recording_limits){0},
						&(struct flight_limit){0}, 0, UINT64_C(1000000000)),
			 0);
	torsh_rows_session(checkpoints.file, &(struct rows_session){.start_realtime_ns = 1});
	for (uint32_t i = 0; i < 2 * N_REASONS; i++) {
		snprintf(why, sizeof(why), "%u", i % N_REASONS);
		torsh_checkpoints_give_reason(&checkpoints, "this is reason %s", why);
	}
	torsh_checkpoints_close(&checkpoints, 0, 1);
	torsh_checkpoints_destroy(&checkpoints);
	recording = torsh_recording_read(path, 0, 0, error, sizeof(error));
	assert_non_null(recording);
	assert_int_equal(recording->n_reasons, N_REASONS);
	assert_string_equal(recording->reasons[N_REASONS - 1], "this is reason 29");
	torsh_recording_destroy(recording);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_is_in_the_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
