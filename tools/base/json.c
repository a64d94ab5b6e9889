/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/utf8.h"

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
