/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The totals of each nn.Module: its spans, and the operators that belong to it, including those of
 * backward.
 */
#ifndef TORSH_OPS_MODULE_TOTALS_H
#define TORSH_OPS_MODULE_TOTALS_H

#include "tools/ops/operators.h"

struct module_total {
	char *name; /* "path:Class"; "": operators that are in no module */
	uint64_t calls;
	uint64_t total_ns, self_ns; /* of its spans; self_ns: without inner modules */
	/* Of operators in it and in no inner module: */
	uint64_t operators, operators_ns, backward_ns;
	uint64_t flops, flops_all;
	uint64_t allocated_bytes;
	/* Of kernels, copies and memsets launched in it, by operators or not, backward included. */
	uint64_t device_ns;
	/* Including the modules called within it: */
	uint64_t whole_backward_ns;
	uint64_t whole_flops, whole_flops_all;
	uint64_t whole_device_ns;
	/*
	 * Of the CPU, on the threads that ran them and their backward; whole_counts: with the
	 * modules called within it.
	 */
	struct cpu_counts counts, whole_counts;
};

struct module_totals {
	struct module_total *items;
	size_t n, n_room;
	bool has_devices; /* the devices of some process were recorded */
};

/*
 * Add up the time of modules in ns, per process. Ends the program if the recording cannot be read.
 */
void torsh_module_totals_collect(struct module_totals *totals, const struct recording *recording,
				 struct recorded_process *const *processes, size_t n_processes,
				 const struct prepass *prepass);

/* Free the totals. */
void torsh_module_totals_free(struct module_totals *totals);

/*
 * Returns a module's name as it is printed, which is name or a part of it: "BertModel:BertModel"
 * becomes "BertModel".
 */
const char *torsh_module_display_name(const char *name);

#endif
