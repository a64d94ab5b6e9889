/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operator profile, profile.json 1.0: each kernel once, below the span of the operator that
 * launched it. The form is that of the published models of the operator profiler
 * (yottalabsai/Profiler), which ignore additional fields; tools/schema/profile.json is its schema.
 *
 * Device activities come later than the spans that launched them, so that a record of each kernel
 * and of each span with kernels is held until all is known (some 300 bytes a kernel); what is
 * written is put out as it is made.
 */
#ifndef TORSH_EXPORT_PROFILE_PROFILE_H
#define TORSH_EXPORT_PROFILE_PROFILE_H

#include "tools/base/containers/hash_map.h"
#include "tools/device/kernels/attribution.h"
#include "tools/device/kernels/counters.h"
#include "tools/device/kernels/kernel_metrics.h"
#include "tools/export/trace.h"
#include "tools/ops/flops.h"

#define OWNER_NONE 0u /* owner of a launch: no span, */
#define OWNER_LEFT_OUT 1u /* one that is not exported, */
#define OWNER_FIRST 2u /* or an operator's number and this */

#define NO_OPERATOR UINT32_MAX

/* The identity of an operator's span: its name, and its number among the spans of that name. */
struct span_id {
	const char *name; /* owned by the profile; NULL: no span */
	uint64_t index;
};

/*
 * A span that launched something; or, if it is unknown, a substitute: a range, a fused kernel, a
 * family.
 */
struct profile_operator {
	const struct recorded_process *process;
	struct span_id id, forward; /* forward: of a backward span */
	enum attribution_method method;
	bool is_operator; /* of an operator: has times, inputs and the like */
	bool is_scope; /* an operator by record_function: its name is the program's */
	uint64_t start_ns, end_ns;
	uint64_t sequence; /* OP_NO_SEQUENCE: none */
	uint64_t host_bytes, device_bytes; /* of tensors allocated in it, and in no inner span */
	uint32_t inputs, module, range, domain; /* labels */
	uint32_t depth; /* of a range: number of enclosing ranges */
	uint32_t layer_tag; /* label of the enclosing range layer::... */
	enum span_phase phase;
	size_t first, n; /* its activities: indices in profile->order, by start */
	const char *layer_group; /* NULL: none */
	uint32_t layer_instance;
	bool is_representative;
};

/* A kernel, a copy or a memset. */
struct profile_work {
	const struct recorded_process *process;
	struct activity_record record;
	struct attribution by;
	uint32_t op; /* number of its operator, or NO_OPERATOR */
	uint64_t number; /* by start, separately for kernels and for copies and memsets */
	uint32_t grid[3], block[3], registers, static_bytes, dynamic_bytes; /* of a kernel */
};

/*
 * The source of a kernel's counters: its own, those of a kernel with equal launch parameters, or
 * none.
 */
enum metrics_source { METRICS_MEASURED, METRICS_PROPAGATED, METRICS_NONE };

/* Cached per process: what is missing, and escaped strings. */
struct profile_texts {
	const struct recorded_process *process;
	struct event_device_loss losses; /* totals: the last report counts */
	bool has_losses;
	char **names, **demangled; /* by label */
	char **lines; /* by stack */
	size_t n_stacks;
	/* by group of launches: the first measured kernel + 1 */
	uint32_t *measured;
};

/* A layer; layers of one group have the same launches. */
struct profile_layer {
	const char *group;
	char *label;
	bool is_representative; /* its counters stand for the group's */
};

/* What limits an operator's speed, by its roofline. */
enum operator_bound { BOUND_UNKNOWN, BOUND_BY_MEMORY, BOUND_BY_COMPUTING, N_BOUNDS };

struct operator_roofline {
	enum operator_bound bound;
	struct roofline roofline; /* all zero if unknown */
	const char *reason; /* if unknown: why */
};

/* Time of kernels on a device, by what limits their operators. */
struct device_bounds {
	const struct recorded_process *process;
	uint32_t device;
	uint64_t ns[N_BOUNDS];
};

/* Operators without a roofline, by the reason. */
struct unbound {
	const char *reason;
	uint64_t operators, ns;
};

struct profile_json {
	const struct trace *trace;
	struct json_writer json; /* writes to the trace's output */
	struct attributor *attributor;
	struct profile_operator *operators;
	size_t n_operators, operators_room;
	struct profile_work *work; /* by start */
	size_t n_work, work_room;
	/* indices in work, by operator and then by start; those without one come last */
	uint32_t *order;
	size_t n_unattributed; /* number of these */
	struct profile_texts *strings; /* parallel to the trace's processes */
	struct profile_layer *layers;
	size_t n_layers, layers_room;
	char **groups; /* names of layer groups */
	size_t n_groups, groups_room;
	struct counters counters;
	struct event_device_mode mode; /* of the first process that has one */
	const struct recorded_process *mode_of; /* NULL: no process has one */
	struct device_bounds *bounds; /* grows while operators are written */
	size_t n_bounds, bounds_room;
	struct unbound *unbound; /* likewise */
	size_t n_unbound, unbound_room;
	struct fused_kernel *fused; /* grows while kernels are written */
	size_t n_fused, fused_room;
	const char *model; /* class of the outermost module, or NULL */
	struct hash_map names; /* operators' names, with their counts */
};

/* Go over the timeline and assign all activities to operators. Returns 0 or -errno. */
int torsh_profile_collect(struct profile_json *profile);

/* Free the profile. */
void torsh_profile_free(struct profile_json *profile);

/* Find the layers among the operators. */
void torsh_profile_find_layers(struct profile_json *profile);

#define PROFILE_RAW_MAX (2u + COUNTERS_A_DEVICE)

/* A kernel's counter values and launch parameters. */
struct profile_raw {
	struct raw_metric items[PROFILE_RAW_MAX];
	const char *units[PROFILE_RAW_MAX]; /* NULL: not reported by CUPTI */
	size_t n;
	enum metrics_source source;
};

/* Collect the metrics of an activity: its launch parameters, and counters if there are any. */
void torsh_profile_raw(struct profile_json *profile, const struct profile_work *work,
		       struct profile_raw *raw);

/* Returns why counters are missing in the process, or NULL. */
const char *torsh_profile_uncounted(const struct profile_json *profile,
				    const struct recorded_process *process);

/* Returns why the work has no counter values, or NULL. */
const char *torsh_profile_uncounted_work(const struct profile_json *profile,
					 const struct profile_work *work);

/*
 * Returns how counters were read in the process, on the selected device; mode COUNTERS_OFF: not at
 * all.
 */
struct event_counter_mode torsh_profile_counter_mode(const struct profile_json *profile,
						     const struct recorded_process *process);

/* Returns the properties of an activity's device, or NULL. */
const struct event_device *torsh_profile_device(const struct profile_json *profile,
						const struct recorded_process *process,
						uint32_t device);

/* Returns a label's text, escaped for a JSON string; never NULL. */
const char *torsh_profile_text(struct profile_json *profile, const struct recorded_process *process,
			       uint32_t label);

/* Likewise, demangled if it is a mangled name. */
const char *torsh_profile_demangled(struct profile_json *profile,
				    const struct recorded_process *process, uint32_t label);

/*
 * Returns the source line of a stack recorded in a CUDA call, escaped for a JSON string; "":
 * unknown.
 */
const char *torsh_profile_line(struct profile_json *profile, const struct recorded_process *process,
			       uint32_t stack);

/* Returns "init", "warmup" or "steady" for that start time; NULL: no steps are known. */
const char *torsh_profile_phase(const struct profile_json *profile,
				const struct recorded_process *process, uint64_t at_ns);

/* ---- writers into profile->json -------------------------------------------------------------- */

/* Put "nvtx_range": the program's range that the operator is; op may be NULL. */
void torsh_profile_put_range(struct profile_json *profile, const struct profile_operator *op);

/* Put an operator with the work that it launched, as an item. */
void torsh_profile_put_operator(struct profile_json *profile, const struct profile_operator *op);

/* Put an array of those work items that are kernels, or of those that are copies and memsets. */
void torsh_profile_put_list(struct profile_json *profile, const char *name, const uint32_t *order,
			    size_t n, bool are_kernels);

/* Returns what bounds an operator, and counts it for its device: call once per operator. */
struct operator_roofline torsh_profile_bind(struct profile_json *profile,
					    const struct profile_operator *op,
					    const struct kernel_sums *sums,
					    const struct flops *flops);

/* Put "roofline" of the analysis, once, after all operators. */
void torsh_profile_put_roofline(struct profile_json *profile);

/* Put "capture_metadata". */
void torsh_profile_put_metadata(struct profile_json *profile);

/* Put "analysis", after all operators. */
void torsh_profile_put_analysis(struct profile_json *profile);

/* Put the members "duplicate": "representative", one per layer that has a representative. */
void torsh_profile_put_layers(struct profile_json *profile);

/* Returns the label of the layer that the operator is in, or NULL. */
const char *torsh_profile_layer_label(const struct profile_json *profile,
				      const struct profile_operator *op);

/* Put where and when a kernel ran, and its grid and blocks. */
void torsh_profile_put_place(struct profile_json *profile, const struct profile_work *work);

/* Put "capture_metadata" of a manifest. */
void torsh_profile_put_manifest_metadata(struct profile_json *profile);

/* Put a whole manifest: each kernel with the evidence for its operator, by start. */
void torsh_profile_put_manifest(struct profile_json *profile);

/* Put the whole map from the n-th kernel of a name to its operator. */
void torsh_profile_put_corr(struct profile_json *profile);

/* Put "warnings". */
void torsh_profile_put_warnings(struct profile_json *profile);

/* Put "unmeasured": the fields that could not be measured, with the reasons. */
void torsh_profile_put_unmeasured(struct profile_json *profile);

#endif
