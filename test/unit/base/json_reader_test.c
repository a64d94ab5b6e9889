/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* JSON read as a stream has the values that cJSON finds, in pieces of any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "tools/base/json_reader.h"

struct pieces {
	const char *text;
	size_t n, piece;
};

static size_t fill(void *source, char *bytes, size_t n)
{
	struct pieces *pieces = source;

	n = n < pieces->piece ? n : pieces->piece;
	n = n < pieces->n ? n : pieces->n;
	memcpy(bytes, pieces->text, n);
	pieces->text += n;
	pieces->n -= n;
	return n;
}

static cJSON *read_value(struct json_reader *json);

static char *copy(struct json_slice slice)
{
	return strndup(slice.text, slice.n);
}

static cJSON *read_object(struct json_reader *json)
{
	cJSON *object = cJSON_CreateObject();
	struct json_slice name;
	bool is_open = false;

	torsh_json_enter(json, JSON_OBJECT);
	while (torsh_json_member(json, &is_open, &name)) {
		char *text = copy(name);

		cJSON_AddItemToObject(object, text, read_value(json));
		free(text);
	}
	return object;
}

static cJSON *read_array(struct json_reader *json)
{
	cJSON *array = cJSON_CreateArray();
	bool is_open = false;

	torsh_json_enter(json, JSON_ARRAY);
	while (torsh_json_item(json, &is_open))
		cJSON_AddItemToArray(array, read_value(json));
	return array;
}

/* Read a value as cJSON's; true, false and null are null. */
static cJSON *read_value(struct json_reader *json)
{
	struct json_slice slice;
	cJSON *item;
	double value;
	bool is_whole;
	char *text;

	switch (torsh_json_peek(json)) {
	case JSON_OBJECT:
		return read_object(json);
	case JSON_ARRAY:
		return read_array(json);
	case JSON_TEXT:
		assert_true(torsh_json_text(json, &slice));
		text = copy(slice);
		item = cJSON_CreateString(text);
		free(text);
		return item;
	case JSON_NUMBER:
		assert_true(torsh_json_number(json, &value, &is_whole));
		return cJSON_CreateNumber(value);
	default:
		torsh_json_skip(json);
		return cJSON_CreateNull();
	}
}

static const char document[] =
	"{\"a\": [1, -2.5, 1e3, 4458676524648.797, 1682725898236567.123, 0.1, 123456789012345678901234567890,"
	" 1.7976931348623157e308, 5e-324], \"\\u00e9\\ud83d\\ude00\" : \"x\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\",\n"
	"\t\"deep\":[[[[{\"b\":{}}, []]]], {\"c\" :null , \"d\": null}], \"e\": \"\", \"\": \"\\\\\"}";

static void values_are_those_of_cjson_in_pieces_of_any_size(void **state)
{
	cJSON *expected = cJSON_Parse(document);

	(void)state;
	assert_non_null(expected);
	for (size_t piece = 1; piece <= sizeof(document); piece++) {
		struct pieces pieces = {document, sizeof(document) - 1, piece};
		struct json_reader json;
		cJSON *found;

		torsh_json_reader_start(&json, fill, &pieces);
		found = read_value(&json);
		assert_true(torsh_json_end(&json));
		assert_true(cJSON_Compare(found, expected, true));
		cJSON_Delete(found);
		torsh_json_reader_free(&json);
	}
	cJSON_Delete(expected);
}

/* cJSON compares numbers with a tolerance. */
static void numbers_are_exact(void **state)
{
	static const struct {
		const char *text;
		double value;
		bool is_whole;
	} numbers[] = {
		{"0", 0, true},
		{"-17", -17, true},
		{"9007199254740993", 9007199254740992.0, true},
		{"4458676524648.797", 4458676524648.797, false},
		{"1682725898236567.123", 1682725898236567.123, false},
		{"0.1", 0.1, false},
		{"1e3", 1000, false},
		{"123456789012345678901234567890", 123456789012345678901234567890.0, true},
		{"5e-324", 5e-324, false},
		{"0.000000000000000000001", 1e-21, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		struct pieces pieces = {numbers[i].text, strlen(numbers[i].text), 3};
		struct json_reader json;
		bool is_whole;
		double value;

		torsh_json_reader_start(&json, fill, &pieces);
		assert_true(torsh_json_number(&json, &value, &is_whole));
		assert_memory_equal(&value, &numbers[i].value, sizeof(value));
		assert_int_equal(is_whole, numbers[i].is_whole);
		torsh_json_reader_free(&json);
	}
}

static void each_cut_document_is_a_fault(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(document) - 2; n++) {
		struct pieces pieces = {document, n, 16};
		struct json_reader json;

		torsh_json_reader_start(&json, fill, &pieces);
		assert_false(torsh_json_skip(&json));
		assert_non_null(json.fault);
		assert_true(json.fault_at <= n);
		torsh_json_reader_free(&json);
	}
}

static void what_is_no_json_is_a_fault_where_it_is(void **state)
{
	static const struct {
		const char *text;
		size_t at;
	} faults[] = {{"{\"a\" 1}", 5}, {"[1 2]", 3},	   {"[1,]", 3},	   {"{\"a\":}", 5},
		      {"{1:2}", 1},	{"[tru]", 1},	   {"\"\\x\"", 0}, {"\"\\u12g4\"", 0},
		      {"[1}", 2},	{"{\"a\":1,}", 7}, {"[1-]", 1},	   {"]", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct pieces pieces = {faults[i].text, strlen(faults[i].text), 2};
		struct json_reader json;

		torsh_json_reader_start(&json, fill, &pieces);
		if (faults[i].text[0] == '"') {
			struct json_slice text;

			assert_false(torsh_json_text(&json, &text));
		} else {
			assert_false(torsh_json_skip(&json));
		}
		assert_int_equal(json.fault_at, faults[i].at);
		torsh_json_reader_free(&json);
	}
}

/* Reads a document in pieces; returns whether all of it is JSON, and where it is not. */
static bool is_json(const char *text, size_t n, size_t piece, uint64_t *fault_at)
{
	struct pieces pieces = {text, n, piece};
	struct json_reader json;
	bool is_good;

	torsh_json_reader_start(&json, fill, &pieces);
	is_good = torsh_json_skip(&json) && torsh_json_end(&json);
	*fault_at = is_good ? 0 : json.fault_at;
	torsh_json_reader_free(&json);
	return is_good;
}

/* What is whole in the window is passed over in another way than what comes byte by byte. */
static void changed_documents_are_judged_alike_in_one_piece_and_in_bytes(void **state)
{
	static const char bytes[] = "{}[],:\"\\ 0-.e1tfn\n";
	uint64_t random = 88172645463325252u, whole_at, bytes_at;
	/* Numbers and words are passed over only with 64 bytes behind them. */
	char text[sizeof(document) + 64];
	size_t n_good = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		bool is_good;

		memcpy(text, document, sizeof(document) - 1);
		memset(text + sizeof(document) - 1, ' ', 65);
		for (int k = 0; k <= i % 3; k++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			text[random % (sizeof(document) - 1)] =
				bytes[(random >> 32) % (sizeof(bytes) - 1)];
		}
		is_good = is_json(text, sizeof(text), sizeof(text), &whole_at);
		n_good += is_good;
		assert_int_equal(is_good, is_json(text, sizeof(text), 1, &bytes_at));
		assert_int_equal(whole_at, bytes_at);
	}
	assert_in_range(n_good, 100, 19900);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_those_of_cjson_in_pieces_of_any_size),
		cmocka_unit_test(numbers_are_exact),
		cmocka_unit_test(each_cut_document_is_a_fault),
		cmocka_unit_test(what_is_no_json_is_a_fault_where_it_is),
		cmocka_unit_test(changed_documents_are_judged_alike_in_one_piece_and_in_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
