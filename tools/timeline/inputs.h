/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The inputs of an operator, parsed from the text that op_begin.inputs refers to
 * (agent/wire/PROTOCOL.md): tensors with type, sizes and strides; numbers; lists of these. The text
 * comes from an untrusted file.
 */
#ifndef TORSH_TIMELINE_INPUTS_H
#define TORSH_TIMELINE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUTS_MAX 256 /* including items of lists; further ones are ignored */
#define INPUT_DIMS_MAX 12

enum input_kind {
	INPUT_TENSOR,
	INPUT_UNDEFINED, /* an undefined tensor */
	INPUT_LIST,
	INPUT_INTEGER,
	INPUT_DOUBLE,
	INPUT_BOOL,
	INPUT_NONE,
	INPUT_GROUP, /* a process group: integer is its number */
	INPUT_OTHER,
};

struct input {
	enum input_kind kind;
	const char *text; /* part of the parsed text; not terminated */
	size_t n_text;
	/*
	 * INPUT_LIST: number of the following items that belong to it, including those of inner
	 * lists
	 */
	uint32_t n_items;
	/*
	 * INPUT_TENSOR; has_strides: it is not contiguous; is_meta: it has no data; is_elsewhere:
	 * it is on a device
	 */
	size_t n_type; /* of text: the name of the type */
	uint32_t n_dims;
	bool has_strides, is_meta, is_elsewhere;
	int64_t dims[INPUT_DIMS_MAX], strides[INPUT_DIMS_MAX];
	/* INPUT_INTEGER, INPUT_BOOL, INPUT_DOUBLE, INPUT_GROUP */
	int64_t integer;
	double number;
};

struct inputs {
	struct input items[INPUTS_MAX];
	uint32_t n_items;
	uint32_t n; /* inputs of the operator: items outside of lists */
	uint32_t at[INPUTS_MAX]; /* the index of each input's item */
	bool is_whole; /* false: there are more than INPUTS_MAX, or the text is no list of inputs */
};

/*
 * Parse the text, which must outlive *inputs. NULL or "": no inputs, and is_whole is false. Inputs
 * of an enclosing transform (torch.func) are items, but not inputs.
 */
void torsh_inputs_parse(struct inputs *inputs, const char *text);

/* Returns input i, or NULL if there are fewer. */
const struct input *torsh_inputs_get(const struct inputs *inputs, uint32_t i);

/* Returns the number of elements of a tensor; 0 if it has none or the number is invalid. */
uint64_t torsh_input_elements(const struct input *tensor);

#endif
