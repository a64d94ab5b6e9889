/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The layers of a model in an operator profile: operators with repeating launches, per step and
 * process. If modules were recorded, each repetition must be in a different module, which names
 * it: a loop over one module has no layers. Ranges layer::unique::NAME and layer::duplicate::NAME
 * mark layers explicitly.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/device/kernels/layers.h"
#include "tools/export/profile/profile.h"
#include "tools/timeline/inputs.h"

#define INSTANCES_MIN 3u /* without modules, fewer may be a coincidence */
#define SHIFTS_MAX 256u /* offsets tried for the start of a layer within a period */
#define MODULE_BYTES_MAX 512u

static const char unique[] = "layer::unique::", duplicate[] = "layer::duplicate::";

/*
 * Operators of one process and step that may belong to layers, in the order of their first
 * launches.
 */
struct sequence {
	struct profile_json *profile;
	uint32_t *operators;
	uint64_t *signatures;
	size_t n;
	bool has_modules;
	char **labels; /* of the run that was accepted last: one per instance */
	size_t n_labels;
};

/* ---- what makes launches alike --------------------------------------------------------------- */

static uint64_t add_to_hash(uint64_t hash, uint64_t number)
{
	const uint64_t both[] = {hash, number};

	return torsh_layers_hash(both, 2);
}

/* Hash the sizes of tensors: other inputs may differ between layers. */
static uint64_t hash_inputs(const struct profile_operator *op, struct inputs *inputs)
{
	uint64_t hash = 0;

	torsh_inputs_parse(inputs,
			   op->inputs ? torsh_timeline_label(op->process, op->inputs) : NULL);
	for (uint32_t i = 0; i < inputs->n_items; i++) {
		const struct input *input = &inputs->items[i];

		if (input->kind != INPUT_TENSOR)
			continue;
		for (uint32_t k = 0; k < input->n_dims; k++)
			hash = add_to_hash(hash, (uint64_t)input->dims[k]);
		hash = add_to_hash(hash, input->n_dims);
	}
	return hash;
}

static uint64_t hash_work(uint64_t hash, const struct profile_work *work)
{
	hash = add_to_hash(hash, (uint64_t)work->record.what << 32 | work->record.name);
	hash = add_to_hash(hash, work->record.what == DEVICE_KERNEL ? work->dynamic_bytes
								    : work->record.bytes);
	for (int axis = 0; axis < 3; axis++)
		hash = add_to_hash(hash, (uint64_t)work->grid[axis] << 32 | work->block[axis]);
	return hash;
}

static uint64_t sign(const struct profile_json *profile, const struct profile_operator *op,
		     struct inputs *inputs)
{
	uint64_t hash = add_to_hash((uintptr_t)op->id.name, hash_inputs(op, inputs));

	for (size_t i = 0; i < op->n; i++)
		hash = hash_work(hash, &profile->work[profile->order[op->first + i]]);
	return hash;
}

/* ---- names of instances ---------------------------------------------------------------------- */

/* Finds "Model.h.0" in "Model.h.0:Block"; "" without a module. Returns its length in bytes. */
static size_t module_path(const struct profile_operator *op, const char **path)
{
	*path = op->module ? torsh_timeline_label(op->process, op->module) : NULL;
	if (!*path)
		*path = "";
	return strcspn(*path, ":");
}

/* Returns the length of the common prefix of two paths, in whole components. */
static size_t common_path(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t n = 0, n_whole = 0;

	while (n < n_a && n < n_b && a[n] == b[n]) {
		n++;
		if ((n == n_a || a[n] == '.') && (n == n_b || b[n] == '.'))
			n_whole = n;
	}
	return n_whole;
}

/*
 * Returns the innermost module that contains all operators of an instance, ignoring those without
 * a module. The caller frees it.
 */
static char *label_of(const struct sequence *sequence, size_t from, size_t n)
{
	const struct profile_operator *operators = sequence->profile->operators;
	const char *path = NULL, *other;
	size_t n_path = 0;

	for (size_t i = 0; i < n; i++) {
		size_t n_other = module_path(&operators[sequence->operators[from + i]], &other);

		/* Operators between autograd's nodes, which add gradients up, have no module. */
		if (!n_other)
			continue;
		n_path = path ? common_path(path, n_path, other, n_other) : n_other;
		path = other;
	}
	return torsh_need(strndup(path ? path : "", n_path));
}

static void free_labels(struct sequence *sequence)
{
	for (size_t i = 0; i < sequence->n_labels; i++)
		free(sequence->labels[i]);
	free(sequence->labels);
	sequence->labels = NULL;
	sequence->n_labels = 0;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool are_different(char *const *labels, size_t n)
{
	char **sorted = torsh_need_items(NULL, 0, n, sizeof(*sorted));
	bool is_same = false;

	memcpy(sorted, labels, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_texts);
	for (size_t i = 0; i < n; i++)
		is_same = is_same || !*sorted[i] || (i && strcmp(sorted[i - 1], sorted[i]) == 0);
	free(sorted);
	return !is_same;
}

/*
 * Returns whether each instance of a run is a different module, and sets the sequence's labels to
 * these.
 */
static bool label_instances(struct sequence *sequence, const struct layer_run *run)
{
	free_labels(sequence);
	sequence->labels = torsh_need_items(NULL, 0, run->n_instances, sizeof(*sequence->labels));
	for (size_t i = 0; i < run->n_instances; i++) {
		sequence->labels[i] = label_of(sequence, run->start + i * run->period, run->period);
		sequence->n_labels = i + 1;
		/* Most runs fail at two instances in one module: skip the rest. */
		if (!*sequence->labels[i] ||
		    (i && strcmp(sequence->labels[i], sequence->labels[i - 1]) == 0))
			return false;
	}
	return are_different(sequence->labels, run->n_instances);
}

/* A period may begin anywhere within a layer: shift it to where its modules begin. */
static bool accept_run(void *context, struct layer_run *run)
{
	struct sequence *sequence = context;
	struct layer_run whole = *run;

	if (!sequence->has_modules)
		return run->n_instances >= INSTANCES_MIN;
	for (size_t shift = 0; shift < whole.period && shift < SHIFTS_MAX; shift++) {
		run->start = whole.start + shift;
		run->n_instances = whole.n_instances - (shift > whole.n_rest);
		if (run->n_instances >= 2 && label_instances(sequence, run))
			return true;
	}
	return false;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/*
 * Numbers the groups by a hash of the first period's launches, so that a layer has the same group
 * in every step.
 */
struct groups {
	struct profile_json *profile;
	struct key_index index;
};

static size_t find_group(struct groups *groups, uint64_t hash)
{
	struct profile_json *profile = groups->profile;
	struct key_slot *slot = torsh_key_index_find(&groups->index, hash ? hash : 1);

	if (slot->key)
		return slot->number;
	torsh_key_index_fill(&groups->index, slot, hash ? hash : 1, (uint32_t)profile->n_groups);
	profile->groups = torsh_array_reserve(profile->groups, profile->n_groups,
					      &profile->groups_room, sizeof(*profile->groups));
	profile->groups[profile->n_groups] = torsh_need_text("layers_%zu", profile->n_groups);
	return profile->n_groups++;
}

/*
 * Add a label to a group, once; the group's first label that represents itself represents all.
 * Returns its number.
 */
static uint32_t add_layer(struct profile_json *profile, const char *group, const char *label,
			  bool is_representative)
{
	uint32_t instance = 0;

	for (size_t i = 0; i < profile->n_layers; i++) {
		if (profile->layers[i].group != group)
			continue;
		if (strcmp(profile->layers[i].label, label) == 0)
			return instance;
		instance++;
	}
	profile->layers = torsh_array_reserve(profile->layers, profile->n_layers,
					      &profile->layers_room, sizeof(*profile->layers));
	profile->layers[profile->n_layers++] =
		(struct profile_layer){.group = group,
				       .label = torsh_need(strdup(label)),
				       .is_representative = is_representative};
	return instance;
}

/*
 * Returns "Model.h.0", or "Model.h.0:backward" for backward; without modules "layers_0_0". The
 * caller frees it.
 */
static char *name_instance(const struct profile_operator *op, const char *group, const char *module,
			   size_t instance)
{
	if (!module)
		return torsh_need_text("%s_%zu", group, instance);
	return torsh_need_text("%s%s", module, op->phase == PHASE_BACKWARD ? ":backward" : "");
}

/* labels: one per instance, or NULL. */
static void put_run(struct sequence *sequence, struct groups *groups, const struct layer_run *run,
		    char *const *labels)
{
	struct profile_json *profile = sequence->profile;
	size_t number = find_group(
		groups, torsh_layers_hash(sequence->signatures + run->start, run->period));
	const char *group = profile->groups[number];

	for (size_t i = 0; i < run->n_instances; i++) {
		const uint32_t *operators = sequence->operators + run->start + i * run->period;
		char *label = name_instance(&profile->operators[*operators], group,
					    labels ? labels[i] : NULL, i);
		uint32_t instance = add_layer(profile, group, label, !i);

		for (size_t k = 0; k < run->period; k++) {
			struct profile_operator *op = &profile->operators[operators[k]];

			op->layer_group = group;
			op->layer_instance = instance;
			op->is_representative = !instance;
		}
		free(label);
	}
}

/* ---- sequences ------------------------------------------------------------------------------- */

static void find_in(struct sequence *sequence, struct groups *groups)
{
	struct layer_run *runs;
	size_t n =
		torsh_layers_find(sequence->signatures, sequence->n, accept_run, sequence, &runs);

	for (size_t i = 0; i < n; i++) {
		bool is_labelled = sequence->has_modules && label_instances(sequence, &runs[i]);

		put_run(sequence, groups, &runs[i], is_labelled ? sequence->labels : NULL);
	}
	free_labels(sequence);
	free(runs);
}

static bool has_kernels(const struct profile_json *profile, const struct profile_operator *op)
{
	for (size_t i = 0; i < op->n; i++) {
		if (profile->work[profile->order[op->first + i]].record.what == DEVICE_KERNEL)
			return true;
	}
	return false;
}

static bool may_be_of_layer(const struct profile_json *profile, const struct profile_operator *op)
{
	return (op->is_operator || op->range) && op->phase != PHASE_OPTIMIZER &&
	       op->phase != PHASE_DATA && has_kernels(profile, op);
}

static size_t step_of(const struct profile_json *profile, const struct profile_operator *op)
{
	return torsh_steps_at(&torsh_prepass_of(profile->trace->prepass, op->process)->steps,
			      op->start_ns);
}

/* Operators are in the order of their first launches, per process. */
static void find_of_process(struct profile_json *profile, const struct recorded_process *process,
			    struct groups *groups)
{
	struct sequence sequence = {
		.profile = profile,
		.has_modules = torsh_prepass_of(profile->trace->prepass, process)->n_modules,
	};
	struct inputs *inputs = torsh_need(malloc(sizeof(*inputs)));
	size_t step = STEP_NONE;

	sequence.operators =
		torsh_need_items(NULL, 0, profile->n_operators + 1, sizeof(*sequence.operators));
	sequence.signatures =
		torsh_need_items(NULL, 0, profile->n_operators + 1, sizeof(*sequence.signatures));
	for (size_t i = 0; i < profile->n_operators; i++) {
		const struct profile_operator *op = &profile->operators[i];

		if (op->process != process || !may_be_of_layer(profile, op))
			continue;
		if (sequence.n && step_of(profile, op) != step) {
			find_in(&sequence, groups);
			sequence.n = 0;
		}
		step = step_of(profile, op);
		sequence.operators[sequence.n] = (uint32_t)i;
		sequence.signatures[sequence.n++] = sign(profile, op, inputs);
	}
	find_in(&sequence, groups);
	free(sequence.operators);
	free(sequence.signatures);
	free(inputs);
}

/* ---- layers that the program names ----------------------------------------------------------- */

/* An instance: consecutive operators with its tag. */
struct tagged {
	const char *label;
	bool is_unique;
	uint64_t hash;
	size_t first, n; /* operators */
};

static void put_tagged(struct groups *groups, const struct tagged *tagged)
{
	struct profile_json *profile = groups->profile;
	size_t number = find_group(groups, tagged->hash);
	const char *group = profile->groups[number];
	uint32_t instance = add_layer(profile, group, tagged->label, tagged->is_unique);

	for (size_t k = 0; k < tagged->n; k++) {
		struct profile_operator *op = &profile->operators[tagged->first + k];

		op->layer_group = group;
		op->layer_instance = instance;
		op->is_representative = tagged->is_unique;
	}
}

static const char *read_tag(const struct profile_operator *op, bool *is_unique)
{
	const char *text = op->layer_tag ? torsh_timeline_label(op->process, op->layer_tag) : NULL;

	*is_unique = text && strncmp(text, unique, sizeof(unique) - 1) == 0;
	if (*is_unique)
		return text + sizeof(unique) - 1;
	return text && strncmp(text, duplicate, sizeof(duplicate) - 1) == 0
		       ? text + sizeof(duplicate) - 1
		       : NULL;
}

/* Returns false if the program marked none. */
static bool take_tags(struct profile_json *profile, struct groups *groups)
{
	struct inputs *inputs = torsh_need(malloc(sizeof(*inputs)));
	struct tagged *all = NULL;
	size_t n = 0, capacity = 0;
	uint32_t last = 0;

	for (size_t i = 0; i < profile->n_operators; i++) {
		const struct profile_operator *op = &profile->operators[i];
		bool is_unique;
		const char *label = read_tag(op, &is_unique);

		if (label &&
		    (!n || op->layer_tag != last || all[n - 1].first + all[n - 1].n != i)) {
			all = torsh_array_reserve(all, n, &capacity, sizeof(*all));
			all[n++] =
				(struct tagged){.label = label, .is_unique = is_unique, .first = i};
		}
		last = op->layer_tag;
		if (!label)
			continue;
		all[n - 1].n++;
		all[n - 1].hash = add_to_hash(all[n - 1].hash, sign(profile, op, inputs));
	}
	for (size_t i = 0; i < n; i++)
		put_tagged(groups, &all[i]);
	free(all);
	free(inputs);
	return n;
}

void torsh_profile_find_layers(struct profile_json *profile)
{
	struct groups groups = {.profile = profile};

	torsh_key_index_create(&groups.index);
	if (!take_tags(profile, &groups)) {
		for (size_t i = 0; i < profile->trace->n_processes; i++)
			find_of_process(profile, profile->trace->processes[i], &groups);
	}
	torsh_key_index_destroy(&groups.index);
}

const char *torsh_profile_layer_label(const struct profile_json *profile,
				      const struct profile_operator *op)
{
	uint32_t instance = 0;

	for (size_t i = 0; op->layer_group && i < profile->n_layers; i++) {
		if (profile->layers[i].group == op->layer_group && instance++ == op->layer_instance)
			return profile->layers[i].label;
	}
	return NULL;
}

/* Returns the representative of a layer's group, or NULL if the layer is one itself. */
static const struct profile_layer *find_representative(const struct profile_json *profile,
						       const struct profile_layer *layer)
{
	for (size_t i = 0; i < profile->n_layers && !layer->is_representative; i++) {
		const struct profile_layer *other = &profile->layers[i];

		if (other->group == layer->group && other->is_representative)
			return other;
	}
	return NULL;
}

/* Returns whether an earlier duplicate has the same label, in another group. */
static bool is_repeated(const struct profile_json *profile, size_t number)
{
	for (size_t i = 0; i < number; i++) {
		if (strcmp(profile->layers[i].label, profile->layers[number].label) == 0 &&
		    find_representative(profile, &profile->layers[i]))
			return true;
	}
	return false;
}

void torsh_profile_put_layers(struct profile_json *profile)
{
	for (size_t i = 0; i < profile->n_layers; i++) {
		const struct profile_layer *representative =
			find_representative(profile, &profile->layers[i]);

		if (!representative || is_repeated(profile, i))
			continue;
		torsh_json_put_name(&profile->json, profile->layers[i].label);
		torsh_json_put_text(&profile->json, NULL, representative->label);
	}
}
