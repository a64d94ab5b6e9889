/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/torch/torch_calibration.h"

#include <errno.h>
#include <string.h>

#include "shim/loader/objects.h"
#include "shim/torch/torch.h"
#include "shim/torch/torch_group.h"
#include "shim/torch/torch_search.h"

#define TENSOR_CLASS "_ZTVN3c1010TensorImplE"
#define UNDEFINED_CLASS "_ZTVN3c1019UndefinedTensorImplE"
/* an object points past the first two words of its virtual table */
#define FIRST_VIRTUAL 16

_Thread_local bool torsh_torch_is_calibrating;

struct step {
	const char *name, *operator;
	bool (*look)(const void *record, uint64_t number);
	uint64_t number;
};

/* Used by the calibrating thread only. */
static const struct step *expected;
static bool has_fitted;
static uint64_t fitted_steps; /* a bit for each */

static const struct step steps[] = {
#define STEP(name, operator, what, number) {name, operator, torsh_torch_look_##what, number},
#include "shim/torch/torch_calibration.def"
#undef STEP
};

#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

static bool all_fitted(bool (*look)(const void *record, uint64_t number))
{
	for (uint32_t i = 0; i < N_STEPS; i++)
		if (steps[i].look == look && !(fitted_steps >> i & 1))
			return false;
	return true;
}

int torsh_torch_calibration_begin(void)
{
	static _Atomic bool is_begun;
	uintptr_t tensor = (uintptr_t)torsh_objects_find(TENSOR_CLASS);
	uintptr_t undefined = (uintptr_t)torsh_objects_find(UNDEFINED_CLASS);

	if (atomic_exchange(&is_begun, true))
		return -EALREADY;
	torsh_torch_candidate = (struct torch_layout){
		.inputs = TORCH_UNKNOWN,
		.sequence = TORCH_UNKNOWN,
		.forward_thread = TORCH_UNKNOWN,
		.sizes = TORCH_UNKNOWN,
		.type = TORCH_UNKNOWN,
		.device = TORCH_UNKNOWN,
		.storage = TORCH_UNKNOWN,
		.data = TORCH_UNKNOWN,
		.list = TORCH_UNKNOWN,
		.tag_none = TORCH_NO_TAG,
		/* in every version; otherwise torsh_torch_look_inputs finds nothing */
		.tag_tensor = 1,
		.tag_int = TORCH_NO_TAG,
		.tag_double = TORCH_NO_TAG,
		.tag_bool = TORCH_NO_TAG,
		.tag_list = TORCH_NO_TAG,
		.tensor_class = tensor ? tensor + FIRST_VIRTUAL : 0,
		.undefined_class = undefined ? undefined + FIRST_VIRTUAL : 0,
	};
	torsh_torch_is_calibrating = true;
	return 0;
}

bool torsh_torch_calibration_expect(const char *step)
{
	expected = NULL;
	has_fitted = false;
	for (uint32_t i = 0; i < N_STEPS; i++)
		if (!strcmp(steps[i].name, step))
			expected = &steps[i];
	return expected != NULL;
}

bool torsh_torch_calibration_fitted(void)
{
	expected = NULL;
	return has_fitted;
}

void torsh_torch_calibration_look(const void *record, const char *name)
{
	const struct step *step = expected;
	uint64_t bit;

	/* Only the first one of that name: it may call others. */
	if (!step || strcmp(step->operator, name))
		return;
	expected = NULL;
	bit = UINT64_C(1) << (step - steps);
	has_fitted = step->look(record, step->number);
	/* A step that runs twice has to match twice. */
	fitted_steps = has_fitted ? fitted_steps | bit : fitted_steps & ~bit;
}

/* Drop what did not match each time. */
static void drop_doubtful(void)
{
	if (!all_fitted(torsh_torch_look_type))
		torsh_torch_candidate.type = TORCH_UNKNOWN;
	if (!all_fitted(torsh_torch_look_device))
		torsh_torch_candidate.device = TORCH_UNKNOWN;
	if (!all_fitted(torsh_torch_look_storage))
		torsh_torch_candidate.storage = torsh_torch_candidate.data = TORCH_UNKNOWN;
	if (!all_fitted(torsh_torch_look_sequence))
		torsh_torch_candidate.sequence = TORCH_UNKNOWN;
	if (!all_fitted(torsh_torch_look_forward_thread))
		torsh_torch_candidate.forward_thread = TORCH_UNKNOWN;
	if (!all_fitted(torsh_torch_look_list) || !all_fitted(torsh_torch_look_tensors)) {
		torsh_torch_candidate.list = TORCH_UNKNOWN;
		torsh_torch_candidate.tag_list = torsh_torch_candidate.tag_bool =
			torsh_torch_candidate.tag_none = TORCH_NO_TAG;
	}
}

bool torsh_torch_calibration_finish(void)
{
	bool has_shapes =
		all_fitted(torsh_torch_look_inputs) && all_fitted(torsh_torch_look_inputs_again) &&
		all_fitted(torsh_torch_look_strides) && all_fitted(torsh_torch_look_many_dims);

	torsh_torch_is_calibrating = false;
	expected = NULL;
	if (!has_shapes)
		return false;
	drop_doubtful();
	torsh_torch_layout = torsh_torch_candidate;
	/* Pairs with the acquire loads of torsh_torch_is_calibrated. */
	atomic_store_explicit(&torsh_torch_is_calibrated, 1, memory_order_release);
	return true;
}

int torsh_torch_calibration_begin_groups(void)
{
	static _Atomic bool is_begun;

	if (!atomic_load_explicit(&torsh_torch_is_calibrated, memory_order_acquire) ||
	    torsh_torch_candidate.tag_list == TORCH_NO_TAG)
		return -ENOENT;
	if (atomic_exchange(&is_begun, true))
		return -EALREADY;
	torsh_torch_is_calibrating = true;
	return 0;
}

bool torsh_torch_calibration_finish_groups(void)
{
	bool is_known = all_fitted(torsh_torch_look_group);

	torsh_torch_is_calibrating = false;
	expected = NULL;
	if (is_known)
		torsh_torch_group_publish();
	return is_known;
}
