/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/torch/torch_calibration.h"

#include <errno.h>
#include <string.h>

#include "shim/loader/objects.h"
#include "shim/torch/torch.h"
#include "shim/torch/torch_group.h"
#include "shim/torch/torch_words.h"

#define TENSOR_CLASS "_ZTVN3c1010TensorImplE"
#define UNDEFINED_CLASS "_ZTVN3c1019UndefinedTensorImplE"
/* an object points past the first two words of its virtual table */
#define FIRST_VIRTUAL 16

#define RECORD_WORDS 80u
#define TENSOR_WORDS 32u
#define LIST_WORDS 8u
/* words from the count of c10::SizesAndStrides to its inline strides */
#define STRIDES (1 + TORCH_INLINE_DIMS)
#define MANY_DIMS 6u /* more than fit inline */

/*
 * An optional c10::Device of the host: type 0, index -1, and a flag that it is set. Unlike the type
 * alone this occurs nowhere else in a tensor, so that no tensor of another device is needed.
 */
#define HOST_DEVICE UINT64_C(0x01ff00)
#define HOST_DEVICE_BYTES 3u

_Thread_local bool torsh_torch_is_calibrating;

struct step {
	const char *name, *operator;
	bool (*look)(const void *record, uint64_t number);
	uint64_t number;
};

/* Used by the calibrating thread only. */
static struct torch_layout found;
static const struct step *expected;
static bool has_fitted;
static int64_t first_sequence;
static uint64_t fitted_steps; /* a bit for each */

/* Offsets in a TensorImpl that have matched so far, a bit for each byte. */
struct free_extents {
	uint64_t bits[TENSOR_WORDS * 8 / 64];
	bool is_begun;
};
static struct free_extents types, devices;

static uint64_t
	forward_words[(RECORD_WORDS + 63) /
		      64]; /* of a RecordFunction, those that have matched so far, a bit for each */

/* ---- arguments ------------------------------------------------------------------------------- */

struct arguments {
	struct torch_ivalue values[4];
	uint32_t n;
};

/* The arguments of a call with n of them, if their offset has been found. */
static bool read_arguments(const void *record, struct arguments *arguments, uint32_t n)
{
	uint64_t inputs[2] = {0};

	arguments->n = n;
	return found.inputs != TORCH_UNKNOWN &&
	       torch_read_words((uintptr_t)record + found.inputs, inputs, 2) == 2 &&
	       inputs[1] == n && torch_read_values(inputs[0], n, arguments->values);
}

struct tensor {
	uint64_t words[TENSOR_WORDS];
	uint32_t n;
};

static bool read_tensor(const struct torch_ivalue *value, struct tensor *tensor)
{
	tensor->n = 0;
	if (value->tag != found.tag_tensor || !torch_is_pointer(value->payload))
		return false;
	tensor->n = torch_read_words(value->payload, tensor->words, TENSOR_WORDS);
	return tensor->n && tensor->words[0] == found.tensor_class;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

struct dims {
	uint32_t n;
	int64_t sizes[MANY_DIMS], strides[MANY_DIMS];
};

static bool are_same(const uint64_t *words, const int64_t *dims, uint32_t n)
{
	return memcmp(words, dims, n * sizeof(*dims)) == 0;
}

/* Whether these dimensions are there, with the count at that word. */
static bool has_dims_at(const struct tensor *tensor, uint32_t at, const struct dims *dims)
{
	uint64_t outside[2 * MANY_DIMS];

	if (at + STRIDES + TORCH_INLINE_DIMS > tensor->n || tensor->words[at] != dims->n)
		return false;
	if (dims->n <= TORCH_INLINE_DIMS)
		return are_same(&tensor->words[at + 1], dims->sizes, dims->n) &&
		       are_same(&tensor->words[at + STRIDES], dims->strides, dims->n);
	return torch_is_pointer(tensor->words[at + 1]) &&
	       torch_read_words(tensor->words[at + 1], outside, 2 * dims->n) == 2 * dims->n &&
	       are_same(outside, dims->sizes, dims->n) &&
	       are_same(outside + dims->n, dims->strides, dims->n);
}

static bool has_dims(const struct torch_ivalue *value, const struct dims *dims)
{
	struct tensor tensor = {0};

	return found.sizes != TORCH_UNKNOWN && read_tensor(value, &tensor) &&
	       has_dims_at(&tensor, found.sizes / 8, dims);
}

/* What torch_script.py passes to the steps of shapes. */
static const struct dims plain = {2, {3, 5}, {5, 1}}, row = {2, {1, 5}, {5, 1}};
static const struct dims deep = {3, {2, 4, 6}, {24, 6, 1}}, column = {2, {4, 1}, {1, 1}};
static const struct dims turned = {2, {5, 3}, {1, 5}};
static const struct dims many = {MANY_DIMS, {1, 2, 1, 3, 1, 4}, {24, 12, 12, 4, 4, 1}};

/*
 * Both tensors must have their dimensions at a single common offset. Returns how many offsets
 * match; *at is the last.
 */
static uint32_t find_sizes(const struct torch_ivalue values[2], uint32_t *at)
{
	struct tensor first = {0}, second = {0};
	uint32_t n = 0;

	if (!read_tensor(&values[0], &first) || !read_tensor(&values[1], &second))
		return 0;
	for (uint32_t i = 1; i < first.n; i++) {
		if (has_dims_at(&first, i, &plain) && has_dims_at(&second, i, &row)) {
			*at = i;
			n++;
		}
	}
	return n;
}

static bool look_inputs(const void *record, uint64_t number)
{
	uint64_t words[RECORD_WORDS];
	uint32_t n = torch_read_words((uintptr_t)record, words, RECORD_WORDS), n_fitting = 0,
		 at = 0, sizes = 0;

	(void)number;
	for (uint32_t i = 0; i + 1 < n; i++) {
		struct torch_ivalue values[2];
		uint32_t n_sizes;

		if (words[i + 1] != 2 || !torch_read_values(words[i], 2, values))
			continue;
		n_sizes = find_sizes(values, &sizes);
		n_fitting += n_sizes;
		if (n_sizes)
			at = i;
	}
	if (n_fitting != 1)
		return false;
	found.inputs = (uint16_t)(8 * at);
	found.sizes = (uint16_t)(8 * sizes);
	return true;
}

static bool have_dims(const void *record, const struct dims *first, const struct dims *second)
{
	struct arguments call;

	return read_arguments(record, &call, 2) && has_dims(&call.values[0], first) &&
	       has_dims(&call.values[1], second);
}

static bool look_inputs_again(const void *record, uint64_t number)
{
	(void)number;
	return have_dims(record, &deep, &column);
}

static bool look_strides(const void *record, uint64_t number)
{
	(void)number;
	return have_dims(record, &turned, &turned);
}

static bool look_many_dims(const void *record, uint64_t number)
{
	(void)number;
	return have_dims(record, &many, &many);
}

/* ---- types and devices ----------------------------------------------------------------------- */

/*
 * Keep the offsets, multiples of align, at which the tensor has this number in so many bytes.
 * Returns how many are left; *last is one.
 */
static uint32_t keep_offsets(struct free_extents *offsets, const struct tensor *tensor,
			     uint64_t number, uint32_t n_bytes, uint32_t align, uint32_t *last)
{
	const uint8_t *bytes = (const uint8_t *)tensor->words;
	uint32_t n = 0;

	if (!offsets->is_begun)
		memset(offsets->bits, 0xff, sizeof(offsets->bits));
	offsets->is_begun = true;
	for (uint32_t i = 0; i < sizeof(tensor->words); i++) {
		uint64_t bit = UINT64_C(1) << i % 64;
		bool is_there = i % align == 0 && i + n_bytes <= 8 * tensor->n &&
				!memcmp(bytes + i, &number, n_bytes);

		if (!is_there)
			offsets->bits[i / 64] &= ~bit;
		if (offsets->bits[i / 64] & bit) {
			*last = i;
			n++;
		}
	}
	return n;
}

static bool narrow_offsets(const void *record, struct free_extents *offsets, uint64_t number,
			   uint32_t n_bytes, uint32_t align, uint16_t *place)
{
	struct arguments call;
	struct tensor tensor = {0};
	uint32_t last, n;

	if (!read_arguments(record, &call, 2) || !read_tensor(&call.values[0], &tensor))
		return false;
	n = keep_offsets(offsets, &tensor, number, n_bytes, align, &last);
	*place = n == 1 ? (uint16_t)last : TORCH_UNKNOWN;
	return n != 0;
}

static bool look_type(const void *record, uint64_t number)
{
	return narrow_offsets(record, &types, number, sizeof(uint16_t), sizeof(uint16_t),
			      &found.type);
}

static bool look_device(const void *record, uint64_t number)
{
	(void)number;
	return narrow_offsets(record, &devices, HOST_DEVICE, HOST_DEVICE_BYTES, 1, &found.device);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/*
 * The word before the inputs, if it has torch's sequence number in both calls, with a node made in
 * between.
 */
static bool look_sequence(const void *record, uint64_t is_second)
{
	int64_t now = torsh_torch_sequence();
	uint64_t word;

	if (now < 0 || found.inputs == TORCH_UNKNOWN ||
	    torch_read_words((uintptr_t)record + found.inputs - sizeof(word), &word, 1) != 1 ||
	    (int64_t)word != now)
		return false;
	if (is_second && now > first_sequence)
		found.sequence = (uint16_t)(found.inputs - sizeof(word));
	first_sequence = now;
	return true;
}

/*
 * The word that is 0 in an operator and in a scope and, in backward, the number of the thread that
 * ran forward, which is this one.
 */
static bool look_forward_thread(const void *record, uint64_t is_backward)
{
	uint64_t words[RECORD_WORDS], number = is_backward ? torsh_torch_thread() : 0;
	uint32_t n = torch_read_words((uintptr_t)record, words, RECORD_WORDS), n_fitting = 0;
	static bool is_begun;

	if ((is_backward && !number) || found.inputs == TORCH_UNKNOWN)
		return false;
	if (!is_begun)
		memset(forward_words, 0xff, sizeof(forward_words));
	is_begun = true;
	for (uint32_t i = 0; i < RECORD_WORDS; i++) {
		uint64_t bit = UINT64_C(1) << i % 64;

		if (i >= n || words[i] != number)
			forward_words[i / 64] &= ~bit;
		if (!(forward_words[i / 64] & bit))
			continue;
		found.forward_thread = (uint16_t)(8 * i);
		n_fitting++;
	}
	if (n_fitting != 1)
		found.forward_thread = TORCH_UNKNOWN;
	return n_fitting != 0;
}

static bool look_integer(const void *record, uint64_t number)
{
	struct arguments call;

	if (!read_arguments(record, &call, 3) || call.values[2].payload != number)
		return false;
	found.tag_int = call.values[2].tag;
	return true;
}

static bool look_real(const void *record, uint64_t number)
{
	static const double half = 0.5;
	struct arguments call;

	(void)number;
	if (!read_arguments(record, &call, 3) ||
	    memcmp(&call.values[2].payload, &half, sizeof(half)))
		return false;
	found.tag_double = call.values[2].tag;
	return true;
}

/* The only offset in a list with two pointers around two matching values. */
static bool find_list(const struct torch_ivalue *value,
		      bool (*fits)(const struct torch_ivalue values[2]))
{
	uint64_t words[LIST_WORDS];
	uint32_t n = torch_is_pointer(value->payload)
			     ? torch_read_words(value->payload, words, LIST_WORDS)
			     : 0,
		 n_fitting = 0;
	struct torch_ivalue values[2];

	for (uint32_t i = 1; i + 1 < n; i++) {
		if (words[i + 1] - words[i] != sizeof(values) ||
		    !torch_read_values(words[i], 2, values) || !fits(values))
			continue;
		found.list = (uint16_t)(8 * i);
		n_fitting++;
	}
	if (n_fitting != 1)
		found.list = TORCH_UNKNOWN;
	return n_fitting == 1;
}

static bool are_two_and_zero(const struct torch_ivalue values[2])
{
	return values[0].tag == found.tag_int && values[1].tag == found.tag_int &&
	       values[0].payload == 2 && values[1].payload == 0;
}

static bool are_plain(const struct torch_ivalue values[2])
{
	return has_dims(&values[0], &plain) && has_dims(&values[1], &plain);
}

/* sum(tensor, (2, 0), keepdim, None): the second call has the other keepdim. */
static bool look_list(const void *record, uint64_t keepdim)
{
	struct arguments call;

	if (found.tag_int == TORCH_NO_TAG || !read_arguments(record, &call, 4) ||
	    (call.values[2].payload & 0xff) != keepdim ||
	    !find_list(&call.values[1], are_two_and_zero))
		return false;
	found.tag_list = call.values[1].tag;
	found.tag_bool = call.values[2].tag;
	found.tag_none = call.values[3].tag;
	return found.tag_list != found.tag_bool && found.tag_none != found.tag_bool;
}

static bool look_tensors(const void *record, uint64_t number)
{
	struct arguments call;
	uint16_t before = found.list;

	(void)number;
	return found.tag_list != TORCH_NO_TAG && read_arguments(record, &call, 2) &&
	       call.values[0].tag == found.tag_list && find_list(&call.values[0], are_plain) &&
	       found.list == before;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static bool look_group(const void *record, uint64_t is_second)
{
	return torsh_torch_group_look(record, is_second != 0);
}

static const struct step steps[] = {
#define STEP(name, operator, what, number) {name, operator, look_##what, number},
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
	static _Atomic int is_begun;
	uintptr_t tensor = (uintptr_t)torsh_objects_find(TENSOR_CLASS);
	uintptr_t undefined = (uintptr_t)torsh_objects_find(UNDEFINED_CLASS);

	if (atomic_exchange(&is_begun, 1))
		return -EALREADY;
	found = (struct torch_layout){
		.inputs = TORCH_UNKNOWN,
		.sequence = TORCH_UNKNOWN,
		.forward_thread = TORCH_UNKNOWN,
		.sizes = TORCH_UNKNOWN,
		.type = TORCH_UNKNOWN,
		.device = TORCH_UNKNOWN,
		.list = TORCH_UNKNOWN,
		.tag_none = TORCH_NO_TAG,
		.tag_tensor = 1, /* in every version; otherwise look_inputs finds nothing */
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
	if (!all_fitted(look_type))
		found.type = TORCH_UNKNOWN;
	if (!all_fitted(look_device))
		found.device = TORCH_UNKNOWN;
	if (!all_fitted(look_sequence))
		found.sequence = TORCH_UNKNOWN;
	if (!all_fitted(look_forward_thread))
		found.forward_thread = TORCH_UNKNOWN;
	if (!all_fitted(look_list) || !all_fitted(look_tensors)) {
		found.list = TORCH_UNKNOWN;
		found.tag_list = found.tag_bool = found.tag_none = TORCH_NO_TAG;
	}
}

bool torsh_torch_calibration_finish(void)
{
	bool has_shapes = all_fitted(look_inputs) && all_fitted(look_inputs_again) &&
			  all_fitted(look_strides) && all_fitted(look_many_dims);

	torsh_torch_is_calibrating = false;
	expected = NULL;
	if (!has_shapes)
		return false;
	drop_doubtful();
	torsh_torch_layout = found;
	/* Pairs with the acquire loads of torsh_torch_is_calibrated. */
	atomic_store_explicit(&torsh_torch_is_calibrated, 1, memory_order_release);
	return true;
}

int torsh_torch_calibration_begin_groups(void)
{
	static _Atomic int is_begun;

	if (!atomic_load_explicit(&torsh_torch_is_calibrated, memory_order_acquire) ||
	    found.tag_list == TORCH_NO_TAG)
		return -ENOENT;
	if (atomic_exchange(&is_begun, 1))
		return -EALREADY;
	torsh_torch_is_calibrating = true;
	return 0;
}

bool torsh_torch_calibration_finish_groups(void)
{
	bool is_known = all_fitted(look_group);

	torsh_torch_is_calibrating = false;
	expected = NULL;
	if (is_known)
		torsh_torch_group_publish();
	return is_known;
}
