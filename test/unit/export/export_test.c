/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Exports, read back: a reader of the format sees the contents of the recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <zlib.h>

#include "pprof.pb-c.h"
#include "test/unit/fixtures/recording_fixture.h"
#include "tools/export/exporter.h"
#include "tools/symbols/frame_text.h"

#define FRAMES_MAX 8
#define LEAKING "program;main (program);f(int,_long) (program);a:b (program)"

static struct recording *recording;
static struct fixture fixture;
static uint32_t leaking, peaking;

enum { N_OF_MEMORY = EXPORT_CPU }; /* the weights before it */

static int make_profile(void **state)
{
	(void)state;
	recording = torsh_recording_new("test");
	fixture_start(&fixture, 1, 100);
	leaking = fixture_stack(&fixture, "a;b@/opt/program _Z1fil@/opt/program main@/opt/program");
	peaking = fixture_stack(&fixture, "?@/lib/other.so main@/opt/program");
	fixture_address(&fixture, "?cut", ADDRESS_CUT_UNKNOWN_CODE);
	return fixture_give(&fixture, fixture_take_profile, recording);
}

static int free_profile(void **state)
{
	(void)state;
	fixture_free(&fixture);
	torsh_recording_destroy(recording);
	return 0;
}

static struct export_sample sample_of(uint32_t stack, uint32_t *addresses)
{
	const struct recorded_process *process = recording->processes[0];

	return (struct export_sample){
		.process = process,
		.stack = stack,
		.addresses = addresses,
		.n_addresses = torsh_recording_walk(process, stack, addresses, FRAMES_MAX),
	};
}

/* What the exporter writes for two samples; *n bytes, the caller's. */
static char *write_merged(const struct exporter *exporter, unsigned what, const char *merged,
			  size_t *n)
{
	struct symbols *symbols = torsh_symbols_create(false);
	char *bytes = NULL;
	struct export export = {
		.exporter = exporter,
		.file = open_memstream(&bytes, n),
		.recording = recording,
		.symbols = symbols,
		.n_processes = 1,
		.what = what,
	};
	uint32_t addresses[2][FRAMES_MAX];
	struct export_sample one = sample_of(leaking, addresses[0]);
	struct export_sample other = sample_of(peaking, addresses[1]);

	other.merged = merged;
	one.values[EXPORT_LEAKED] = (struct export_value){.blocks = 2, .bytes = 100};
	one.values[EXPORT_PEAK] = (struct export_value){.blocks = 3, .bytes = 150};
	other.values[EXPORT_PEAK] =
		(struct export_value){.blocks = 4, .bytes = UINT64_C(1) << 54 | 1};
	exporter->begin(&export);
	exporter->sample(&export, &one);
	exporter->sample(&export, &other);
	assert_int_equal(exporter->end(&export), 0);
	assert_int_equal(fclose(export.file), 0);
	torsh_symbols_destroy(symbols);
	return bytes;
}

static char *write_export(const struct exporter *exporter, unsigned what, size_t *n)
{
	return write_merged(exporter, what, NULL, n);
}

static void folded_lines_go_from_the_root_to_the_leaf(void **state)
{
	size_t n;
	char *text;

	(void)state;
	text = write_export(&torsh_export_folded, EXPORT_LEAKED, &n);
	assert_string_equal(text, LEAKING " 100\n");
	free(text);
	text = write_export(&torsh_export_folded, EXPORT_PEAK, &n);
	assert_string_equal(text, LEAKING " 150\nprogram;main (program);other.so+0x400 "
					  "18014398509481985\n");
	free(text);
	text = write_merged(&torsh_export_folded, EXPORT_PEAK, "(the rest)", &n);
	assert_string_equal(text, LEAKING " 150\nprogram;main (program);other.so+0x400;(the rest) "
					  "18014398509481985\n");
	free(text);
}

static void a_frame_without_a_name_has_its_place(void **state)
{
	struct frame frame = {.address = 0x1234};
	char out[64];

	(void)state;
	assert_string_equal(torsh_frame_name(&frame, out, sizeof(out)), "0x1234");
	frame.cut = "no way on";
	assert_string_equal(torsh_frame_name(&frame, out, sizeof(out)), "[cut: no way on]");
	frame.function = "f";
	assert_string_equal(torsh_frame_name(&frame, out, sizeof(out)), "f");
}

static void speedscope_has_a_sampled_profile_for_each_weight(void **state)
{
	size_t n;
	char *text = write_export(&torsh_export_speedscope, EXPORT_ALL, &n);
	cJSON *json = cJSON_Parse(text);
	const cJSON *frames, *profiles, *one;

	(void)state;
	assert_non_null(json);
	assert_string_equal(cJSON_GetObjectItem(json, "$schema")->valuestring,
			    "https://www.speedscope.app/file-format-schema.json");
	frames = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "shared"), "frames");
	profiles = cJSON_GetObjectItem(json, "profiles");
	assert_int_equal(cJSON_GetArraySize(profiles), N_OF_MEMORY);
	cJSON_ArrayForEach(one, profiles)
	{
		const cJSON *samples = cJSON_GetObjectItem(one, "samples"), *sample, *index;

		assert_string_equal(cJSON_GetObjectItem(one, "type")->valuestring, "sampled");
		assert_string_equal(cJSON_GetObjectItem(one, "unit")->valuestring, "bytes");
		assert_int_equal(cJSON_GetArraySize(samples),
				 cJSON_GetArraySize(cJSON_GetObjectItem(one, "weights")));
		cJSON_ArrayForEach(sample, samples)
		{
			cJSON_ArrayForEach(index, sample)
			{
				assert_true(index->valueint >= 0);
				assert_true(index->valueint < cJSON_GetArraySize(frames));
			}
		}
	}
	one = cJSON_GetArrayItem(profiles, EXPORT_LEAKED);
	assert_string_equal(cJSON_GetObjectItem(one, "name")->valuestring, "leaked");
	assert_int_equal(cJSON_GetObjectItem(one, "endValue")->valueint, 100);
	one = cJSON_GetArrayItem(cJSON_GetObjectItem(one, "samples"), 0);
	assert_int_equal(cJSON_GetArraySize(one), 4);
	assert_string_equal(
		cJSON_GetObjectItem(
			cJSON_GetArrayItem(frames, cJSON_GetArrayItem(one, 3)->valueint), "name")
			->valuestring,
		"a;b");
	one = cJSON_GetArrayItem(profiles, EXPORT_PEAK);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(one, "samples")), 2);
	cJSON_Delete(json);
	free(text);
}

static Pprof__Profile *read_pprof(unsigned what)
{
	static uint8_t raw[65536];
	size_t n;
	char *bytes = write_export(&torsh_export_pprof, what, &n);
	z_stream stream = {.next_in = (Bytef *)bytes,
			   .avail_in = (uInt)n,
			   .next_out = raw,
			   .avail_out = sizeof(raw)};
	Pprof__Profile *read;

	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	read = pprof__profile__unpack(NULL, stream.total_out, raw);
	inflateEnd(&stream);
	free(bytes);
	assert_non_null(read);
	return read;
}

static const char *text_of(const Pprof__Profile *read, int64_t number)
{
	assert_in_range(number, 0, read->n_string_table - 1);
	return read->string_table[number];
}

static void pprof_has_blocks_and_bytes_of_each_weight(void **state)
{
	Pprof__Profile *read = read_pprof(EXPORT_ALL);

	(void)state;
	assert_string_equal(read->string_table[0], "");
	assert_int_equal(read->n_sample_type, 2 * N_OF_MEMORY);
	assert_string_equal(text_of(read, read->sample_type[0]->type), "leaked_objects");
	assert_string_equal(text_of(read, read->sample_type[0]->unit), "count");
	assert_string_equal(text_of(read, read->sample_type[3]->type), "peak_space");
	assert_string_equal(text_of(read, read->sample_type[3]->unit), "bytes");
	assert_string_equal(text_of(read, read->default_sample_type), "leaked_space");
	assert_int_equal(read->n_sample, 2);
	for (size_t i = 0; i < read->n_sample; i++)
		assert_int_equal(read->sample[i]->n_value, read->n_sample_type);
	assert_int_equal(read->sample[0]->value[0], 2);
	assert_int_equal(read->sample[0]->value[1], 100);
	assert_int_equal(read->sample[1]->value[2], 4);
	assert_int_equal(read->sample[1]->value[3], INT64_C(1) << 54 | 1);
	assert_int_equal(read->sample[1]->label[0]->num, 100);
	assert_string_equal(text_of(read, read->sample[1]->label[1]->str), "program");
	pprof__profile__free_unpacked(read, NULL);
}

/* Called as pprof's own. */
static void pprof_has_samples_and_nanoseconds_of_processor_time(void **state)
{
	Pprof__Profile *read = read_pprof(EXPORT_CPU);

	(void)state;
	assert_int_equal(read->n_sample_type, 2);
	assert_string_equal(text_of(read, read->sample_type[0]->type), "samples");
	assert_string_equal(text_of(read, read->sample_type[0]->unit), "count");
	assert_string_equal(text_of(read, read->sample_type[1]->type), "cpu");
	assert_string_equal(text_of(read, read->sample_type[1]->unit), "nanoseconds");
	pprof__profile__free_unpacked(read, NULL);
}

static void pprof_locations_lead_to_functions_and_mappings(void **state)
{
	Pprof__Profile *read = read_pprof(EXPORT_PEAK);
	const Pprof__Location *location;
	const Pprof__Function *function;

	(void)state;
	assert_int_equal(read->n_sample_type, 2);
	assert_int_equal(read->n_mapping, 2);
	assert_int_equal(read->n_location, 4); /* main once */
	for (size_t i = 0; i < read->n_location; i++)
		assert_int_equal(read->location[i]->id, i + 1);
	location = read->location[read->sample[0]->location_id[0] - 1];
	assert_int_equal(location->address, fixture.ip[2] - 1);
	assert_string_equal(text_of(read, read->mapping[location->mapping_id - 1]->filename),
			    "/opt/program");
	function = read->function[location->line[0]->function_id - 1];
	assert_string_equal(text_of(read, function->name), "a;b");
	assert_int_equal(read->sample[0]->location_id[2], read->sample[1]->location_id[1]);
	pprof__profile__free_unpacked(read, NULL);
}

int main(void)
{
#define EXPORT_TEST(name) cmocka_unit_test_setup_teardown(name, make_profile, free_profile)
	const struct CMUnitTest tests[] = {
		EXPORT_TEST(folded_lines_go_from_the_root_to_the_leaf),
		EXPORT_TEST(a_frame_without_a_name_has_its_place),
		EXPORT_TEST(speedscope_has_a_sampled_profile_for_each_weight),
		EXPORT_TEST(pprof_has_blocks_and_bytes_of_each_weight),
		EXPORT_TEST(pprof_has_samples_and_nanoseconds_of_processor_time),
		EXPORT_TEST(pprof_locations_lead_to_functions_and_mappings),
	};
#undef EXPORT_TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
