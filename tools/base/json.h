/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Values of cJSON, for what builds a tree of JSON. tools/base/json_writer.h writes JSON without.
 *
 * 64-bit numbers keep all their digits. Text that is no UTF-8 gets U+FFFD for each bad byte.
 */
#ifndef TORSH_BASE_JSON_H
#define TORSH_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Values: NULL becomes null. */
cJSON *torsh_json_u64(uint64_t number);

/* The same of a signed number. */
cJSON *torsh_json_i64(int64_t number);
cJSON *torsh_json_double(double number); /* null where it is not finite */
cJSON *torsh_json_text(const char *text);

/* true or false. */
cJSON *torsh_json_bool(bool is_true);

/* The text as UTF-8, with U+FFFD for each byte that is none; the caller's. */
char *torsh_json_utf8(const char *text);

/* Add a member to an object; takes value. */
void torsh_json_set(cJSON *object, const char *name, cJSON *value);

/* Add an item to an array; takes value. */
void torsh_json_add(cJSON *array, cJSON *value);

/* A new object. */
cJSON *torsh_json_object(void);

/* A new array. */
cJSON *torsh_json_list(void);

#endif
