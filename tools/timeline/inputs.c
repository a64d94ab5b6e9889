/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRANSFORMS_MAX 4 /* upper bound of nested transforms */
#define MOST_DIGITS 10u /* of the number in a process group's name */
#define DEPTH_MAX 4u /* of nested lists */

static bool is_end(char c)
{
	return !c || c == ';' || c == ',' || c == '}';
}

/* Parse "1,2,3" up to the closing character. Returns what follows it, or NULL. */
static const char *parse_numbers(const char *at, char closing, int64_t *numbers, uint32_t *n)
{
	*n = 0;
	if (*at == closing)
		return at + 1;
	for (;;) {
		char *end;

		errno = 0;
		/* strtoll would skip blanks and a plus. */
		if (*n == INPUT_DIMS_MAX || !strspn(at, "-0123456789"))
			return NULL;
		numbers[*n] = strtoll(at, &end, 10);
		if (end == at || errno)
			return NULL;
		++*n;
		if (*end == closing)
			return end + 1;
		if (*end != ',')
			return NULL;
		at = end + 1;
	}
}

/* Parse "float32[2,3](1,2)@cuda:0"; at is its '['. */
static const char *parse_tensor(struct input *input, const char *at)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_?";
	uint32_t n_strides;

	input->kind = INPUT_TENSOR;
	input->n_type = (size_t)(at - input->text);
	if (strspn(input->text, letters) != input->n_type)
		return NULL;
	at = parse_numbers(at + 1, ']', input->dims, &input->n_dims);
	if (at && *at == '(') {
		input->has_strides = true;
		at = parse_numbers(at + 1, ')', input->strides, &n_strides);
		if (at && n_strides != input->n_dims)
			return NULL;
	}
	if (at && *at == '@') {
		input->is_meta = strncmp(at, "@meta", strlen("@meta")) == 0;
		input->is_elsewhere = !input->is_meta;
		at += strcspn(at, ";,}");
	}
	return at;
}

static const char *parse_number(struct input *input, const char *at)
{
	size_t n = strcspn(at, ";,}");
	char *end;

	errno = 0;
	/* strtoll and strtod would skip blanks. */
	if (!strspn(at, "+-.0123456789in"))
		return NULL;
	if (strcspn(at, ".eEni") < n) {
		input->kind = INPUT_DOUBLE;
		input->number = strtod(at, &end);
	} else {
		input->kind = INPUT_INTEGER;
		input->integer = strtoll(at, &end, 10);
		input->number = (double)input->integer;
	}
	/* A double that underflows is accepted (ERANGE); an integer must fit. */
	return end == at + n && n && !(errno && input->kind == INPUT_INTEGER) ? end : NULL;
}

static bool is_word(const char *at, const char *word)
{
	size_t n = strlen(word);

	return strncmp(at, word, n) == 0 && is_end(at[n]);
}

static const char *parse_group(struct input *input, const char *digits)
{
	size_t n = strspn(digits, "0123456789");

	input->kind = INPUT_GROUP;
	input->integer = n && n < MOST_DIGITS ? strtoll(digits, NULL, 10) : 0;
	return input->integer ? digits + n : NULL;
}

static const char *parse_plain(struct input *input, const char *at)
{
	static const struct {
		const char *text;
		enum input_kind kind;
		int64_t integer;
	} words[] = {{"?", INPUT_UNDEFINED, 0},
		     {"-", INPUT_NONE, 0},
		     {"_", INPUT_OTHER, 0},
		     {"true", INPUT_BOOL, 1},
		     {"false", INPUT_BOOL, 0}};
	static const char group[] = "group#";
	size_t n = strcspn(at, "[;,}");

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (is_word(at, words[i].text)) {
			input->kind = words[i].kind;
			input->integer = words[i].integer;
			return at + strlen(words[i].text);
		}
	}
	if (strncmp(at, group, sizeof(group) - 1) == 0)
		return parse_group(input, at + sizeof(group) - 1);
	return at[n] == '[' ? parse_tensor(input, at + n) : parse_number(input, at);
}

/* Returns the next item of the array, or NULL if it is full. */
static struct input *add_item(struct inputs *inputs, const char *at)
{
	struct input *input;

	if (inputs->n_items == INPUTS_MAX)
		return NULL;
	input = &inputs->items[inputs->n_items++];
	*input = (struct input){.text = at};
	return input;
}

static const char *parse_item(struct inputs *inputs, const char *at)
{
	struct input *input = add_item(inputs, at);

	if (!input)
		return NULL;
	at = parse_plain(input, at);
	if (at)
		input->n_text = (size_t)(at - input->text);
	return at;
}

/* Parse "{a,b}" or "{{a,b},{c}}". */
static const char *parse_list(struct inputs *inputs, const char *at, uint32_t depth)
{
	struct input *list = add_item(inputs, at);
	uint32_t first = inputs->n_items;

	if (!list || depth == DEPTH_MAX)
		return NULL;
	list->kind = INPUT_LIST;
	for (at++; at && *at != '}';) {
		at = *at == '{' ? parse_list(inputs, at, depth + 1) : parse_item(inputs, at);
		list->n_items = inputs->n_items - first;
		if (at && *at == ',' && at[1] != '}')
			at++;
		else if (at && *at != '}')
			return NULL;
	}
	if (!at)
		return NULL;
	list->n_text = (size_t)(at + 1 - list->text);
	return at + 1;
}

static bool is_same_text(const struct input *a, const struct input *b)
{
	return a->n_text == b->n_text && memcmp(a->text, b->text, a->n_text) == 0;
}

/*
 * Returns whether the last n inputs repeat from input i on, except for wrapped tensors, which
 * can't be read.
 */
static bool is_wrapped(const struct inputs *inputs, uint32_t i, uint32_t n, bool *has_wrapped)
{
	for (uint32_t k = 0; k < n; k++) {
		const struct input *outer = torsh_inputs_get(inputs, i + k);
		const struct input *own = torsh_inputs_get(inputs, inputs->n - n + k);

		*has_wrapped |= outer->kind == INPUT_OTHER && own->kind == INPUT_TENSOR;
		if (!is_same_text(outer, own) &&
		    !(outer->kind == INPUT_OTHER && own->kind == INPUT_TENSOR))
			return false;
	}
	return true;
}

/*
 * Within a transform of torch.func, PyTorch calls an operator with its inputs pushed after those
 * that the transform was called with, which are still on the stack: once per enclosing transform.
 */
static void leave_out_wrapped(struct inputs *inputs)
{
	for (uint32_t times = 2; times <= TRANSFORMS_MAX + 1; times++) {
		uint32_t n = inputs->n / times, i = 0;
		bool has_wrapped = false;

		if (n == 0 || inputs->n % times)
			continue;
		while (i < inputs->n - n && is_wrapped(inputs, i, n, &has_wrapped))
			i += n;
		if (i == inputs->n - n && has_wrapped) {
			memmove(inputs->at, inputs->at + i, n * sizeof(*inputs->at));
			inputs->n = n;
			return;
		}
	}
}

void torsh_inputs_parse(struct inputs *inputs, const char *text)
{
	inputs->n = inputs->n_items = 0;
	inputs->is_whole = false;
	if (!text || !*text)
		return;
	if (strcmp(text, "()") == 0) {
		inputs->is_whole = true;
		return;
	}
	for (const char *at = text;;) {
		uint32_t item = inputs->n_items;

		at = *at == '{' ? parse_list(inputs, at, 0) : parse_item(inputs, at);
		if (!at)
			return;
		inputs->at[inputs->n++] = item;
		if (!*at)
			break;
		if (*at++ != ';')
			return;
	}
	inputs->is_whole = true;
	leave_out_wrapped(inputs);
}

const struct input *torsh_inputs_get(const struct inputs *inputs, uint32_t i)
{
	return i < inputs->n ? &inputs->items[inputs->at[i]] : NULL;
}

uint64_t torsh_input_elements(const struct input *tensor)
{
	uint64_t n = 1;

	if (tensor->kind != INPUT_TENSOR)
		return 0;
	for (uint32_t i = 0; i < tensor->n_dims; i++) {
		if (tensor->dims[i] < 0 || __builtin_mul_overflow(n, (uint64_t)tensor->dims[i], &n))
			return 0;
	}
	return n;
}
