/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The text that describes an operator's inputs: first the operator's name up to a NUL, then the
 * text. What is parsed is also used as reports and exports use it: FLOPs by that name, and the
 * words of Chrome's traces.
 */
#include "tools/timeline/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "tools/export/chrome/chrome_inputs.h"
#include "tools/ops/flops.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* Are all items within the text, and do lists hold items that are there? */
static void check(const struct inputs *inputs, const char *text)
{
	const char *end = text + strlen(text);

	for (uint32_t i = 0; i < inputs->n_items && inputs->is_whole; i++) {
		const struct input *input = &inputs->items[i];

		if (input->text < text || input->n_text > (size_t)(end - input->text) ||
		    input->n_items >= inputs->n_items - i || input->n_dims > INPUT_DIMS_MAX)
			abort();
	}
	for (uint32_t i = 0; i < inputs->n; i++) {
		if (inputs->at[i] >= inputs->n_items)
			abort();
	}
}

static void use(const char *name, const char *text)
{
	struct inputs inputs;

	torsh_inputs_parse(&inputs, text);
	check(&inputs, text);
	free(torsh_chrome_inputs(&inputs));
	torsh_flops_of(name, &inputs);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	char *copy = malloc(n_bytes + 2);
	size_t n_name;

	if (!copy)
		return 0;
	/* Two NULs: an input without one has a name and no text. */
	if (n_bytes)
		memcpy(copy, bytes, n_bytes);
	copy[n_bytes] = copy[n_bytes + 1] = '\0';
	n_name = strlen(copy);
	use(copy, copy + n_name + 1);
	free(copy);
	return 0;
}
