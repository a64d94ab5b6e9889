/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who launched what devices did: the evidence by which a kernel, a copy or a memset gets its
 * operator, the best first. An attributor is reported the spans of a pass (tools/timeline/spans.h);
 * a join of launches with what devices did carries where these were launched.
 */
#ifndef TORSH_DEVICE_KERNELS_ATTRIBUTION_H
#define TORSH_DEVICE_KERNELS_ATTRIBUTION_H

#include "tools/device/kernels/inductor.h"
#include "tools/timeline/device/launch_join.h"

/*
 * METHOD(NAME, what it goes by, the operator recording's word for that, how sure it is), the surest
 * first
 */
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
	enum kernel_reason reason; /* NONE: it has an operator */
	const char *operator_name; /* NULL: none. The attributor's, as the other texts are */
	const char *family; /* of the name, with ATTRIBUTION_BY_FAMILY */
	const struct inductor_kernel *fused; /* what it was made of, or NULL */
	uint32_t site; /* of one number all this is the same for one name; of one process */
	uint32_t path; /* of the operators around its launch: torsh_attribution_path */
	/* what the visitor gave the launch or the node; 0: nothing, or neither is known */
	uint32_t owner;
	uint32_t stack; /* of the span that requested it, as it was recorded; 0: none was taken */
	bool is_captured; /* stack is that of a graph's node, not of the launch */
};

struct attributor;

/*
 * The pre-pass is of these processes. Where torch.compile's kernels are met, the folder in which
 * their process had it leave its code is read, if it is still there.
 */
struct attributor *torsh_attributor_create(struct recorded_process *const *processes,
					   size_t n_processes, const struct prepass *prepass);
void torsh_attributor_destroy(struct attributor *attributor);

/* Both are reported every span. */
void torsh_attributor_begin(struct attributor *attributor, const struct span *span);
void torsh_attributor_end(struct attributor *attributor, const struct span *span);

/* The innermost range on a thread that looks like an operator, or NULL. */
struct span *torsh_attributor_range(const struct attributor *attributor,
				    const struct recorded_process *process, uint32_t thread);

/*
 * Where a launch is, or a node of a graph that comes into being, for the join to carry
 * (device_visitor.own). innermost: the operator on its thread, or NULL. owner: any number of the
 * visitor's.
 */
uint64_t torsh_attributor_place(struct attributor *attributor,
				const struct recorded_process *process,
				const struct timeline_event *event, const struct span *innermost,
				uint32_t owner);

/* The owner, by what it carries; where that is nothing, by its name. */
void torsh_attribute(struct attributor *attributor, const struct device_activity *activity,
		     struct attribution *attribution);

/*
 * Labels of the operators of a path, outermost first, at most n_max of them, the innermost ones.
 * Returns how many.
 */
size_t torsh_attribution_path(const struct attributor *attributor,
			      const struct recorded_process *process, uint32_t path,
			      uint32_t *labels, size_t n_max);

/*
 * The operator that a range's text names: "aten::add" of "aten::add, seq = 1, sizes = [[2]]".
 * Returns how many bytes of the text it is, 0: it names none. Names of PyTorch's own machinery and
 * of layers are none.
 */
size_t torsh_attribution_operator_in(const char *text);

/* "gemm" and the like; NULL where a kernel's symbol gives nothing away. */
const char *torsh_attribution_family(const char *symbol);

#endif
