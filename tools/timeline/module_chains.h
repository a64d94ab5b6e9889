/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The chains of modules around spans, each made once; of one process, for tools/timeline/spans.c.
 */
#ifndef TORSH_TIMELINE_MODULE_CHAINS_H
#define TORSH_TIMELINE_MODULE_CHAINS_H

#include "tools/timeline/spans.h"

/* Zeros are none. */
struct module_chains {
	void *tree; /* of struct module_chain */
	const struct module_chain *last; /* that was asked for */
};

/*
 * The module inside of outer, which may be NULL. The chain stays where it is until all are freed.
 */
const struct module_chain *torsh_module_chains_add(struct module_chains *chains,
						   const struct module_chain *outer,
						   uint32_t module);
void torsh_module_chains_free(struct module_chains *chains);

#endif
