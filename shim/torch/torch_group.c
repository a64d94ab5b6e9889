/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/torch/torch_group.h"

#include <string.h>

#include "shim/torch/torch_calibration.h"
#include "shim/torch/torch_words.h"

#define OBJECT_WORDS 16u
#define PYTHON_WORDS 8u
#define PYTHON_HEAD 2u /* words of any Python object: its reference count and its type */

/* Used by the calibrating thread only. */
static struct torch_group_layout found_group;
static const void *group_object;

/*
 * The word of the Python object that equals this pointer, 0: none. A smart pointer after it may
 * repeat it.
 */
static uint32_t find_in_python(const uint64_t *words, uint32_t n, uint64_t pointer)
{
	for (uint32_t i = PYTHON_HEAD; i < n; i++) {
		if (words[i] == pointer)
			return i;
	}
	return 0;
}

/*
 * The only list of one value in the object with a value that points to the Python object's target.
 */
static bool find_group(const struct torch_ivalue *value, struct torch_group_layout *group)
{
	uint64_t words[OBJECT_WORDS] = {0}, python[PYTHON_WORDS] = {0};
	uint32_t n = torch_is_pointer(value->payload)
			     ? torch_read_words(value->payload, words, OBJECT_WORDS)
			     : 0,
		 n_fitting = 0;
	uint32_t n_python = torch_read_words((uintptr_t)group_object, python, PYTHON_WORDS), at;
	struct torch_ivalue slot = {0};

	for (uint32_t i = 1; i + 1 < n; i++) {
		if (words[i + 1] - words[i] != sizeof(slot) ||
		    !torch_read_values(words[i], 1, &slot) || !torch_is_pointer(slot.payload))
			continue;
		at = find_in_python(python, n_python, slot.payload);
		if (!at)
			continue;
		*group = (struct torch_group_layout){.tag = value->tag,
						     .slots = (uint16_t)(8 * i),
						     .pointer = (uint16_t)(8 * at)};
		n_fitting++;
	}
	return n_fitting == 1;
}

bool torsh_torch_group_look(const void *record, bool is_second)
{
	struct torch_group_layout group = {0};
	struct torch_ivalue values[2] = {{0}};
	uint64_t inputs[2] = {0};

	if (torch_read_words((uintptr_t)record + torsh_torch_layout.inputs, inputs, 2) != 2 ||
	    inputs[1] < 2 || !torch_read_values(inputs[0], 2, values) ||
	    values[0].tag != torsh_torch_layout.tag_list ||
	    values[1].tag == torsh_torch_layout.tag_list || !find_group(&values[1], &group))
		return false;
	if (is_second)
		return !memcmp(&group, &found_group, sizeof(group));
	found_group = group;
	return true;
}

uintptr_t torsh_torch_group_of(const void *object)
{
	uint64_t pointer = 0;
	/* Pairs with the release in torsh_torch_group_publish. */
	bool is_known = atomic_load_explicit(&torsh_torch_has_groups, memory_order_acquire);

	return is_known && torch_read_words((uintptr_t)object + torsh_torch_group_layout.pointer,
					    &pointer, 1) == 1
		       ? pointer
		       : 0;
}

void torsh_torch_calibration_take_group(const void *object)
{
	group_object = object;
}

void torsh_torch_group_publish(void)
{
	torsh_torch_group_layout = found_group;
	/* Pairs with the acquire loads of torsh_torch_has_groups. */
	atomic_store_explicit(&torsh_torch_has_groups, 1, memory_order_release);
}
