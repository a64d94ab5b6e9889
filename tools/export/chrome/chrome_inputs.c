/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/chrome/chrome_inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/export/trace.h"

/* What C++ calls PyTorch's types. */
static const struct {
	const char *torch, *cpp;
} types[] = {
	{"float32", "float"},
	{"float64", "double"},
	{"float16", "c10::Half"},
	{"bfloat16", "c10::BFloat16"},
	{"int64", "long int"},
	{"int32", "int"},
	{"int16", "short int"},
	{"int8", "signed char"},
	{"uint8", "unsigned char"},
	{"bool", "bool"},
	{"complex64", "c10::complex<float>"},
	{"complex128", "c10::complex<double>"},
};

/* PyTorch omits these. */
static bool holds_lists(const struct input *input)
{
	return input->kind == INPUT_LIST && input->n_items && input[1].kind == INPUT_LIST;
}

/* Number i of a list, whatever it is. */
static void print_type(FILE *out, const struct input *input)
{
	if (holds_lists(input))
		return;
	if (input->kind == INPUT_LIST) {
		bool is_tensors = input->n_items && input[1].kind == INPUT_TENSOR;

		fputs(is_tensors ? "TensorList" : "ScalarList", out);
		return;
	}
	if (input->kind != INPUT_TENSOR) {
		bool is_number = input->kind == INPUT_INTEGER || input->kind == INPUT_DOUBLE ||
				 input->kind == INPUT_BOOL;

		fputs(is_number ? "Scalar" : "", out);
		return;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (strlen(types[i].torch) == input->n_type &&
		    strncmp(types[i].torch, input->text, input->n_type) == 0) {
			fputs(types[i].cpp, out);
			return;
		}
	}
	fprintf(out, "%.*s", (int)input->n_type, input->text);
}

static void print_numbers(FILE *out, const int64_t *numbers, uint32_t n)
{
	putc('[', out);
	for (uint32_t i = 0; i < n; i++)
		fprintf(out, "%s%" PRId64, i ? "," : "", numbers[i]);
	putc(']', out);
}

static void print_dims(FILE *out, const struct input *input)
{
	bool is_tensors =
		input->kind == INPUT_LIST && input->n_items && input[1].kind == INPUT_TENSOR;

	if (!is_tensors) {
		print_numbers(out, input->dims, input->kind == INPUT_TENSOR ? input->n_dims : 0);
		return;
	}
	putc('[', out);
	for (uint32_t i = 1; i <= input->n_items; i++) {
		fputs(i > 1 ? "," : "", out);
		print_numbers(out, input[i].dims,
			      input[i].kind == INPUT_TENSOR ? input[i].n_dims : 0);
	}
	putc(']', out);
}

/* Those of a contiguous tensor follow from its sizes. */
static void print_strides(FILE *out, const struct input *input)
{
	int64_t strides[INPUT_DIMS_MAX];
	uint64_t step = 1;

	if (input->kind != INPUT_TENSOR || input->has_strides) {
		print_numbers(out, input->strides, input->kind == INPUT_TENSOR ? input->n_dims : 0);
		return;
	}
	for (uint32_t i = input->n_dims; i; i--) {
		strides[i - 1] = (int64_t)step;
		step *= input->dims[i - 1] > 1 ? (uint64_t)input->dims[i - 1] : 1;
	}
	print_numbers(out, strides, input->n_dims);
}

static void print_concrete(FILE *out, const struct input *input)
{
	switch (input->kind) {
	case INPUT_BOOL:
		fputs(input->integer ? "True" : "False", out);
		return;
	case INPUT_INTEGER:
	case INPUT_DOUBLE:
		fprintf(out, "%.*s", (int)input->n_text, input->text);
		return;
	case INPUT_LIST:
		if ((input->n_items && input[1].kind == INPUT_TENSOR) || holds_lists(input))
			return;
		putc('[', out);
		for (uint32_t i = 1; i <= input->n_items; i++) {
			fputs(i > 1 ? ", " : "", out);
			print_concrete(out, &input[i]);
		}
		putc(']', out);
		return;
	default:
		return;
	}
}

static void print_each(FILE *out, const struct inputs *inputs, const char *name, bool is_text,
		       void (*print)(FILE *out, const struct input *input))
{
	fprintf(out, "\"%s\":[", name);
	for (uint32_t i = 0; i < inputs->n; i++) {
		fputs(i ? "," : "", out);
		fputs(is_text ? "\"" : "", out);
		print(out, torsh_inputs_get(inputs, i));
		fputs(is_text ? "\"" : "", out);
	}
	putc(']', out);
}

char *torsh_chrome_inputs(const struct inputs *inputs)
{
	char *text = NULL;
	size_t n;
	FILE *out;

	if (!inputs->is_whole)
		return torsh_need(strdup(""));
	out = torsh_need(open_memstream(&text, &n));
	print_each(out, inputs, "Input Dims", false, print_dims);
	putc(',', out);
	print_each(out, inputs, "Input type", true, print_type);
	putc(',', out);
	print_each(out, inputs, "Input Strides", false, print_strides);
	putc(',', out);
	print_each(out, inputs, "Concrete Inputs", true, print_concrete);
	if (fclose(out))
		torsh_die("out of memory");
	return torsh_need(text);
}
