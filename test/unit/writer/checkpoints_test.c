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
	struct ledger ledger;
	struct profile *profile;

	(void)state;
	assert_int_equal(torsh_ledger_open(&ledger, fd, &(struct recording_limits){0}, 0, UINT64_C(1000000000)), 0);
	torsh_rows_session(ledger.file, &(struct rows_session){.start_realtime_ns = 1});
	for (uint32_t i = 0; i < 2 * N_REASONS; i++) {
		snprintf(why, sizeof(why), "%u", i % N_REASONS);
		torsh_ledger_give_reason(&ledger, "this is reason %s", why);
	}
	torsh_ledger_close(&ledger, 0, 1);
	torsh_ledger_destroy(&ledger);
	profile = torsh_profile_read(path, 0, error, sizeof(error));
	assert_non_null(profile);
	assert_int_equal(profile->n_reasons, N_REASONS);
	assert_string_equal(profile->reasons[N_REASONS - 1], "this is reason 29");
	torsh_profile_destroy(profile);
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
