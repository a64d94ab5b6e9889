/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device activities in exports of a timeline: reported late, out of order, overlapping, without a
 * launch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "perfetto.pb-c.h"
#include "test/unit/fixtures/device_fixture.h"
#include "tools/export/trace.h"

/* All bytes of the export; the caller's. */
static char *write_trace(const struct trace_format *format, uint64_t from_ns, uint64_t to_ns,
			 size_t *n)
{
	char *bytes = NULL;
	FILE *file = open_memstream(&bytes, n);
	struct output_stream output;
	struct trace trace = {
		.recording = recording,
		.processes = recording->processes,
		.n_processes = recording->n_processes,
		.prepass = &prepass,
		.symbols = symbols,
		.from_ns = from_ns,
		.to_ns = to_ns,
		.output = &output,
	};

	torsh_stream_open(&output, file, false);
	assert_int_equal(format->write(&trace), 0);
	assert_int_equal(torsh_stream_close(&output), 0);
	assert_int_equal(fclose(file), 0);
	return bytes;
}

static cJSON *read_chrome(uint64_t from_ns, uint64_t to_ns)
{
	size_t n;
	char *text = write_trace(&torsh_trace_chrome, from_ns, to_ns, &n);
	cJSON *json = cJSON_Parse(text);

	assert_non_null(json);
	free(text);
	return json;
}

static const cJSON *find_event(const cJSON *json, const char *phase, const char *name)
{
	const cJSON *event;

	cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "traceEvents"))
	{
		if (strcmp(cJSON_GetObjectItem(event, "ph")->valuestring, phase) == 0 &&
		    strcmp(cJSON_GetObjectItem(event, "name")->valuestring, name) == 0)
			return event;
	}
	return NULL;
}

static double number_of(const cJSON *object, const char *name)
{
	const cJSON *value = cJSON_GetObjectItem(object, name);

	if (!cJSON_IsNumber(value))
		fail_msg("%s is no number", name);
	return value->valuedouble;
}

/* Nanoseconds, from microseconds. */
static int64_t ns_of(const cJSON *event, const char *name)
{
	return (int64_t)(number_of(event, name) * 1000 + 0.5);
}

static const cJSON *need_row(const cJSON *json, const char *name)
{
	const cJSON *event = find_event(json, "X", name);

	if (!event)
		fail_msg("there is no row of %s", name);
	return event;
}

static const cJSON *args_of(const cJSON *json, const char *name)
{
	return cJSON_GetObjectItem(need_row(json, name), "args");
}

static size_t count_phase(const cJSON *json, const char *phase)
{
	const cJSON *event;
	size_t n = 0;

	cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "traceEvents")) n +=
		strcmp(cJSON_GetObjectItem(event, "ph")->valuestring, phase) == 0;
	return n;
}

static void kernels_are_of_the_operator_that_launched_them(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);

	(void)state;
	assert_int_equal(number_of(args_of(json, "one()"), "External id"), 1);
	assert_int_equal(number_of(args_of(json, "early()"), "External id"), 2);
	assert_int_equal(number_of(args_of(json, "node"), "External id"), 3);
	assert_null(cJSON_GetObjectItem(args_of(json, "none"), "External id"));
	assert_null(cJSON_GetObjectItem(args_of(json, "unseen"), "External id"));
	assert_int_equal(number_of(args_of(json, "unseen"), "correlation"), 99);
	assert_int_equal(number_of(args_of(json, "Memcpy HtoD (Pinned -> Device)"), "bytes"), 4096);
	cJSON_Delete(json);
}

static void nodes_are_of_the_operator_that_captured_them(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);
	const cJSON *args = args_of(json, "captured");

	(void)state;
	assert_int_equal(number_of(args, "External id"), 3);
	assert_int_equal(number_of(args, "graph node id"), 77);
	cJSON_Delete(json);
}

static void a_graph_that_ran_as_a_whole_is_a_row_without_bytes(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);
	const cJSON *row = need_row(json, "CUDA graph");

	(void)state;
	assert_string_equal(cJSON_GetObjectItem(row, "cat")->valuestring, "cuda_graph");
	assert_int_equal(ns_of(row, "ts"), 9000);
	assert_int_equal(ns_of(row, "dur"), 100);
	assert_null(cJSON_GetObjectItem(args_of(json, "CUDA graph"), "bytes"));
	cJSON_Delete(json);
}

static void launches_nest_in_their_operators(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);
	const cJSON *launch = need_row(json, "cudaLaunchKernel_v7000"),
		    *around = need_row(json, "aten::one");

	(void)state;
	assert_string_equal(cJSON_GetObjectItem(launch, "cat")->valuestring, "cuda_runtime");
	assert_int_equal(ns_of(launch, "ts"), ns_of(around, "ts"));
	assert_int_equal(ns_of(launch, "dur"), 100);
	cJSON_Delete(json);
}

static void other_calls_are_rows_without_arrows(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);
	const cJSON *call = need_row(json, "cudaStreamSynchronize_v3020");

	(void)state;
	assert_string_equal(cJSON_GetObjectItem(call, "cat")->valuestring, "cuda_runtime");
	assert_int_equal(number_of(cJSON_GetObjectItem(call, "args"), "correlation"), 55);
	assert_int_equal(ns_of(call, "ts"), 5200);
	assert_int_equal(ns_of(call, "dur"), 290);
	cJSON_Delete(json);
}

static void devices_have_their_properties_and_leave_out_the_rest(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);
	const cJSON *devices = cJSON_GetObjectItem(json, "deviceProperties"),
		    *device = cJSON_GetArrayItem(devices, 2);

	(void)state;
	assert_int_equal(cJSON_GetArraySize(devices), 3);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetArrayItem(devices, 1)), 1);
	assert_int_equal(number_of(cJSON_GetArrayItem(devices, 1), "id"), 1);
	assert_int_equal(number_of(device, "id"), 2);
	assert_string_equal(cJSON_GetObjectItem(device, "name")->valuestring, "a \"device\"");
	assert_true(number_of(device, "totalGlobalMem") == (double)(UINT64_C(1) << 34));
	assert_int_equal(number_of(device, "computeMinor"), 0);
	assert_int_equal(number_of(device, "maxThreadsPerMultiprocessor"), 2048);
	assert_int_equal(number_of(device, "sharedMemPerBlockOptin"), 227 << 10);
	assert_null(cJSON_GetObjectItem(device, "regsPerBlock"));
	cJSON_Delete(json);
}

static void kernels_have_the_occupancy_of_a_recorded_device(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);
	const cJSON *args = args_of(json, "one()"),
		    *occupancy = cJSON_GetObjectItem(args, "occupancy");

	(void)state;
	assert_float_equal(number_of(args, "blocks per SM"), 8. / 132, 1e-6);
	assert_float_equal(number_of(args, "warps per SM"), 8. / 132 * 2, 1e-6);
	assert_int_equal(number_of(args, "est. achieved occupancy %"), 0); /* 0.19 */
	assert_int_equal(number_of(occupancy, "activeBlocksPerMultiprocessor"), 32);
	assert_string_equal(cJSON_GetObjectItem(occupancy, "limitingFactors")->valuestring,
			    "WARPS|BLOCKS");
	/* No device of the other process was reported. */
	args = args_of(json, "other");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(args, "block")), 3);
	assert_null(cJSON_GetObjectItem(args, "blocks per SM"));
	assert_null(cJSON_GetObjectItem(args, "occupancy"));
	cJSON_Delete(json);
}

static void what_nearly_overlaps_is_shown_behind(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);
	const cJSON *nearly = need_row(json, "nearly");

	(void)state;
	assert_int_equal(ns_of(nearly, "ts"), 3105);
	assert_int_equal(ns_of(nearly, "dur"), 50);
	assert_int_equal(number_of(args_of(json, "nearly"), "shown late by (ns)"), 3);
	assert_null(cJSON_GetObjectItem(args_of(json, "none"), "shown late by (ns)"));
	cJSON_Delete(json);
}

/* No row of a thread overlaps another one, unless it is inside of it on the CPU. */
static void rows_of_a_stream_do_not_overlap(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);
	const cJSON *events = cJSON_GetObjectItem(json, "traceEvents"), *a, *b;
	size_t n = 0;

	(void)state;
	cJSON_ArrayForEach(a, events)
	{
		if (!cJSON_GetObjectItem(cJSON_GetObjectItem(a, "args"), "stream"))
			continue;
		n++;
		for (b = a->next; b; b = b->next) {
			if (!cJSON_GetObjectItem(cJSON_GetObjectItem(b, "args"), "stream") ||
			    number_of(a, "pid") != number_of(b, "pid") ||
			    number_of(a, "tid") != number_of(b, "tid"))
				continue;
			assert_true(ns_of(a, "ts") + ns_of(a, "dur") <= ns_of(b, "ts") ||
				    ns_of(b, "ts") + ns_of(b, "dur") <= ns_of(a, "ts"));
		}
	}
	assert_int_equal(n, N_ROWS);
	assert_int_equal(number_of(need_row(json, "one()"), "tid"), 7);
	assert_int_not_equal(number_of(need_row(json, "other"), "tid"), 7);
	cJSON_Delete(json);
}

/*
 * From a launch to each of a graph's kernels; not where time would go back, nor where there is no
 * launch.
 */
static void each_arrow_has_a_begin_and_an_end(void **state)
{
	cJSON *json = read_chrome(0, UINT64_MAX);
	const cJSON *event;
	uint64_t begun = 0, ended = 0;

	(void)state;
	assert_int_equal(count_phase(json, "s"), N_GRAPH + 3);
	assert_int_equal(count_phase(json, "f"), N_GRAPH + 3);
	cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "traceEvents"))
	{
		const char *phase = cJSON_GetObjectItem(event, "ph")->valuestring;
		uint64_t bit;

		if (strcmp(phase, "s") != 0 && strcmp(phase, "f") != 0)
			continue;
		bit = UINT64_C(1) << (unsigned)number_of(event, "id");
		assert_false((*phase == 's' ? begun : ended) & bit);
		*(*phase == 's' ? &begun : &ended) |= bit;
	}
	assert_int_equal(begun, ended);
	cJSON_Delete(json);
	/* Its launch is not in there. */
	json = read_chrome(4200, 4210);
	assert_non_null(find_event(json, "X", "node"));
	assert_int_equal(count_phase(json, "s") + count_phase(json, "f"), 0);
	cJSON_Delete(json);
}

struct moment {
	uint64_t at_ns;
	uint64_t track;
	bool is_begin;
	size_t order;
};

static int compare_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
	return (x->order > y->order) - (x->order < y->order);
}

/*
 * In the order in which a reader sorts them: tracks of threads nest, those of streams have one
 * slice at a time.
 */
static void perfettos_slices_nest_when_they_are_sorted(void **state)
{
	size_t n_bytes, n = 0, depth[32] = {0}, n_flows = 0, n_ends = 0;
	char *bytes = write_trace(&torsh_trace_perfetto, 0, UINT64_MAX, &n_bytes);
	Perfetto__Trace *trace = perfetto__trace__unpack(NULL, n_bytes, (uint8_t *)bytes);
	struct moment moments[256];
	uint64_t last_ns[3] = {0};

	(void)state;
	assert_non_null(trace);
	for (size_t i = 0; i < trace->n_packet; i++) {
		const Perfetto__TracePacket *packet = trace->packet[i];
		const Perfetto__TrackEvent *event = packet->track_event;

		if (!event)
			continue;
		assert_true(n < 256 && event->track_uuid < 32);
		moments[n].at_ns = packet->has_timestamp_clock_id
					   ? packet->timestamp
					   : (last_ns[packet->trusted_packet_sequence_id] +=
					      packet->timestamp);
		moments[n].track = event->track_uuid;
		moments[n].is_begin = event->type == PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN;
		moments[n].order = n;
		n++;
		n_flows += event->n_flow_ids;
		n_ends += event->n_terminating_flow_ids;
	}
	qsort(moments, n, sizeof(*moments), compare_moments);
	for (size_t i = 0; i < n; i++) {
		assert_true(moments[i].is_begin || depth[moments[i].track]);
		depth[moments[i].track] += moments[i].is_begin ? 1 : SIZE_MAX;
	}
	/* 3 operators, 6 calls of CUDA, and what devices did. */
	assert_int_equal(n, 2 * (3 + 6 + N_ROWS));
	assert_int_equal(n_flows, N_GRAPH + 4);
	assert_int_equal(n_ends, N_GRAPH + 3);
	perfetto__trace__free_unpacked(trace, NULL);
	free(bytes);
}

static void windows_are_of_begins_or_of_launches(void **state)
{
	cJSON *json = read_chrome(3000, 3104);

	(void)state;
	assert_non_null(find_event(json, "X", "none"));
	assert_non_null(find_event(json, "X", "nearly"));
	assert_null(find_event(json, "X", "unseen"));
	assert_null(find_event(json, "X", "too_early"));
	cJSON_Delete(json);
}

static void json_has_the_reason_for_a_missing_operator(void **state)
{
	size_t n;
	char *text = write_trace(&torsh_trace_json, 0, UINT64_MAX, &n);
	cJSON *json = cJSON_Parse(text);
	const cJSON *event;
	size_t n_reasons = 0, n_rows = 0;

	(void)state;
	assert_non_null(json);
	cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "events"))
	{
		const cJSON *reason = cJSON_GetObjectItem(event, "reason");

		if (!reason)
			continue;
		n_rows++;
		n_reasons += cJSON_IsString(reason);
		assert_int_equal(cJSON_IsString(reason),
				 cJSON_IsNull(cJSON_GetObjectItem(event, "operator")));
	}
	assert_int_equal(n_rows, N_ROWS);
	assert_int_equal(n_reasons, 7);
	cJSON_Delete(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_are_of_the_operator_that_launched_them),
		cmocka_unit_test(nodes_are_of_the_operator_that_captured_them),
		cmocka_unit_test(a_graph_that_ran_as_a_whole_is_a_row_without_bytes),
		cmocka_unit_test(launches_nest_in_their_operators),
		cmocka_unit_test(other_calls_are_rows_without_arrows),
		cmocka_unit_test(devices_have_their_properties_and_leave_out_the_rest),
		cmocka_unit_test(kernels_have_the_occupancy_of_a_recorded_device),
		cmocka_unit_test(what_nearly_overlaps_is_shown_behind),
		cmocka_unit_test(rows_of_a_stream_do_not_overlap),
		cmocka_unit_test(each_arrow_has_a_begin_and_an_end),
		cmocka_unit_test(perfettos_slices_nest_when_they_are_sorted),
		cmocka_unit_test(windows_are_of_begins_or_of_launches),
		cmocka_unit_test(json_has_the_reason_for_a_missing_operator),
	};

	return cmocka_run_group_tests(tests, make, let_go);
}
