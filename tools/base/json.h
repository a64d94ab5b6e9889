/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * JSON as the commands print it: values are cJSON's; the outermost object is written member by
 * member and its long arrays item by item, so that a report of any length needs little memory.
 *
 * 64-bit numbers keep all their digits. Text that is no UTF-8 gets U+FFFD for each bad byte.
 */
#ifndef TORSH_BASE_JSON_H
#define TORSH_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *file;
	bool has_members, has_items;
};

/* Begin the outermost object. */
void torsh_json_begin(struct json *json, FILE *file);
/* Takes value. */
void torsh_json_member(struct json *json, const char *name, cJSON *value);

/* Begin a member that is an array of items. */
void torsh_json_array(struct json *json, const char *name);
/* Takes value. */
void torsh_json_item(struct json *json, cJSON *value);
/* Begin an item that the caller prints to the file itself. */
void torsh_json_item_begin(struct json *json);

/* End that array. */
void torsh_json_array_end(struct json *json);
/* Ends the line; exits with a sentence when writing failed. */
void torsh_json_end(struct json *json);

/* Values: NULL becomes null. */
cJSON *torsh_json_u64(uint64_t number);

/* The same of a signed number. */
cJSON *torsh_json_i64(int64_t number);
cJSON *torsh_json_hex(uint64_t number); /* "0x7f..." */
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

/* One line with the value, which is taken. */
void torsh_json_line(FILE *file, cJSON *value);

#endif
