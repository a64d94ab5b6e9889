/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/inductor/cpp_types.h"

#include <string.h>

bool torsh_cpp_starts(struct cpp_text text, const char *with)
{
	return text.n >= strlen(with) && memcmp(text.at, with, strlen(with)) == 0;
}

bool torsh_cpp_has(struct cpp_text text, const char *part)
{
	return memmem(text.at, text.n, part, strlen(part));
}

struct cpp_text torsh_cpp_behind(struct cpp_text text, size_t n)
{
	while (n < text.n && text.at[n] == ' ')
		n++;
	return (struct cpp_text){text.at + n, text.n - n};
}

enum cpp_type torsh_cpp_type_named(struct cpp_text text)
{
	static const char *const of_floats[] = {"float", "double", "half", "Half", "Float8"};

	if (torsh_cpp_has(text, "complex"))
		return CPP_COMPLEX;
	for (size_t i = 0; i < sizeof(of_floats) / sizeof(*of_floats); i++) {
		if (torsh_cpp_has(text, of_floats[i]))
			return CPP_FLOAT;
	}
	return CPP_INTEGER;
}

static struct cpp_text take_word(struct cpp_text text)
{
	struct cpp_text word = {text.at, 0};

	while (word.n < text.n && torsh_cpp_is_word(word.at[word.n]))
		word.n++;
	return word;
}

static void add_array(struct cpp_types *types, struct cpp_text name, enum cpp_type type)
{
	if (!name.n || types->n_arrays == CPP_ARRAYS_MAX)
		return;
	types->arrays[types->n_arrays].name = name;
	types->arrays[types->n_arrays++].type = type;
}

/* "auto out_ptr3 = in_out_ptr0;": another name of it. */
static bool declare_alias(struct cpp_types *types, struct cpp_text line)
{
	struct cpp_text name = torsh_cpp_behind(line, 5), of;

	if (!torsh_cpp_starts(line, "auto ") ||
	    !(torsh_cpp_starts(name, "out_ptr") || torsh_cpp_starts(name, "in_ptr")))
		return false;
	name = take_word(name);
	of = (struct cpp_text){name.at + name.n, line.n - (size_t)(name.at + name.n - line.at)};
	if (!torsh_cpp_starts(of, " = "))
		return false;
	add_array(types, name, torsh_cpp_array(types, torsh_cpp_behind(of, 3)));
	return true;
}

void torsh_cpp_declare(struct cpp_types *types, struct cpp_text line)
{
	if (declare_alias(types, line))
		return;
	while (line.n) {
		const char *comma = memchr(line.at, ',', line.n);
		size_t n = comma ? (size_t)(comma - line.at) : line.n;
		const char *star = memchr(line.at, '*', n);
		struct cpp_text part = {line.at, n};

		if (star) {
			struct cpp_text type = {line.at, (size_t)(star - line.at)};
			struct cpp_text name = torsh_cpp_behind(part, type.n + 1);

			if (torsh_cpp_starts(name, "__restrict__ "))
				name = torsh_cpp_behind(name, 13);
			add_array(types, take_word(name), torsh_cpp_type_named(type));
		}
		line = torsh_cpp_behind(line, n + (comma ? 1 : 0));
	}
}

enum cpp_type torsh_cpp_array(const struct cpp_types *types, struct cpp_text text)
{
	struct cpp_text word = take_word(text);

	/* The last declaration of a name holds. */
	for (size_t i = types->n_arrays; word.n && i-- > 0;) {
		if (types->arrays[i].name.n == word.n &&
		    memcmp(types->arrays[i].name.at, word.at, word.n) == 0)
			return types->arrays[i].type;
	}
	return CPP_NOT_DEFINED;
}

bool torsh_cpp_next_value(struct cpp_text *text, size_t *n)
{
	while (text->n) {
		struct cpp_text word = take_word(*text);
		size_t digits = 3;

		if (!word.n) {
			*text = torsh_cpp_behind(*text, 1);
			continue;
		}
		*text = torsh_cpp_behind(*text, word.n);
		*n = 0;
		while (digits < word.n && word.at[digits] >= '0' && word.at[digits] <= '9') {
			*n = *n < CPP_VALUES_MAX ? *n * 10 + (size_t)(word.at[digits] - '0') : *n;
			digits++;
		}
		if (word.n > 3 && digits == word.n && memcmp(word.at, "tmp", 3) == 0) {
			*n = *n < CPP_VALUES_MAX ? *n : CPP_VALUES_MAX;
			return true;
		}
	}
	return false;
}
