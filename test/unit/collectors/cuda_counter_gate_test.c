/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The messages when counters cannot be read, and which kernels are treated as collectives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/process/text_buffer.h"
#include "agent/producer/label.h"
#include "collectors/cuda/counters/cuda_counter_gate.h"
#include "collectors/cuda/counters/cuda_counter_refusal.h"
#include "collectors/cuda/counters/cuda_counters.h"
#include "collectors/cuda/counters/cuda_counter_state.h"
#include "shim/cuda/cupti.h"

/* What they need of the rest of the agent. */
struct cupti_functions torsh_cupti;
struct counter_losses torsh_counter_losses;

uint32_t torsh_label(const char *bytes, size_t n)
{
	(void)bytes;
	(void)n;
	return 0;
}

static char path[] = "/tmp/torsh-admin-only-XXXXXX";

static const char *refusal(int result, const char *parameters)
{
	static char buffer[640];
	struct text text = TEXT_IN(buffer);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(parameters, file);
	fclose(file);
	buffer[0] = '\0';
	torsh_counter_refusal(&text, result, path);
	return buffer;
}

static void a_refusal_for_want_of_privileges_quotes_the_drivers_setting(void **state)
{
	static const char yes[] = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n",
			  no[] = "RmProfilingAdminOnly: 0\n";

	(void)state;
	assert_non_null(strstr(refusal(CUPTI_INSUFFICIENT_PRIVILEGES, yes),
			       "NVreg_RestrictProfilingToAdminUsers=0"));
	assert_non_null(
		strstr(refusal(CUPTI_INSUFFICIENT_PRIVILEGES, yes), "RmProfilingAdminOnly: 1"));
	assert_non_null(strstr(refusal(CUPTI_INSUFFICIENT_PRIVILEGES, no),
			       "the container or the virtual machine"));
	assert_null(strstr(refusal(CUPTI_INSUFFICIENT_PRIVILEGES, ""), "RmProfilingAdminOnly"));
	assert_null(strstr(refusal(CUPTI_HARDWARE_BUSY, yes), "RmProfilingAdminOnly"));
}

static void a_result_without_a_sentence_is_reported_by_its_number(void **state)
{
	(void)state;
	assert_string_equal(refusal(123, ""), "CUPTI's error 123");
}

static void kernels_that_talk_to_other_devices_are_collectives(void **state)
{
	static const char *const collectives[] = {
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
		"_ZN4vllm26cross_device_reduce_1stageIfLi2EEEvPNS_8RankDataE",
		"void one_shot_all_reduce_kernel<float, 4>(float**)",
	};
	static const char *const others[] = {
		"_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi",
		"sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32",
		"void at::native::reduce_kernel<512, 1>(float)",
		"triton_poi_fused_add_0",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++)
		assert_true(torsh_counter_is_collective(collectives[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(torsh_counter_is_collective(others[i]));
}

static void the_gate_lets_either_one_measure_or_many_launch(void **state)
{
	(void)state;
	assert_true(torsh_counter_gate_close_to_measure());
	assert_false(torsh_counter_gate_close_to_measure());
	torsh_counter_gate_open();
	torsh_counter_gate_enter();
	torsh_counter_gate_enter();
	assert_false(torsh_counter_gate_close_to_measure());
	torsh_counter_gate_leave();
	assert_false(torsh_counter_gate_close_to_measure());
	torsh_counter_gate_leave();
	assert_true(torsh_counter_gate_close_to_measure());
	torsh_counter_gate_open();
}

static void nothing_is_measured_behind_a_collective(void **state)
{
	enum { CONTEXT = 3, OTHER = 4 };
	uint32_t n;

	(void)state;
	torsh_counter_collective_begins(CONTEXT);
	assert_false(torsh_counter_gate_close_to_measure());
	/* A kernel of another context has no effect. */
	torsh_counter_collectives_ended(OTHER, 1);
	assert_false(torsh_counter_gate_close_to_measure());
	torsh_counter_collective_ended(CONTEXT);
	assert_true(torsh_counter_gate_close_to_measure());
	torsh_counter_gate_open();

	/*
	 * One that is launched while others wait for the context is not among what they waited for.
	 */
	torsh_counter_collective_begins(CONTEXT);
	n = torsh_counter_collectives_of(CONTEXT);
	torsh_counter_collective_begins(CONTEXT);
	torsh_counter_collectives_ended(CONTEXT, n);
	assert_false(torsh_counter_gate_close_to_measure());
	/* Records come later, and are not counted twice. */
	torsh_counter_collective_ended(CONTEXT);
	assert_false(torsh_counter_gate_close_to_measure());
	torsh_counter_collective_ended(CONTEXT);
	assert_true(torsh_counter_gate_close_to_measure());
	torsh_counter_gate_open();
}

static void nothing_is_measured_while_a_stream_is_captured(void **state)
{
	(void)state;
	torsh_counter_capture_begins();
	torsh_counter_capture_begins();
	torsh_counter_capture_ended();
	assert_false(torsh_counter_gate_close_to_measure());
	torsh_counter_capture_ended();
	torsh_counter_capture_ended();
	assert_true(torsh_counter_gate_close_to_measure());
	torsh_counter_gate_open();
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_for_want_of_privileges_quotes_the_drivers_setting),
		cmocka_unit_test(a_result_without_a_sentence_is_reported_by_its_number),
		cmocka_unit_test(kernels_that_talk_to_other_devices_are_collectives),
		cmocka_unit_test(the_gate_lets_either_one_measure_or_many_launch),
		cmocka_unit_test(nothing_is_measured_behind_a_collective),
		cmocka_unit_test(nothing_is_measured_while_a_stream_is_captured),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
