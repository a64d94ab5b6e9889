/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/timeline/inputs.h"

/* What a step reads; n_dims 0: unknown. */
struct operand {
	uint32_t n_dims;
	int64_t dims[INPUT_DIMS_MAX];
	bool is_of_indices;
};

/* The operators that read what a model is given, and which of their inputs that is. */
static const struct reader {
	const char *name;
	uint32_t input;
	bool is_of_indices;
} readers[] = {
	{"aten::embedding", 1, true}, {"aten::linear", 0, false}, {"aten::addmm", 1, false},
	{"aten::matmul", 0, false},   {"aten::mm", 0, false},	  {"aten::bmm", 0, false},
};

static const struct reader *reader_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof(readers) / sizeof(*readers); i++) {
		if (strcmp(name, readers[i].name) == 0)
			return &readers[i];
	}
	return NULL;
}

static void take_operand(struct operand *operand, const struct reader *reader, const char *text)
{
	struct inputs inputs;
	const struct input *input;

	torsh_inputs_parse(&inputs, text);
	input = torsh_inputs_get(&inputs, reader->input);
	if (!input || input->kind != INPUT_TENSOR)
		return;
	operand->n_dims = input->n_dims;
	operand->is_of_indices = reader->is_of_indices;
	memcpy(operand->dims, input->dims, sizeof(operand->dims));
}

static struct operand find_operand(const struct repeat *repeat, const struct op_place *places,
				   const struct recorded_process *process)
{
	struct operand operand = {0};

	for (size_t i = repeat->first; i < repeat->end && !operand.is_of_indices; i++) {
		const struct reader *reader;

		if (torsh_op_place_is_module(&places[i]) || !places[i].inputs)
			continue;
		reader = reader_of(torsh_timeline_label(process, places[i].symbol >> 1));
		if (reader && (!operand.n_dims || reader->is_of_indices))
			take_operand(&operand, reader,
				     torsh_timeline_label(process, places[i].inputs));
	}
	return operand;
}

/* Returns whether the second one reads one token where the first one reads several. */
static bool is_prompt_of(const struct operand *prompt, const struct operand *token)
{
	uint32_t n_shorter = 0;

	if (!prompt->n_dims || prompt->n_dims != token->n_dims ||
	    prompt->is_of_indices != token->is_of_indices)
		return false;
	for (uint32_t i = 0; i < prompt->n_dims; i++) {
		if (prompt->dims[i] == token->dims[i])
			continue;
		if (token->dims[i] != 1 || (i == 0 && prompt->n_dims > 1))
			return false;
		n_shorter++;
	}
	return n_shorter == 1;
}

static bool is_same(const struct operand *a, const struct operand *b)
{
	return a->n_dims == b->n_dims &&
	       memcmp(a->dims, b->dims, a->n_dims * sizeof(*a->dims)) == 0;
}

void torsh_tokens_find(struct step *steps, const struct repeat *repeats, size_t n,
		       const struct op_place *places, const struct recorded_process *process)
{
	struct operand before = {0};

	for (size_t i = 0; i < n; i++) {
		struct operand now = find_operand(&repeats[i], places, process);

		if (i && is_prompt_of(&before, &now)) {
			steps[i - 1].kind = STEP_PREFILL;
			steps[i].kind = STEP_DECODE;
		} else if (i && steps[i - 1].kind == STEP_DECODE && is_same(&before, &now)) {
			steps[i].kind = STEP_DECODE;
		}
		before = now;
	}
}
