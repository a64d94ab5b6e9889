/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/shapes/weights.h"

#include <string.h>

/* Inputs first to last, counted from 0. */
static const struct {
	const char *operator_name;
	uint32_t first, last;
} positions[] = {
	{"aten::linear", 1, 2},	    {"aten::conv1d", 1, 2},	 {"aten::conv2d", 1, 2},
	{"aten::conv3d", 1, 2},	    {"aten::convolution", 1, 2}, {"aten::conv_transpose1d", 1, 2},
	{"aten::embedding", 0, 0},  {"aten::layer_norm", 2, 3},	 {"aten::conv_transpose2d", 1, 2},
	{"aten::rms_norm", 2, 2},   {"aten::batch_norm", 1, 4},	 {"aten::conv_transpose3d", 1, 2},
	{"aten::group_norm", 2, 3}, {"aten::lstm", 2, 2},	 {"aten::embedding_bag", 0, 0},
	{"aten::gru", 2, 2},	    {"aten::rnn_tanh", 2, 2},	 {"aten::instance_norm", 1, 4},
	{"aten::prelu", 1, 1},	    {"aten::rnn_relu", 2, 2},	 {"aten::bilinear", 2, 3},
};

bool torsh_weights_have(const char *operator_name, const struct inputs *inputs, uint32_t item)
{
	for (size_t i = 0; i < sizeof(positions) / sizeof(*positions); i++) {
		if (strcmp(positions[i].operator_name, operator_name) != 0)
			continue;
		for (uint32_t k = positions[i].first; k <= positions[i].last && k < inputs->n;
		     k++) {
			uint32_t at = inputs->at[k];

			if (item >= at && item <= at + inputs->items[at].n_items)
				return true;
		}
		return false;
	}
	return false;
}
