/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Weights that oneDNN packed, by texts of inputs as torch 2.15 has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/ops/inductor/packed_weights.h"

#define PACKS_CONVOLUTION "mkldnn::_reorder_convolution_weight"
#define PACKS_TRANSPOSED "mkldnn::_reorder_convolution_transpose_weight"
#define PACKS_LINEAR "mkldnn::_reorder_linear_weight"
#define CONVOLUTION "mkldnn::_convolution_pointwise"
#define TRANSPOSED "mkldnn::_convolution_transpose_pointwise"
#define LINEAR "mkldnn::_linear_pointwise"

struct packing {
	const char *name, *inputs;
};

static const struct {
	struct packing packings[3];
	const char *name, *inputs, *filled; /* filled: NULL: nothing is known */
} known[] = {
	{{{PACKS_CONVOLUTION, "float32[16,3,3,3](27,1,9,3);{1,1};{1,1};{1,1};1;{2,3,12,12}"}},
	 CONVOLUTION,
	 "float32[2,3,12,12];_;float32[16];{1,1};{1,1};{1,1};1;_;{-};_",
	 "float32[2,3,12,12];float32[16,3,3,3](27,1,9,3);float32[16];{1,1};{1,1};{1,1};1;_;{-};_"},
	/* Added to another tensor, before x where that is in place; in groups */
	{{{PACKS_CONVOLUTION, "float32[16,4,3,3];{1,1};{1,1};{1,1};4;{2,16,12,12}"}},
	 CONVOLUTION,
	 "float32[2,16,12,12];float32[2,16,12,12];_;-;{1,1};{1,1};{1,1};4;_;1.0;-;{-};-",
	 "float32[2,16,12,12];float32[2,16,12,12];float32[16,4,3,3];-;{1,1};{1,1};{1,1};4;_;1.0;-;"
	 "{-};-"},
	{{{PACKS_CONVOLUTION, "float32[8,16,1,1];{0,0};{1,1};{1,1};1;{2,16,12,12}"}},
	 CONVOLUTION "_",
	 "float32[2,8,12,12];float32[2,16,12,12];_;-;{0,0};{1,1};{1,1};1;_;1.0;-;{-};-",
	 "float32[2,8,12,12];float32[2,16,12,12];float32[8,16,1,1];-;{0,0};{1,1};{1,1};1;_;1.0;-;"
	 "{-};-"},
	{{{PACKS_TRANSPOSED, "float32[16,8,3,3];{0,0};{0,0};{2,2};{1,1};1;{2,16,12,12}"}},
	 TRANSPOSED,
	 "float32[2,16,12,12];_;float32[8];{0,0};{0,0};{2,2};{1,1};1;_;{-};_",
	 "float32[2,16,12,12];float32[16,8,3,3];float32[8];{0,0};{0,0};{2,2};{1,1};1;_;{-};_"},
	{{{PACKS_LINEAR, "float32[48,64];40"}},
	 LINEAR,
	 "float32[40,64];_;-;_;{-1};_",
	 "float32[40,64];float32[48,64];-;_;{-1};_"},
	/* Another batch than the model was frozen for, of two equal layers */
	{{{PACKS_LINEAR, "float32[48,64];40"}, {PACKS_LINEAR, "float32[48,64];80"}},
	 LINEAR,
	 "float32[2,5,64];float32[2,5,48];_;-;_",
	 "float32[2,5,64];float32[2,5,48];float32[48,64];-;_"},
	/* Of two, the one that was packed for these sizes */
	{{{PACKS_CONVOLUTION, "float32[16,3,1,1];{1,1};{1,1};{1,1};1;{2,3,24,24}"},
	  {PACKS_CONVOLUTION, "float32[16,3,3,3];{1,1};{1,1};{1,1};1;{2,3,12,12}"},
	  {PACKS_CONVOLUTION, "float32[16,3,5,5];{1,1};{1,1};{1,1};1;{2,3,48,48}"}},
	 CONVOLUTION,
	 "float32[2,3,12,12];_;-;{1,1};{1,1};{1,1};1;_;{-};_",
	 "float32[2,3,12,12];float32[16,3,3,3];-;{1,1};{1,1};{1,1};1;_;{-};_"},
	/* Two that fit alike */
	{{{PACKS_CONVOLUTION, "float32[16,3,1,1];{0,0};{1,1};{1,1};1;{2,3,12,12}"},
	  {PACKS_CONVOLUTION, "float32[16,3,3,3];{0,0};{1,1};{1,1};1;{2,3,12,12}"}},
	 CONVOLUTION,
	 "float32[2,3,12,12];_;float32[16];{0,0};{1,1};{1,1};1;_;{-};_",
	 NULL},
	{{{PACKS_LINEAR, "float32[48,64];40"}, {PACKS_LINEAR, "float32[32,64];40"}},
	 LINEAR,
	 "float32[40,64];_;-;_;{-1};_",
	 NULL},
	/* Other strides, groups, channels, results; none; weights that are not packed; others */
	{{{PACKS_CONVOLUTION, "float32[16,3,3,3];{1,1};{2,2};{1,1};1;{2,3,12,12}"},
	  {PACKS_CONVOLUTION, "float32[16,1,3,3];{1,1};{1,1};{1,1};3;{2,3,12,12}"},
	  {PACKS_CONVOLUTION, "float32[16,4,3,3];{1,1};{1,1};{1,1};1;{2,4,12,12}"}},
	 CONVOLUTION,
	 "float32[2,3,12,12];_;float32[16];{1,1};{1,1};{1,1};1;_;{-};_",
	 NULL},
	{{{PACKS_CONVOLUTION, "float32[8,3,3,3];{1,1};{1,1};{1,1};1;{2,3,12,12}"},
	  {PACKS_TRANSPOSED, "float32[16,3,3,3];{1,1};{1,1};{1,1};1;{2,3,12,12}"},
	  {PACKS_CONVOLUTION, "broken"}},
	 CONVOLUTION,
	 "float32[2,3,12,12];_;float32[16];{1,1};{1,1};{1,1};1;_;{-};_",
	 NULL},
	{{{NULL, NULL}}, LINEAR, "float32[40,64];_;-;_;{-1};_", NULL},
	{{{PACKS_LINEAR, "float32[48,64];40"}},
	 LINEAR,
	 "float32[40,64];float32[48,64];-;_;{-1};_",
	 NULL},
	{{{PACKS_LINEAR, "float32[48,64];40"}}, "aten::linear", "float32[40,64];_;-", NULL},
	{{{PACKS_LINEAR, "float32[48,64];40"}}, LINEAR, "", NULL},
};

static const struct recorded_process process, other;

static struct packed_weights *pack(size_t i)
{
	struct packed_weights *weights = torsh_packed_weights_create();

	for (size_t k = 0; k < 3 && known[i].packings[k].name; k++)
		torsh_packed_weights_add(weights, &process, known[i].packings[k].name,
					 known[i].packings[k].inputs);
	return weights;
}

static void weights_are_known_where_all_that_fit_are_alike(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct packed_weights *weights = pack(i);
		char *filled = torsh_packed_weights_fill(weights, &process, known[i].name,
							 known[i].inputs);

		if (!filled != !known[i].filled || (filled && strcmp(filled, known[i].filled) != 0))
			fail_msg("%zu: %s", i, filled ? filled : "nothing");
		free(filled);
		assert_null(
			torsh_packed_weights_fill(weights, &other, known[i].name, known[i].inputs));
		torsh_packed_weights_destroy(weights);
	}
}

static void only_what_packs_is_told(void **state)
{
	(void)state;
	assert_true(torsh_packs_weights(PACKS_LINEAR));
	assert_true(torsh_packs_weights(PACKS_TRANSPOSED));
	assert_false(torsh_packs_weights(LINEAR));
	assert_false(torsh_packs_weights("mkl::_mkl_reorder_linear_weight"));
}

/* The texts are from a file that anybody may have written. */
static void any_text_is_survived(void **state)
{
	uint64_t random = 5;
	char packed[200], used[200];

	(void)state;
	for (size_t round = 0; round < 3000; round++) {
		size_t i = round % (sizeof(known) / sizeof(*known));
		struct packed_weights *weights = pack(i);

		strncpy(used, known[i].inputs, sizeof(used) - 1);
		strncpy(packed, known[i].packings[0].inputs ? known[i].packings[0].inputs : "",
			sizeof(packed) - 1);
		used[sizeof(used) - 1] = packed[sizeof(packed) - 1] = '\0';
		for (size_t k = 0; k < 2 && *used && *packed; k++) {
			used[random_below(&random, strlen(used))] =
				"{}[],;_-09"[random_below(&random, 10)];
			packed[random_below(&random, strlen(packed))] =
				"{}[],;_-09"[random_below(&random, 10)];
		}
		torsh_packed_weights_add(weights, &process, PACKS_CONVOLUTION, packed);
		free(torsh_packed_weights_fill(weights, &process, known[i].name, used));
		torsh_packed_weights_destroy(weights);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_known_where_all_that_fit_are_alike),
		cmocka_unit_test(only_what_packs_is_told),
		cmocka_unit_test(any_text_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
