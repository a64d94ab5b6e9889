/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Attribution of device activities: the operator of a kernel, a copy or a memset, by the best
 * available evidence. An attributor receives the spans of a pass (tools/timeline/spans.h); a join
 * of launches with device activity carries the site of the launch.
 */
#ifndef TORSH_DEVICE_KERNELS_ATTRIBUTION_H
#define TORSH_DEVICE_KERNELS_ATTRIBUTION_H

#include "tools/device/kernels/inductor.h"
#include "tools/timeline/device/launch_join.h"

/* METHOD(NAME, evidence, the operator recording's term for it, confidence), best first */
#define ATTRIBUTION_METHODS                                          \
	METHOD(DIRECT, direct_launch, torch_profiler, high)          \
	METHOD(CAPTURE, graph_capture, torch_profiler, high)         \
	METHOD(NVTX, nvtx_live, nvtx, medium)                        \
	METHOD(ITT, itt, nvtx, medium)                               \
	METHOD(REGION, region, nvtx, medium)                         \
	METHOD(INDUCTOR, inductor_artifact, inductor_fusion, medium) \
	METHOD(FAMILY, name_heuristic, unattributed, low)            \
	METHOD(NONE, none, unattributed, unattributed)

enum attribution_method {
#define METHOD(NAME, detail, method, confidence) ATTRIBUTION_BY_##NAME,
	ATTRIBUTION_METHODS
#undef METHOD
		N_ATTRIBUTION_METHODS
};

struct attribution_words {
	const char *detail, *method, *confidence;
};

extern const struct attribution_words torsh_attribution_words[N_ATTRIBUTION_METHODS];

struct attribution {
	enum attribution_method method;
	enum kernel_reason reason; /* KERNEL_NONE: it has an operator */
	const char *operator_name; /* NULL: none. Owned by the attributor, as the other texts are */
	const char *family; /* of the name, with ATTRIBUTION_BY_FAMILY */
	const struct inductor_kernel *fused; /* the operators that it was fused from, or NULL */
	/* activities of one process with equal site and name have equal values here */
	uint32_t site;
	uint32_t path; /* of the operators around its launch: torsh_attribution_path */
	/* the visitor's value for the launch or the node; 0: none, or both are unknown */
	uint32_t owner;
	uint32_t stack; /* of the span that launched it, as recorded; 0: none */
	bool is_captured; /* the stack is a graph node's, not the launch's */
};

struct attributor;

/*
 * Create an attributor for the processes of the pre-pass. If torch.compile's kernels occur, the
 * process's code cache folder is read if it still exists.
 */
struct attributor *torsh_attributor_create(struct recorded_process *const *processes,
					   size_t n_processes, const struct prepass *prepass);

/* Free the attributor. */
void torsh_attributor_destroy(struct attributor *attributor);

/* Pass the begin of each span, and its end to torsh_attributor_end. */
void torsh_attributor_begin(struct attributor *attributor, const struct span *span);

/* Pass the end of each span. */
void torsh_attributor_end(struct attributor *attributor, const struct span *span);

/* Returns the innermost range on a thread that looks like an operator, or NULL. */
struct span *torsh_attributor_range(const struct attributor *attributor,
				    const struct recorded_process *process, uint32_t thread);

/*
 * Returns the site of a launch, or of a new graph node, for the join to carry
 * (device_visitor.own). innermost: the operator on its thread, or NULL. owner: any number of the
 * visitor's.
 */
uint64_t torsh_attributor_place(struct attributor *attributor,
				const struct recorded_process *process,
				const struct timeline_event *event, const struct span *innermost,
				uint32_t owner);

/* Attribute an activity by its site or, without one, by name. */
void torsh_attribute(struct attributor *attributor, const struct device_activity *activity,
		     struct attribution *attribution);

/*
 * Get the labels of the operators of a path, outermost first; the innermost ones if there are more
 * than n_max. Returns their number.
 */
size_t torsh_attribution_path(const struct attributor *attributor,
			      const struct recorded_process *process, uint32_t path,
			      uint32_t *labels, size_t n_max);

/*
 * Find the operator that a range's text names: "aten::add" in "aten::add, seq = 1, sizes = [[2]]".
 * Returns the length of the name in bytes; 0: none. Names of PyTorch's own machinery and of layers
 * do not count.
 */
size_t torsh_attribution_operator_in(const char *text);

/* Returns "gemm" and the like; NULL if the kernel's symbol matches no family. */
const char *torsh_attribution_family(const char *symbol);

#endif
