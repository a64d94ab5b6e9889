/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/chrome/chrome_inputs.h"

#include <string.h>

#include "tools/base/json_writer.h"

const struct chrome_type *torsh_chrome_type(const struct input *tensor)
{
	static const struct chrome_type types[] = {
		{"float32", "float", "Float"},
		{"float64", "double", "Double"},
		{"float16", "c10::Half", "Half"},
		{"bfloat16", "c10::BFloat16", "BFloat16"},
		{"int64", "long int", "Long"},
		{"int32", "int", "Int"},
		{"int16", "short int", "Short"},
		{"int8", "signed char", "Char"},
		{"uint8", "unsigned char", "Byte"},
		{"bool", "bool", "Bool"},
		{"complex64", "c10::complex<float>", "ComplexFloat"},
		{"complex128", "c10::complex<double>", "ComplexDouble"},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (strlen(types[i].torch) == tensor->n_type &&
		    strncmp(types[i].torch, tensor->text, tensor->n_type) == 0)
			return &types[i];
	}
	return NULL;
}

/* PyTorch omits lists of lists. */
static bool holds_lists(const struct input *input)
{
	return input->kind == INPUT_LIST && input->n_items && input[1].kind == INPUT_LIST;
}

/* Put the type as PyTorch names it; "" where it names none. */
static void put_type(struct json_writer *json, const struct input *input)
{
	const struct chrome_type *type;

	if (holds_lists(input)) {
		torsh_json_put_escaped(json, NULL, "");
		return;
	}
	if (input->kind == INPUT_LIST) {
		bool is_tensors = input->n_items && input[1].kind == INPUT_TENSOR;

		torsh_json_put_escaped(json, NULL, is_tensors ? "TensorList" : "ScalarList");
		return;
	}
	if (input->kind != INPUT_TENSOR) {
		bool is_number = input->kind == INPUT_INTEGER || input->kind == INPUT_DOUBLE ||
				 input->kind == INPUT_BOOL;

		torsh_json_put_escaped(json, NULL, is_number ? "Scalar" : "");
		return;
	}
	type = torsh_chrome_type(input);
	if (type)
		torsh_json_put_escaped(json, NULL, type->cpp);
	else
		torsh_json_put_text_n(json, NULL, input->text, input->n_type);
}

static void put_numbers(struct json_writer *json, const int64_t *numbers, uint32_t n)
{
	torsh_json_begin_array(json, NULL);
	for (uint32_t i = 0; i < n; i++)
		torsh_json_put_i64(json, NULL, numbers[i]);
	torsh_json_end_array(json);
}

static void put_dims(struct json_writer *json, const struct input *input)
{
	bool is_tensors =
		input->kind == INPUT_LIST && input->n_items && input[1].kind == INPUT_TENSOR;

	if (!is_tensors) {
		put_numbers(json, input->dims, input->kind == INPUT_TENSOR ? input->n_dims : 0);
		return;
	}
	torsh_json_begin_array(json, NULL);
	for (uint32_t i = 1; i <= input->n_items; i++)
		put_numbers(json, input[i].dims,
			    input[i].kind == INPUT_TENSOR ? input[i].n_dims : 0);
	torsh_json_end_array(json);
}

/* Omit the strides of a contiguous tensor, which follow from its sizes. */
static void put_strides(struct json_writer *json, const struct input *input)
{
	int64_t strides[INPUT_DIMS_MAX];
	uint64_t step = 1;

	if (input->kind != INPUT_TENSOR || input->has_strides) {
		put_numbers(json, input->strides, input->kind == INPUT_TENSOR ? input->n_dims : 0);
		return;
	}
	for (uint32_t i = input->n_dims; i; i--) {
		strides[i - 1] = (int64_t)step;
		step *= input->dims[i - 1] > 1 ? (uint64_t)input->dims[i - 1] : 1;
	}
	put_numbers(json, strides, input->n_dims);
}

/* Append a value as Python prints it, within a JSON string. */
static void add_concrete(struct json_writer *json, const struct input *input)
{
	switch (input->kind) {
	case INPUT_BOOL:
		torsh_json_add_text(json, input->integer ? "True" : "False");
		return;
	case INPUT_INTEGER:
	case INPUT_DOUBLE:
		torsh_json_add_text_n(json, input->text, input->n_text);
		return;
	case INPUT_LIST:
		if ((input->n_items && input[1].kind == INPUT_TENSOR) || holds_lists(input))
			return;
		torsh_json_add_text(json, "[");
		for (uint32_t i = 1; i <= input->n_items; i++) {
			torsh_json_add_text(json, i > 1 ? ", " : "");
			add_concrete(json, &input[i]);
		}
		torsh_json_add_text(json, "]");
		return;
	default:
		return;
	}
}

static void put_concrete(struct json_writer *json, const struct input *input)
{
	torsh_json_begin_text(json, NULL);
	add_concrete(json, input);
	torsh_json_end_text(json);
}

static void put_each(struct json_writer *json, const struct inputs *inputs, const char *name,
		     void (*put)(struct json_writer *json, const struct input *input))
{
	torsh_json_begin_array(json, name);
	for (uint32_t i = 0; i < inputs->n; i++)
		put(json, torsh_inputs_get(inputs, i));
	torsh_json_end_array(json);
}

char *torsh_chrome_inputs(const struct inputs *inputs)
{
	struct json_writer json;

	torsh_json_open_members(&json);
	if (inputs->is_whole) {
		put_each(&json, inputs, "Input Dims", put_dims);
		put_each(&json, inputs, "Input type", put_type);
		put_each(&json, inputs, "Input Strides", put_strides);
		put_each(&json, inputs, "Concrete Inputs", put_concrete);
	}
	return torsh_json_close_memory(&json);
}
