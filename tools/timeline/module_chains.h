/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The chains of modules that enclose the spans of one process, each created once, and those of
 * recent forward spans, which their backward spans inherit. For tools/timeline/spans.c.
 */
#ifndef TORSH_TIMELINE_MODULE_CHAINS_H
#define TORSH_TIMELINE_MODULE_CHAINS_H

#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/timeline/spans.h"

struct module_chains {
	struct hash_map map; /* of struct module_chain, by what encloses it and its module */
	const struct module_chain *last; /* the last one looked up */
	struct sparse_array forward; /* of struct forward_modules, by torsh_span_slot */
};

/* Begin without chains; torsh_module_chains_free frees them. */
void torsh_module_chains_create(struct module_chains *chains);

/*
 * Returns the chain of the module inside of outer, which may be NULL. Chains do not move until all
 * are freed.
 */
const struct module_chain *torsh_module_chains_add(struct module_chains *chains,
						   const struct module_chain *outer,
						   uint32_t module);

/*
 * Set module, modules and inside of a span that begins inside of outer, which may be NULL. A
 * backward span gets those of the forward span with its sequence number.
 */
void torsh_module_chains_place(struct module_chains *chains, struct span *span,
			       const struct span *outer);

/* Free all chains. */
void torsh_module_chains_free(struct module_chains *chains);

#endif
