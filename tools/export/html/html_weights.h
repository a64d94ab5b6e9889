/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Weights of one kind that were added to the nodes of a tree, packed: a program that imports
 * PyTorch adds a million, and most are two small numbers. They are only read all, in their order.
 */
#ifndef TORSH_EXPORT_HTML_WEIGHTS_H
#define TORSH_EXPORT_HTML_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct html_value {
	uint64_t blocks, bytes;
};

/* Zeroed: no weights. */
struct html_weights {
	uint8_t *packed;
	size_t n_packed, packed_room;
	uint32_t last; /* node to which a weight was added last */
};

/* Add a weight to a node. */
void torsh_html_weights_add(struct html_weights *weights, uint32_t node, struct html_value value);

/* A weight that was read. Zeroed: before the first one. */
struct html_weight_at {
	uint32_t node;
	struct html_value value;
	size_t end; /* in packed */
};

/* Go to the next weight; false: there is none. */
bool torsh_html_weights_next(const struct html_weights *weights, struct html_weight_at *at);

/* Free the weights. */
void torsh_html_weights_free(struct html_weights *weights);

#endif
