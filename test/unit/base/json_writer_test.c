/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The emitter's bytes: what is laid out how, escapes, numbers with all their digits, texts larger
 * than its buffer. Numbers are compared with cJSON's.
 */
#include "tools/base/json_writer.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"

/* What was written to a file. */
struct written {
	struct json_writer json;
	FILE *file;
	char *text;
	size_t n;
};

static struct json_writer *begin(struct written *written)
{
	written->file = open_memstream(&written->text, &written->n);
	assert_non_null(written->file);
	torsh_json_open(&written->json, written->file);
	return &written->json;
}

static void expect(struct written *written, const char *text)
{
	torsh_json_close(&written->json);
	fclose(written->file);
	assert_string_equal(written->text, text);
	free(written->text);
}

static void a_report_has_a_member_and_an_item_on_each_line(void **state)
{
	struct written written;
	struct json_writer *json = begin(&written);

	(void)state;
	torsh_json_begin_report(json);
	torsh_json_put_u64(json, "pid", 7);
	torsh_json_begin_lines(json, "sites");
	for (unsigned i = 0; i < 2; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "n", i);
		torsh_json_put_bool(json, "is_first", !i);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_begin_lines(json, "none");
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "short");
	torsh_json_put_i64(json, NULL, -1);
	torsh_json_put_null(json, NULL);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
	expect(&written, "{\"pid\":7,\n\"sites\":[\n{\"n\":0,\"is_first\":true},\n"
			 "{\"n\":1,\"is_first\":false}],\n\"none\":[],\n\"short\":[-1,null]}\n");
}

static void each_outermost_value_is_a_line(void **state)
{
	struct written written;
	struct json_writer *json = begin(&written);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "n", i);
		torsh_json_end_object(json);
	}
	expect(&written, "{\"n\":0}\n{\"n\":1}\n");
}

static void numbers_keep_all_their_digits(void **state)
{
	struct written written;
	struct json_writer *json = begin(&written);

	(void)state;
	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "u", UINT64_MAX);
	torsh_json_put_i64(json, "i", INT64_MIN);
	torsh_json_put_negative(json, "minus", 0);
	torsh_json_put_hex(json, "h", UINT64_MAX);
	torsh_json_put_us(json, "us", UINT64_MAX);
	torsh_json_put_us(json, "short", 1007);
	torsh_json_put_known(json, "known", true, 0);
	torsh_json_put_known(json, "unknown", false, 1);
	torsh_json_put_rounded(json, "rounded", 1.0 / 3, 6);
	torsh_json_put_rounded(json, "infinite", INFINITY, 6);
	torsh_json_end_object(json);
	expect(&written,
	       "{\"u\":18446744073709551615,\"i\":-9223372036854775808,\"minus\":-0,"
	       "\"h\":\"0xffffffffffffffff\",\"us\":18446744073709551.615,\"short\":1.007,"
	       "\"known\":0,\"unknown\":null,\"rounded\":0.333333,\"infinite\":null}\n");
}

static void digits_are_printfs(void **state)
{
	char expected[32], digits[DIGITS_MAX + 1];
	uint64_t power = 1;

	(void)state;
	for (unsigned i = 0; i < DIGITS_MAX; i++, power *= 10) {
		for (uint64_t number = power - 1; number <= power + 1; number++) {
			snprintf(expected, sizeof(expected), "%llu", (unsigned long long)number);
			*torsh_digits(digits, number) = '\0';
			assert_string_equal(digits, expected);
		}
	}
	for (unsigned i = 0; i < 64; i++) {
		snprintf(expected, sizeof(expected), "%llu", 1ull << i);
		*torsh_digits(digits, UINT64_C(1) << i) = '\0';
		assert_string_equal(digits, expected);
	}
}

static void expect_double(double number)
{
	struct written written;
	struct json_writer *json = begin(&written);
	cJSON *list = cJSON_CreateArray();
	char *expected, *line;

	cJSON_AddItemToArray(list, cJSON_CreateNumber(number));
	expected = cJSON_PrintUnformatted(list);
	assert_true(asprintf(&line, "%s\n", expected) > 0);
	torsh_json_begin_array(json, NULL);
	torsh_json_put_double(json, NULL, number);
	torsh_json_end_array(json);
	expect(&written, line);
	cJSON_free(expected);
	cJSON_Delete(list);
	free(line);
}

/* But for -0, which versions of cJSON print differently. */
static void doubles_are_cjsons(void **state)
{
	static const double numbers[] = {0,	   1,	  -1,	    0.1,     1.0 / 3, 1e15,
					 1e17,	   1e300, 5e-324,   0x1p53,  0x1p63,  NAN,
					 INFINITY, 100,	  12345678, 2.5e-10, 99.9999, -INFINITY};
	uint64_t random = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		expect_double(numbers[i]);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t bits = random_next(&random);
		double number;

		memcpy(&number, &bits, sizeof(number));
		expect_double(number);
		expect_double((double)(bits >> 40) / 1000);
	}
}

static void rounded_numbers_are_printfs(void **state)
{
	static const double numbers[] = {
		0,    -0.0,	  1,	  -1,	   42,	   0.5,	  999999999999999.0,
		1e15, 12345678e8, 0x1p53, -0x1p53, 0x1p63, 1e300, -999999999999999.0};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		for (int n_digits = 9; n_digits <= 17; n_digits++) {
			struct written written;
			struct json_writer *json = begin(&written);
			char line[64];

			snprintf(line, sizeof(line), "[%.*g]\n", n_digits, numbers[i]);
			torsh_json_begin_array(json, NULL);
			torsh_json_put_rounded(json, NULL, numbers[i], n_digits);
			torsh_json_end_array(json);
			expect(&written, line);
		}
	}
}

static void texts_are_escaped(void **state)
{
	struct written written;
	struct json_writer *json = begin(&written);

	(void)state;
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "a", "\"\\/\b\f\n\r\t\x01\x1f");
	torsh_json_put_text(json, "b", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
	torsh_json_put_text(json, "c", "x\xff\xc3(\xed\xa0\x80");
	torsh_json_put_text(json, "d", NULL);
	torsh_json_put_text_n(json, "e", "abc", 2);
	torsh_json_put_format(json, "f", "%d\n", 3);
	torsh_json_put_name(json, "a \"name\"");
	torsh_json_put_u64(json, NULL, 1);
	torsh_json_begin_text(json, "g");
	torsh_json_add_text(json, "one");
	torsh_json_add_text_n(json, "\"two", 2);
	torsh_json_end_text(json);
	torsh_json_end_object(json);
	expect(&written, "{\"a\":\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\","
			 "\"b\":\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\","
			 "\"c\":\"x\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\","
			 "\"d\":null,\"e\":\"ab\",\"f\":\"3\\n\",\"a \\\"name\\\"\":1,"
			 "\"g\":\"one\\\"t\"}\n");
}

static void what_a_terminal_obeys_is_escaped_for_a_file_only(void **state)
{
	static const char text[] = "\x7f\xc2\x9b\xe2\x80\xae";
	struct written written;
	struct json_writer *json = begin(&written);
	char *escaped = torsh_json_escape(text);

	(void)state;
	torsh_json_begin_array(json, NULL);
	torsh_json_put_text(json, NULL, text);
	torsh_json_end_array(json);
	expect(&written, "[\"\\u007f\\u009b\\u202e\"]\n");
	assert_string_equal(escaped, text);
	free(escaped);
}

static void members_are_cached_and_put_again(void **state)
{
	struct written written;
	struct json_writer *json = begin(&written), cache;
	char *members;

	(void)state;
	torsh_json_open_members(&cache);
	torsh_json_put_u64(&cache, "pid", 1);
	torsh_json_put_text(&cache, "name", "x");
	members = torsh_json_close_memory(&cache);
	assert_string_equal(members, "\"pid\":1,\"name\":\"x\"");
	torsh_json_begin_object(json, NULL);
	torsh_json_put_members(json, members);
	torsh_json_put_members(json, "");
	torsh_json_put_members(json, members);
	torsh_json_put_raw(json, "raw", "[1]");
	torsh_json_put_escaped(json, "text", "\\n");
	torsh_json_end_object(json);
	expect(&written, "{\"pid\":1,\"name\":\"x\",\"pid\":1,\"name\":\"x\",\"raw\":[1],"
			 "\"text\":\"\\n\"}\n");
	free(members);
}

/* A buffer that counts what is written out of it. */
struct small_buffer {
	char bytes[JSON_ROOM_MAX];
	char canary[16];
	size_t n_out, n_calls;
};

static void empty_buffer(struct json_writer *json, size_t n)
{
	struct small_buffer *buffer = json->sink;

	(void)n;
	buffer->n_out += (size_t)(json->at - json->start);
	buffer->n_calls++;
	json->at = json->start;
}

static void nothing_is_written_beyond_a_buffer(void **state)
{
	struct small_buffer buffer = {.canary = "canary"};
	struct json_writer json;
	char *text = malloc(3 * JSON_ROOM_MAX + 1);
	size_t n;

	(void)state;
	memset(text, '\n', 3 * JSON_ROOM_MAX);
	text[3 * JSON_ROOM_MAX] = '\0';
	for (size_t n_text = 0; n_text < 3 * JSON_ROOM_MAX; n_text += 61) {
		buffer.n_out = 0;
		torsh_json_open_buffer(&json, buffer.bytes, sizeof(buffer.bytes), empty_buffer,
				       &buffer);
		torsh_json_begin_array(&json, NULL);
		torsh_json_put_text_n(&json, NULL, text, n_text);
		torsh_json_put_escaped_n(&json, NULL, text, n_text);
		torsh_json_put_u64(&json, NULL, 12345);
		torsh_json_end_array(&json);
		n = buffer.n_out + (size_t)(json.at - json.start);
		assert_int_equal(n, sizeof("[\"\",\"\",12345]\n") - 1 + 3 * n_text);
		assert_string_equal(buffer.canary, "canary");
	}
	assert_true(buffer.n_calls > 0);
	free(text);
}

/* How the child that runs it ends. */
static int status_of(void (*run)(void))
{
	static const struct rlimit no_core = {0};
	pid_t child = fork();
	int status;

	if (child == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		/* cmocka has a handler of its own */
		signal(SIGABRT, SIG_DFL);
		freopen("/dev/null", "w", stderr);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void leave_open(void)
{
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_object(&json, NULL);
	torsh_json_end_array(&json);
}

static void forget_a_name(void)
{
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_object(&json, NULL);
	torsh_json_put_u64(&json, NULL, 1);
}

static void nest_too_deep(void)
{
	struct json_writer json;

	torsh_json_open(&json, stdout);
	for (unsigned i = 0; i < JSON_DEPTH_MAX; i++)
		torsh_json_begin_array(&json, NULL);
}

static void nesting_that_does_not_match_is_asserted(void **state)
{
	void (*const wrong[])(void) = {leave_open, forget_a_name, nest_too_deep};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		int status = status_of(wrong[i]);

		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}

static void write_to_a_full_disk(void)
{
	struct json_writer json;

	torsh_json_open(&json, fopen("/dev/full", "w"));
	torsh_json_begin_array(&json, NULL);
	for (unsigned i = 0; i < 100000; i++)
		torsh_json_put_u64(&json, NULL, i);
	torsh_json_end_array(&json);
	torsh_json_close(&json);
}

static void a_write_error_ends_with_status_2(void **state)
{
	int status = status_of(write_to_a_full_disk);

	(void)state;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_has_a_member_and_an_item_on_each_line),
		cmocka_unit_test(each_outermost_value_is_a_line),
		cmocka_unit_test(numbers_keep_all_their_digits),
		cmocka_unit_test(digits_are_printfs),
		cmocka_unit_test(doubles_are_cjsons),
		cmocka_unit_test(rounded_numbers_are_printfs),
		cmocka_unit_test(texts_are_escaped),
		cmocka_unit_test(what_a_terminal_obeys_is_escaped_for_a_file_only),
		cmocka_unit_test(members_are_cached_and_put_again),
		cmocka_unit_test(nothing_is_written_beyond_a_buffer),
		cmocka_unit_test(nesting_that_does_not_match_is_asserted),
		cmocka_unit_test(a_write_error_ends_with_status_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
