/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/report/json.h. */
#include "tools/report/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/die.h"

static void print_value(FILE *file, cJSON *value)
{
	char *text = torsh_need(cJSON_PrintUnformatted(value));

	fputs(text, file);
	cJSON_free(text);
	cJSON_Delete(value);
}

void torsh_json_begin(struct json *json, FILE *file)
{
	*json = (struct json){.file = file};
	fputc('{', file);
}

static void print_name(struct json *json, const char *name)
{
	fputs(json->has_members ? ",\n" : "", json->file);
	json->has_members = true;
	print_value(json->file, torsh_json_text(name));
	fputc(':', json->file);
}

void torsh_json_member(struct json *json, const char *name, cJSON *value)
{
	print_name(json, name);
	print_value(json->file, value);
}

void torsh_json_array(struct json *json, const char *name)
{
	print_name(json, name);
	fputc('[', json->file);
	json->has_items = false;
}

void torsh_json_item_begin(struct json *json)
{
	fputs(json->has_items ? ",\n" : "\n", json->file);
	json->has_items = true;
}

void torsh_json_item(struct json *json, cJSON *value)
{
	torsh_json_item_begin(json);
	print_value(json->file, value);
}

void torsh_json_array_end(struct json *json)
{
	fputc(']', json->file);
}

void torsh_json_end(struct json *json)
{
	fputs("}\n", json->file);
	if (fflush(json->file) || ferror(json->file))
		torsh_die("can't write the report: %s", strerror(errno));
}

cJSON *torsh_json_u64(uint64_t number)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, number);
	return torsh_need(cJSON_CreateRaw(digits));
}

cJSON *torsh_json_i64(int64_t number)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRId64, number);
	return torsh_need(cJSON_CreateRaw(digits));
}

cJSON *torsh_json_hex(uint64_t number)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "0x%" PRIx64, number);
	return torsh_need(cJSON_CreateString(digits));
}

/* Bytes of the UTF-8 character at text, or 0 where there is none. */
static size_t character_bytes(const unsigned char *text)
{
	static const struct {
		unsigned char first, last, second_first, second_last;
		size_t n;
	} forms[] = {
		{0x01, 0x7f, 0, 0, 1},	     {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (*text < forms[i].first || *text > forms[i].last)
			continue;
		if (forms[i].n > 1 && (text[1] < forms[i].second_first || text[1] > forms[i].second_last))
			return 0;
		for (size_t k = 2; k < forms[i].n; k++) {
			if ((text[k] & 0xc0) != 0x80)
				return 0;
		}
		return forms[i].n;
	}
	return 0;
}

cJSON *torsh_json_double(double number)
{
	return torsh_need(isfinite(number) ? cJSON_CreateNumber(number) : cJSON_CreateNull());
}

char *torsh_json_utf8(const char *text)
{
	const unsigned char *from = (const unsigned char *)text;
	char *clean = torsh_need(malloc(strlen(text) * 3 + 1)), *to = clean;

	while (*from) {
		size_t n = character_bytes(from);

		if (n) {
			memcpy(to, from, n);
			to += n;
			from += n;
		} else {
			to = stpcpy(to, "\xef\xbf\xbd");
			from++;
		}
	}
	*to = '\0';
	return clean;
}

cJSON *torsh_json_text(const char *text)
{
	char *clean;
	cJSON *value;

	if (!text)
		return torsh_need(cJSON_CreateNull());
	clean = torsh_json_utf8(text);
	value = torsh_need(cJSON_CreateString(clean));
	free(clean);
	return value;
}

cJSON *torsh_json_bool(bool is_true)
{
	return torsh_need(cJSON_CreateBool(is_true));
}

void torsh_json_set(cJSON *object, const char *name, cJSON *value)
{
	if (!cJSON_AddItemToObject(object, name, value))
		torsh_die("out of memory");
}

void torsh_json_add(cJSON *array, cJSON *value)
{
	if (!cJSON_AddItemToArray(array, value))
		torsh_die("out of memory");
}

cJSON *torsh_json_object(void)
{
	return torsh_need(cJSON_CreateObject());
}

cJSON *torsh_json_list(void)
{
	return torsh_need(cJSON_CreateArray());
}

void torsh_json_line(FILE *file, cJSON *value)
{
	print_value(file, value);
	fputc('\n', file);
}
