/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Checks a value against a JSON schema: the keywords that tools/schema/ uses (type, required, properties,
 * additionalProperties, items, enum, const, minimum, maximum, pattern of hexadecimal numbers, anyOf, $ref to #/$defs). A schema
 * with another keyword is an error, so that nothing passes unchecked.
 */
#ifndef TORSH_TEST_SCHEMA_CHECK_H
#define TORSH_TEST_SCHEMA_CHECK_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct schema_check {
	const cJSON *root;
	char problem[512]; /* the first one */
};

static inline bool schema_fits(struct schema_check *check, const cJSON *schema, const cJSON *value, const char *at);

static inline bool schema_refuse(struct schema_check *check, const char *at, const char *why, const char *what)
{
	if (!*check->problem)
		snprintf(check->problem, sizeof(check->problem), "%s: %s %s", at, why, what);
	return false;
}

static inline bool schema_is_type(const char *type, const cJSON *value)
{
	if (strcmp(type, "object") == 0)
		return cJSON_IsObject(value);
	if (strcmp(type, "array") == 0)
		return cJSON_IsArray(value);
	if (strcmp(type, "string") == 0)
		return cJSON_IsString(value);
	if (strcmp(type, "boolean") == 0)
		return cJSON_IsBool(value);
	if (strcmp(type, "null") == 0)
		return cJSON_IsNull(value);
	if (strcmp(type, "integer") == 0)
		return cJSON_IsNumber(value) && floor(value->valuedouble) == value->valuedouble;
	return strcmp(type, "number") == 0 && cJSON_IsNumber(value);
}

static inline bool schema_check_type(struct schema_check *check, const cJSON *types, const cJSON *value, const char *at)
{
	const cJSON *type;

	if (cJSON_IsString(types))
		return schema_is_type(types->valuestring, value) ||
		       schema_refuse(check, at, "is no", types->valuestring);
	cJSON_ArrayForEach(type, types)
	{
		if (schema_is_type(type->valuestring, value))
			return true;
	}
	return schema_refuse(check, at, "has the wrong", "type");
}

static inline bool schema_check_required(struct schema_check *check, const cJSON *names, const cJSON *value,
					 const char *at)
{
	const cJSON *name;

	cJSON_ArrayForEach(name, names)
	{
		if (cJSON_IsObject(value) && !cJSON_GetObjectItemCaseSensitive(value, name->valuestring))
			return schema_refuse(check, at, "lacks", name->valuestring);
	}
	return true;
}

static inline bool schema_check_members(struct schema_check *check, const cJSON *schema, const cJSON *value,
					const char *at)
{
	const cJSON *known = cJSON_GetObjectItemCaseSensitive(schema, "properties");
	const cJSON *others = cJSON_GetObjectItemCaseSensitive(schema, "additionalProperties");
	const cJSON *member;

	if (!cJSON_IsObject(value))
		return true;
	cJSON_ArrayForEach(member, value)
	{
		const cJSON *its = cJSON_GetObjectItemCaseSensitive(known, member->string);
		char path[256];

		snprintf(path, sizeof(path), "%.180s.%.60s", at, member->string);
		if (!its && cJSON_IsFalse(others))
			return schema_refuse(check, path, "is not in", "the schema");
		if (!its && cJSON_IsObject(others))
			its = others;
		if (its && !schema_fits(check, its, member, path))
			return false;
	}
	return true;
}

static inline bool schema_check_items(struct schema_check *check, const cJSON *items, const cJSON *value,
				      const char *at)
{
	const cJSON *item;
	char path[256];

	snprintf(path, sizeof(path), "%.200s[]", at);
	if (!cJSON_IsArray(value))
		return true;
	cJSON_ArrayForEach(item, value)
	{
		if (!schema_fits(check, items, item, path))
			return false;
	}
	return true;
}

static inline bool schema_check_any(struct schema_check *check, const cJSON *list, const cJSON *value, const char *at)
{
	const cJSON *one;

	cJSON_ArrayForEach(one, list)
	{
		struct schema_check other = {.root = check->root};

		if (schema_fits(&other, one, value, at))
			return true;
	}
	return schema_refuse(check, at, "fits none of", "anyOf");
}

static inline bool schema_check_enum(struct schema_check *check, const cJSON *list, const cJSON *value, const char *at)
{
	const cJSON *one;

	cJSON_ArrayForEach(one, list)
	{
		if (cJSON_Compare(one, value, true))
			return true;
	}
	return schema_refuse(check, at, "is none of", "enum");
}

static inline bool schema_is_hex(const cJSON *value)
{
	const char *text = value->valuestring;

	return !cJSON_IsString(value) ||
	       (strncmp(text, "0x", 2) == 0 && text[2] && strspn(text + 2, "0123456789abcdef") == strlen(text + 2));
}

static inline bool schema_check_keyword(struct schema_check *check, const cJSON *schema, const cJSON *keyword,
					const cJSON *value, const char *at)
{
	static const char *const words[] = {"$schema", "$id", "$defs", "title", "description", "additionalProperties"};
	const char *name = keyword->string;

	if (strcmp(name, "type") == 0)
		return schema_check_type(check, keyword, value, at);
	if (strcmp(name, "required") == 0)
		return schema_check_required(check, keyword, value, at);
	if (strcmp(name, "properties") == 0)
		return schema_check_members(check, schema, value, at);
	if (strcmp(name, "items") == 0)
		return schema_check_items(check, keyword, value, at);
	if (strcmp(name, "anyOf") == 0)
		return schema_check_any(check, keyword, value, at);
	if (strcmp(name, "enum") == 0)
		return schema_check_enum(check, keyword, value, at);
	if (strcmp(name, "const") == 0)
		return cJSON_Compare(keyword, value, true) || schema_refuse(check, at, "is not the", "const");
	if (strcmp(name, "minimum") == 0)
		return !cJSON_IsNumber(value) || value->valuedouble >= keyword->valuedouble ||
		       schema_refuse(check, at, "is below", "minimum");
	if (strcmp(name, "maximum") == 0)
		return !cJSON_IsNumber(value) || value->valuedouble <= keyword->valuedouble ||
		       schema_refuse(check, at, "is above", "maximum");
	if (strcmp(name, "pattern") == 0 && strcmp(keyword->valuestring, "^0x[0-9a-f]+$") == 0)
		return schema_is_hex(value) || schema_refuse(check, at, "is no", "hexadecimal number");
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(name, words[i]) == 0)
			return true;
	}
	return schema_refuse(check, at, "has a schema with the unknown keyword", name);
}

static inline bool schema_fits(struct schema_check *check, const cJSON *schema, const cJSON *value, const char *at)
{
	static const char prefix[] = "#/$defs/";
	const cJSON *ref = cJSON_GetObjectItemCaseSensitive(schema, "$ref"), *keyword;

	if (ref) {
		const cJSON *all = cJSON_GetObjectItemCaseSensitive(check->root, "$defs");

		if (strncmp(ref->valuestring, prefix, sizeof(prefix) - 1) != 0)
			return schema_refuse(check, at, "has an odd", "$ref");
		schema = cJSON_GetObjectItemCaseSensitive(all, ref->valuestring + sizeof(prefix) - 1);
	}
	if (!cJSON_IsObject(schema))
		return schema_refuse(check, at, "has no", "schema");
	cJSON_ArrayForEach(keyword, schema)
	{
		if (!schema_check_keyword(check, schema, keyword, value, at))
			return false;
	}
	if (!cJSON_GetObjectItemCaseSensitive(schema, "properties") &&
	    cJSON_GetObjectItemCaseSensitive(schema, "additionalProperties"))
		return schema_check_members(check, schema, value, at);
	return true;
}

/* Does the JSON text fit the schema in the file? Otherwise problem says where it doesn't. */
static inline bool schema_check_text(struct schema_check *check, const char *schema_path, const char *text)
{
	FILE *file = fopen(schema_path, "re");
	char *schema_text = NULL;
	size_t n_room = 0;
	cJSON *schema, *value;
	bool is_fit = false;

	*check = (struct schema_check){0};
	if (!file || getdelim(&schema_text, &n_room, '\0', file) <= 0)
		return schema_refuse(check, schema_path, "can't be", "read");
	fclose(file);
	schema = cJSON_Parse(schema_text);
	value = cJSON_Parse(text);
	check->root = schema;
	if (!schema)
		schema_refuse(check, schema_path, "is no", "JSON");
	else if (!value)
		schema_refuse(check, "$", "is no", "JSON");
	else
		is_fit = schema_fits(check, schema, value, "$");
	cJSON_Delete(schema);
	cJSON_Delete(value);
	free(schema_text);
	return is_fit;
}

#endif
