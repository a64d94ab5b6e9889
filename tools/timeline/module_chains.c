/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/module_chains.h"

#include <search.h>
#include <stdlib.h>

#include "tools/base/die.h"

#define SEQUENCES 65536u /* of forward spans with their modules: a power of two */

/* The modules of a forward span, for its backward ones. */
struct forward_modules {
	uint64_t sequence;
	const struct module_chain *modules;
	uint32_t forward_thread;
};

void torsh_module_chains_create(struct module_chains *chains)
{
	*chains = (struct module_chains){0};
	torsh_sparse_array_create(&chains->forward, sizeof(struct forward_modules));
}

static int compare_chains(const void *a, const void *b)
{
	const struct module_chain *x = a, *y = b;

	if (x->module != y->module)
		return (x->module > y->module) - (x->module < y->module);
	return ((uintptr_t)x->outer > (uintptr_t)y->outer) -
	       ((uintptr_t)x->outer < (uintptr_t)y->outer);
}

const struct module_chain *torsh_module_chains_add(struct module_chains *chains,
						   const struct module_chain *outer,
						   uint32_t module)
{
	const struct module_chain key = {.outer = outer, .module = module};
	struct module_chain **found, *made;

	if (chains->last && compare_chains(chains->last, &key) == 0)
		return chains->last;
	found = tfind(&key, &chains->tree, compare_chains);
	if (found)
		return chains->last = *found;
	made = torsh_need(malloc(sizeof(*made)));
	*made = key;
	torsh_need(tsearch(made, &chains->tree, compare_chains));
	return chains->last = made;
}

void torsh_module_chains_place(struct module_chains *chains, struct span *span,
			       const struct span *outer)
{
	size_t slot = torsh_span_slot(span, SEQUENCES);
	bool has_sequence = span->kind == SPAN_OPERATOR && span->sequence != OP_NO_SEQUENCE;
	struct forward_modules *forward;

	if (outer)
		span->modules = outer->inside;
	if (span->modules && has_sequence && span->phase != PHASE_BACKWARD) {
		forward = torsh_sparse_array_at(&chains->forward, slot);
		forward->sequence = span->sequence;
		forward->forward_thread = span->forward_thread;
		forward->modules = span->modules;
	}
	forward = span->phase == PHASE_BACKWARD && has_sequence
			  ? torsh_sparse_array_find(&chains->forward, slot)
			  : NULL;
	if (forward && forward->sequence == span->sequence &&
	    forward->forward_thread == span->forward_thread)
		span->modules = forward->modules;
	span->module = span->modules ? span->modules->module : 0;
	span->inside = span->is_module ? torsh_module_chains_add(chains, span->modules, span->name)
				       : span->modules;
}

void torsh_module_chains_free(struct module_chains *chains)
{
	tdestroy(chains->tree, free);
	torsh_sparse_array_destroy(&chains->forward);
	*chains = (struct module_chains){0};
}
