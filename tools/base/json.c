/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/utf8.h"

/*
 * JSON is ASCII but in its strings; what a terminal would obey there is escaped, and loses nothing.
 */
static void print_escaped(FILE *file, const char *text)
{
	const char *end = text + strlen(text), *from = text;

	while (text < end) {
		size_t n = (unsigned char)*text < 0x7f
				   ? 1
				   : torsh_utf8_bytes(text, (size_t)(end - text));
		uint32_t character = n ? torsh_utf8_character(text, n) : 0;

		if (character >= 0x7f && torsh_utf8_is_obeyed(character)) {
			fwrite(from, 1, (size_t)(text - from), file);
			fprintf(file, "\\u%04" PRIx32, character);
			from = text + n;
		}
		text += n ? n : 1;
	}
	fputs(from, file);
}

static void print_value(FILE *file, cJSON *value)
{
	char *text = torsh_need(cJSON_PrintUnformatted(value));

	print_escaped(file, text);
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

cJSON *torsh_json_double(double number)
{
	return torsh_need(isfinite(number) ? cJSON_CreateNumber(number) : cJSON_CreateNull());
}

char *torsh_json_utf8(const char *text)
{
	const char *end = text + strlen(text);
	char *clean = torsh_need(malloc((size_t)(end - text) * 3 + 1)), *to = clean;

	while (text < end) {
		size_t n = torsh_utf8_bytes(text, (size_t)(end - text));

		if (n) {
			to = mempcpy(to, text, n);
			text += n;
		} else {
			to = stpcpy(to, "\xef\xbf\xbd");
			text++;
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
