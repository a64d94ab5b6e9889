/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The values in a C++ kernel of Inductor's, tmp0 and so on, and its arrays: whether they are
 * floating-point numbers. Names refer to the source.
 */
#ifndef TORSH_OPS_INDUCTOR_CPP_TYPES_H
#define TORSH_OPS_INDUCTOR_CPP_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPP_VALUES_MAX 4096u
#define CPP_ARRAYS_MAX 512u

enum cpp_type { CPP_NOT_DEFINED, CPP_INTEGER, CPP_FLOAT, CPP_COMPLEX };

/* A piece of the source. */
struct cpp_text {
	const char *at;
	size_t n;
};

struct cpp_types {
	uint8_t values[CPP_VALUES_MAX]; /* enum cpp_type, by the number in the name */
	struct {
		struct cpp_text name;
		enum cpp_type type;
	} arrays[CPP_ARRAYS_MAX];
	size_t n_arrays;
};

static inline bool torsh_cpp_is_word(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

bool torsh_cpp_starts(struct cpp_text text, const char *with);
bool torsh_cpp_has(struct cpp_text text, const char *part);
/* Drop n characters and the spaces behind them. */
struct cpp_text torsh_cpp_behind(struct cpp_text text, size_t n);

/* Returns the type by its name in the text: "const float*", "at::vec::Vectorized<float>". */
enum cpp_type torsh_cpp_type_named(struct cpp_text text);

/* Take over parameters and other arrays that a line declares: "const float* in_ptr0,". */
void torsh_cpp_declare(struct cpp_types *types, struct cpp_text line);

/* Returns the type of an array that the text begins with. */
enum cpp_type torsh_cpp_array(const struct cpp_types *types, struct cpp_text text);

/*
 * Find the next value in the text, and go behind it. Returns false if there is none; n: its
 * number, CPP_VALUES_MAX if that is too large.
 */
bool torsh_cpp_next_value(struct cpp_text *text, size_t *n);

#endif
