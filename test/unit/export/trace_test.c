/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Exports of a timeline, read back: what doesn't nest, odd names, values that are no numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <math.h>

#include "perfetto.pb-c.h"
#include "test/unit/fixtures/recording_fixture.h"
#include "tools/export/snapshot/pickle.h"
#include "tools/export/trace.h"

#define NONE OP_NO_SEQUENCE

static char path[] = "/tmp/torsh-trace-XXXXXX";
static struct fixture fixture;
static struct recording *recording;
static struct prepass prepass;
static struct symbols *symbols;

static void put_value(uint64_t at_ns, double number)
{
	struct event event = {.id = EVENT_VALUE};

	event.value.name = fixture_label(&fixture, "loss");
	event.value.payload_type = PAYLOAD_F64;
	memcpy(&event.value.payload, &number, sizeof(number));
	fixture_event(&fixture, at_ns, 0, &event);
}

static int make(void **state)
{
	struct event event = {.id = EVENT_MARK};
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	fixture_start(&fixture, 1, 100);
	fixture_thread(&fixture, 100, "main");
	fixture_thread(&fixture, 101, "other \"thread\"");
	fixture.event_stack = fixture_stack(&fixture, "%inner:3 %outer:7");
	fixture_op(&fixture, 1000, 0, 1, "aten::mm", "float32[2,3];float32[3,4](1,3);{1,2};true;-",
		   0, 9);
	fixture.event_stack = 0;
	fixture_op(&fixture, 1010, 0, 2, "gloo:all_reduce", NULL, OP_USER, NONE);
	fixture_op(&fixture, 1020, 0, 3, "odd \"\xff\n\\", NULL, 0, NONE);
	fixture_op_end(&fixture, 1030, 0, 3);
	fixture_op_end(&fixture, 1100, 0, 1);
	/* A range that gives way to the operator that it crosses. */
	fixture_push(&fixture, 1150, 0, "crossing", "domain", RANGE_BY_NVTX);
	fixture_op(&fixture, 1160, 0, 4, "MmBackward0", NULL, OP_BACKWARD, 9);
	fixture_pop(&fixture, 1170, 0, "domain", RANGE_BY_NVTX);
	fixture_op_end(&fixture, 1180, 0, 4);
	fixture_op_end(&fixture, 1200, 1, 2);
	put_value(1210, 0.25);
	put_value(1220, NAN);
	put_value(1230, INFINITY);
	event.mark.name = fixture_label(&fixture, "here");
	fixture_event(&fixture, 1240, 1, &event);
	fixture_tensor(&fixture, 1250, 0, 0x1000, 64, false);
	fixture_tensor(&fixture, 1260, 0, 0x2000, 100, true);
	event = (struct event){
		.id = EVENT_PYTHON_GC,
		.python_gc = {.begin = 1262, .duration_ns = 2, .generation = 2, .collected = 7}};
	fixture_event(&fixture, 1265, 0, &event);
	fixture_op(&fixture, 1270, 0, 5, "open", NULL, 0, NONE);
	fixture_write(path, &fixture, 1, 5000);
	recording = torsh_recording_new(path);
	if (fixture_give_session(fixture_take_profile, recording, 5000) ||
	    fixture_give(&fixture, fixture_take_profile, recording))
		return -1;
	symbols = torsh_symbols_create(false);
	torsh_prepass_make(&prepass, recording, recording->processes, recording->n_processes);
	return 0;
}

static int let_go(void **state)
{
	(void)state;
	torsh_prepass_free(&prepass);
	torsh_symbols_destroy(symbols);
	torsh_recording_destroy(recording);
	fixture_free(&fixture);
	return unlink(path);
}

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
		.n_processes = 1,
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

static const cJSON *need_event(const cJSON *json, const char *phase, const char *name)
{
	const cJSON *event = find_event(json, phase, name);

	if (!event)
		fail_msg("there is no %s of phase %s", name, phase);
	return event;
}

static void assert_number(const cJSON *object, const char *name, double expected)
{
	const cJSON *value = cJSON_GetObjectItem(object, name);

	if (!cJSON_IsNumber(value) || value->valuedouble != expected)
		fail_msg("%s is not %f", name, expected);
}

static void chrome_has_inputs_in_kinetos_form(void **state)
{
	size_t n;
	char *text = write_trace(&torsh_trace_chrome, 0, UINT64_MAX, &n), *args;
	cJSON *json = cJSON_Parse(text);
	const cJSON *event;

	(void)state;
	assert_non_null(json);
	event = need_event(json, "X", "aten::mm");
	assert_number(event, "ts", 1.0);
	assert_number(event, "dur", 0.1);
	assert_number(event, "pid", 100);
	args = cJSON_PrintUnformatted(cJSON_GetObjectItem(event, "args"));
	assert_string_equal(
		args,
		"{\"External id\":1,\"Record function id\":1,\"Ev Idx\":0,\"Sequence number\":9,"
		"\"Fwd thread id\":0,\"Input Dims\":[[2,3],[3,4],[],[],[]],"
		"\"Input type\":[\"float\",\"float\",\"ScalarList\",\"Scalar\",\"\"],"
		"\"Input Strides\":[[3,1],[1,3],[],[],[]],"
		"\"Concrete Inputs\":[\"\",\"\",\"[1, 2]\",\"True\",\"\"],"
		"\"Call stack\":\"inner.py(3): inner;outer.py(7): outer\"}");
	cJSON_free(args);
	assert_number(json, "baseTimeNanoseconds", 5000);
	need_event(json, "X", "odd \"\xef\xbf\xbd\n\\");
	cJSON_Delete(json);
	free(text);
}

static void chrome_has_what_does_not_nest_as_pairs(void **state)
{
	size_t n;
	char *text = write_trace(&torsh_trace_chrome, 0, UINT64_MAX, &n);
	cJSON *json = cJSON_Parse(text);

	(void)state;
	assert_null(find_event(json, "X", "gloo:all_reduce"));
	assert_number(need_event(json, "b", "gloo:all_reduce"), "ts", 1.01);
	assert_number(need_event(json, "e", "gloo:all_reduce"), "ts", 1.2);
	assert_null(find_event(json, "X", "crossing"));
	assert_number(need_event(json, "e", "crossing"), "ts", 1.17);
	assert_number(need_event(json, "X", "MmBackward0"), "dur", 0.02);
	assert_number(need_event(json, "X", "open"), "dur", 0);
	assert_number(need_event(json, "s", "fwdbwd"), "ts", 1.0);
	assert_number(need_event(json, "f", "fwdbwd"), "ts", 1.16);
	assert_number(need_event(json, "i", "here"), "tid", 101);
	cJSON_Delete(json);
	free(text);
}

static void chrome_has_runs_of_pythons_collector(void **state)
{
	size_t n;
	char *text = write_trace(&torsh_trace_chrome, 0, UINT64_MAX, &n);
	cJSON *json = cJSON_Parse(text);
	const cJSON *event = need_event(json, "X", "Python GC, generation 2");

	(void)state;
	assert_number(event, "ts", 1.262);
	assert_number(event, "dur", 0.002);
	assert_number(event, "tid", 100);
	assert_number(cJSON_GetObjectItem(event, "args"), "Collected", 7);
	cJSON_Delete(json);
	free(text);
}

/* How many events of that phase there are in a window. */
static size_t count_events(uint64_t from_ns, uint64_t to_ns, const char *phase, const char *name)
{
	size_t n_bytes, n = 0;
	char *text = write_trace(&torsh_trace_chrome, from_ns, to_ns, &n_bytes);
	cJSON *json = cJSON_Parse(text);
	const cJSON *event;

	assert_non_null(json);
	cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "traceEvents")) n +=
		strcmp(cJSON_GetObjectItem(event, "ph")->valuestring, phase) == 0 &&
		strcmp(cJSON_GetObjectItem(event, "name")->valuestring, name) == 0;
	cJSON_Delete(json);
	free(text);
	return n;
}

static void what_begins_at_the_border_is_in_the_later_window(void **state)
{
	(void)state;
	assert_int_equal(count_events(0, 1000, "X", "aten::mm"), 0);
	assert_int_equal(count_events(1000, 1001, "X", "aten::mm"), 1);
	assert_int_equal(count_events(1001, 1100, "X", "aten::mm"), 0);
	/* Open all the while, as is what outlives the window. */
	assert_int_equal(count_events(1020, 1100, "b", "gloo:all_reduce"), 0);
	assert_int_equal(count_events(1005, 1020, "e", "gloo:all_reduce"), 1);
	assert_int_equal(count_events(1150, 1155, "e", "crossing"), 1);
	assert_int_equal(count_events(1270, UINT64_MAX, "X", "open"), 1);
}

static void arrows_have_both_their_ends_in_the_window(void **state)
{
	static const struct {
		uint64_t from_ns, to_ns;
		size_t n;
	} windows[] = {{0, UINT64_MAX, 1}, {1000, 1161, 1}, {1000, 1160, 0}, {1001, UINT64_MAX, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
		assert_int_equal(count_events(windows[i].from_ns, windows[i].to_ns, "s", "fwdbwd"),
				 windows[i].n);
		assert_int_equal(count_events(windows[i].from_ns, windows[i].to_ns, "f", "fwdbwd"),
				 windows[i].n);
	}
}

static void chrome_has_only_numbers(void **state)
{
	size_t n;
	char *text = write_trace(&torsh_trace_chrome, 0, UINT64_MAX, &n);
	cJSON *json = cJSON_Parse(text);
	const cJSON *event;
	int n_values = 0;

	(void)state;
	cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "traceEvents")) n_values +=
		strcmp(cJSON_GetObjectItem(event, "ph")->valuestring, "C") == 0;
	assert_int_equal(n_values, 1);
	assert_number(cJSON_GetObjectItem(need_event(json, "C", "loss"), "args"), "value", 0.25);
	event = cJSON_GetObjectItem(need_event(json, "i", "[memory]"), "args");
	assert_number(event, "Bytes", 64);
	assert_number(event, "Device Id", -1);
	cJSON_Delete(json);
	free(text);
}

static Perfetto__Trace *read_perfetto(uint64_t from_ns, uint64_t to_ns)
{
	size_t n;
	char *bytes = write_trace(&torsh_trace_perfetto, from_ns, to_ns, &n);
	Perfetto__Trace *trace = perfetto__trace__unpack(NULL, n, (uint8_t *)bytes);

	assert_non_null(trace);
	free(bytes);
	return trace;
}

/* Time of a packet, after the previous ones. */
static uint64_t time_of(const Perfetto__TracePacket *packet, uint64_t *last_ns)
{
	if (packet->has_timestamp_clock_id)
		return packet->timestamp;
	return *last_ns += packet->timestamp;
}

static const char *name_of(const Perfetto__Trace *trace, uint64_t iid)
{
	for (size_t i = 0; i < trace->n_packet; i++) {
		const Perfetto__InternedData *data = trace->packet[i]->interned_data;

		for (size_t k = 0; data && k < data->n_event_names; k++) {
			if (data->event_names[k]->iid == iid)
				return data->event_names[k]->name;
		}
	}
	fail_msg("a name has no text");
	return NULL;
}

static bool is_named(const Perfetto__Trace *trace, const Perfetto__TrackEvent *event,
		     const char *name)
{
	return event && event->has_name_iid && strcmp(name_of(trace, event->name_iid), name) == 0;
}

/* Begins and ends of each track nest; all that was begun ends. Returns the slices. */
static size_t check_nesting(const Perfetto__Trace *trace)
{
	size_t n_open[16] = {0}, n_slices = 0;
	uint64_t last_ns = 0, before_ns = 0;

	for (size_t i = 0; i < trace->n_packet; i++) {
		const Perfetto__TrackEvent *event = trace->packet[i]->track_event;
		uint64_t at_ns;

		if (!event)
			continue;
		at_ns = time_of(trace->packet[i], &last_ns);
		assert_true(at_ns >= before_ns);
		before_ns = at_ns;
		assert_in_range(event->track_uuid, 1, 15);
		if (event->type == PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN) {
			n_slices++;
			n_open[event->track_uuid]++;
			name_of(trace, event->name_iid);
		} else if (event->type == PERFETTO__TRACK_EVENT__TYPE__SLICE_END) {
			assert_true(n_open[event->track_uuid]--);
		}
	}
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(n_open[i], 0);
	return n_slices;
}

static void perfetto_is_what_protobuf_reads(void **state)
{
	Perfetto__Trace *trace = read_perfetto(0, UINT64_MAX);
	uint64_t flow = 0, last_flow = 0, last_ns = 0, at_ns;
	size_t n_counters = 0, n_runs = 0;

	(void)state;
	assert_int_equal(check_nesting(trace), 7);
	for (size_t i = 0; i < trace->n_packet; i++) {
		const Perfetto__TrackEvent *event = trace->packet[i]->track_event;

		if (!event)
			continue;
		at_ns = time_of(trace->packet[i], &last_ns);
		if (is_named(trace, event, "Python GC, generation 2")) {
			n_runs++;
			assert_int_equal(at_ns, 1262);
			assert_int_equal(event->debug_annotations[0]->uint_value, 7);
		}
		if (event->n_flow_ids) {
			assert_string_equal(name_of(trace, event->name_iid), "aten::mm");
			assert_int_equal(last_ns, 1000);
			flow = event->flow_ids[0];
			assert_int_equal(event->n_debug_annotations, 3);
			assert_int_equal(event->debug_annotations[1]->uint_value, 9);
		}
		if (event->n_terminating_flow_ids)
			last_flow = event->terminating_flow_ids[0];
		n_counters += event->type == PERFETTO__TRACK_EVENT__TYPE__COUNTER;
		if (event->has_double_counter_value)
			assert_true(event->double_counter_value == 0.25);
	}
	assert_true(flow && flow == last_flow);
	assert_int_equal(n_counters, 3);
	assert_int_equal(n_runs, 1);
	perfetto__trace__free_unpacked(trace, NULL);
}

static void a_window_cuts_nothing_in_two(void **state)
{
	Perfetto__Trace *trace = read_perfetto(1005, 1165);

	(void)state;
	assert_int_equal(check_nesting(trace), 4);
	/* A flow that ends and has not begun is a fault to readers. */
	for (size_t i = 0; i < trace->n_packet; i++) {
		if (trace->packet[i]->track_event)
			assert_int_equal(trace->packet[i]->track_event->n_terminating_flow_ids, 0);
	}
	perfetto__trace__free_unpacked(trace, NULL);
}

/* The interned text of a number. */
static const ProtobufCBinaryData *text_of(const Perfetto__Trace *trace, uint64_t iid)
{
	for (size_t i = 0; i < trace->n_packet; i++) {
		const Perfetto__InternedData *data = trace->packet[i]->interned_data;

		for (size_t k = 0; data && k < data->n_debug_annotation_string_values; k++) {
			if (data->debug_annotation_string_values[k]->iid == iid)
				return &data->debug_annotation_string_values[k]->str;
		}
	}
	fail_msg("a text has no bytes");
	return NULL;
}

static void perfetto_has_a_stack_once(void **state)
{
	static const char stack[] = "inner.py(3): inner;outer.py(7): outer";
	Perfetto__Trace *trace = read_perfetto(0, UINT64_MAX);
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < trace->n_packet; i++) {
		const Perfetto__TrackEvent *event = trace->packet[i]->track_event;
		const ProtobufCBinaryData *text;

		if (!event || event->n_debug_annotations != 3)
			continue;
		text = text_of(trace, event->debug_annotations[2]->string_value_iid);
		assert_int_equal(text->len, sizeof(stack) - 1);
		assert_memory_equal(text->data, stack, text->len);
		n++;
	}
	assert_int_equal(n, 1);
	perfetto__trace__free_unpacked(trace, NULL);
}

/* As Python's pickletools.dis reads them. */
static void pickles_have_numbers_of_any_size(void **state)
{
	static const struct {
		uint64_t number;
		const char bytes[16];
		size_t n;
	} cases[] = {
		{0, "K\x00", 2},
		{255, "K\xff", 2},
		{256, "M\x00\x01", 3},
		{65535, "M\xff\xff", 3},
		{65536, "\x8a\x03\x00\x00\x01", 5},
		{0x800000, "\x8a\x04\x00\x00\x80\x00", 6},
		{UINT64_MAX, "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", 11},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *bytes = NULL;
		size_t n;
		FILE *file = open_memstream(&bytes, &n);
		struct pickle pickle;
		struct output_stream output;

		torsh_stream_open(&output, file, false);
		torsh_pickle_begin(&pickle, &output);
		torsh_pickle_number(&pickle, cases[i].number);
		torsh_pickle_end(&pickle);
		assert_int_equal(torsh_stream_close(&output), 0);
		assert_int_equal(fclose(file), 0);
		assert_int_equal(n, 2 + cases[i].n + 1);
		assert_memory_equal(bytes + 2, cases[i].bytes, cases[i].n);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chrome_has_inputs_in_kinetos_form),
		cmocka_unit_test(chrome_has_runs_of_pythons_collector),
		cmocka_unit_test(chrome_has_what_does_not_nest_as_pairs),
		cmocka_unit_test(what_begins_at_the_border_is_in_the_later_window),
		cmocka_unit_test(arrows_have_both_their_ends_in_the_window),
		cmocka_unit_test(chrome_has_only_numbers),
		cmocka_unit_test(perfetto_is_what_protobuf_reads),
		cmocka_unit_test(a_window_cuts_nothing_in_two),
		cmocka_unit_test(perfetto_has_a_stack_once),
		cmocka_unit_test(pickles_have_numbers_of_any_size),
	};

	return cmocka_run_group_tests(tests, make, let_go);
}
