/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/torch/torch_search.h"

#include <string.h>

#include "shim/torch/torch_group.h"
#include "shim/torch/torch_words.h"

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

struct torch_layout torsh_torch_candidate;

/* Offsets in a TensorImpl that have matched so far, a bit for each byte. */
struct free_extents {
	uint64_t bits[TENSOR_WORDS * 8 / 64];
	bool is_begun;
};
static struct free_extents types, devices;

/* Words of a RecordFunction that have matched so far, a bit for each. */
static uint64_t forward_words[(RECORD_WORDS + 63) / 64];
static int64_t first_sequence;

/* ---- arguments ------------------------------------------------------------------------------- */

struct arguments {
	struct torch_ivalue values[4];
	uint32_t n;
};

/* The arguments of a call with n of them, if their offset has been torsh_torch_candidate. */
static bool read_arguments(const void *record, struct arguments *arguments, uint32_t n)
{
	uint64_t inputs[2] = {0};

	arguments->n = n;
	return torsh_torch_candidate.inputs != TORCH_UNKNOWN &&
	       torch_read_words((uintptr_t)record + torsh_torch_candidate.inputs, inputs, 2) == 2 &&
	       inputs[1] == n && torch_read_values(inputs[0], n, arguments->values);
}

struct tensor {
	uint64_t words[TENSOR_WORDS];
	uint32_t n;
};

static bool read_tensor(const struct torch_ivalue *value, struct tensor *tensor)
{
	tensor->n = 0;
	if (value->tag != torsh_torch_candidate.tag_tensor || !torch_is_pointer(value->payload))
		return false;
	tensor->n = torch_read_words(value->payload, tensor->words, TENSOR_WORDS);
	return tensor->n && tensor->words[0] == torsh_torch_candidate.tensor_class;
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

	return torsh_torch_candidate.sizes != TORCH_UNKNOWN && read_tensor(value, &tensor) &&
	       has_dims_at(&tensor, torsh_torch_candidate.sizes / 8, dims);
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

bool torsh_torch_look_inputs(const void *record, uint64_t number)
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
	torsh_torch_candidate.inputs = (uint16_t)(8 * at);
	torsh_torch_candidate.sizes = (uint16_t)(8 * sizes);
	return true;
}

static bool have_dims(const void *record, const struct dims *first, const struct dims *second)
{
	struct arguments call;

	return read_arguments(record, &call, 2) && has_dims(&call.values[0], first) &&
	       has_dims(&call.values[1], second);
}

bool torsh_torch_look_inputs_again(const void *record, uint64_t number)
{
	(void)number;
	return have_dims(record, &deep, &column);
}

bool torsh_torch_look_strides(const void *record, uint64_t number)
{
	(void)number;
	return have_dims(record, &turned, &turned);
}

bool torsh_torch_look_many_dims(const void *record, uint64_t number)
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

/* ---- storages -------------------------------------------------------------------------------- */

#define STORAGE_WORDS 16u
/* Follows the address in c10::DataPtr, before the storage's bytes: context, its end, device. */
#define DATA_PTR_WORDS 4u

/* Whether that word leads to a storage of so many bytes; *data is the word of their address. */
static bool is_storage(uint64_t word, uint64_t n_bytes, uint32_t *data)
{
	uint64_t words[STORAGE_WORDS];
	uint32_t n = torch_is_pointer(word) ? torch_read_words(word, words, STORAGE_WORDS) : 0;

	for (uint32_t i = 1; i + DATA_PTR_WORDS < n; i++) {
		*data = i;
		if (words[i + DATA_PTR_WORDS] == n_bytes && torch_is_pointer(words[i]))
			return true;
	}
	return false;
}

/* float32 tensors of 91 and 17 elements, then of 53 and 29; their memory is the whole storage. */
bool torsh_torch_look_storage(const void *record, uint64_t is_second)
{
	static const uint64_t bytes[2][2] = {{364, 68}, {212, 116}};
	/* Only one thread calibrates: this is too much for a small stack. */
	static struct tensor tensors[2];
	struct arguments call;
	uint32_t n = 0, storage = 0, data = 0;

	if (!read_arguments(record, &call, 2) || !read_tensor(&call.values[0], &tensors[0]) ||
	    !read_tensor(&call.values[1], &tensors[1]))
		return false;
	for (uint32_t i = 1; i < tensors[0].n && i < tensors[1].n; i++) {
		uint32_t first, second;

		if (is_storage(tensors[0].words[i], bytes[is_second][0], &first) &&
		    is_storage(tensors[1].words[i], bytes[is_second][1], &second) &&
		    first == second) {
			storage = i;
			data = first;
			n++;
		}
	}
	if (n != 1 || (is_second && (torsh_torch_candidate.storage != 8 * storage ||
				     torsh_torch_candidate.data != 8 * data)))
		return false;
	torsh_torch_candidate.storage = (uint16_t)(8 * storage);
	torsh_torch_candidate.data = (uint16_t)(8 * data);
	return true;
}

bool torsh_torch_look_type(const void *record, uint64_t number)
{
	return narrow_offsets(record, &types, number, sizeof(uint16_t), sizeof(uint16_t),
			      &torsh_torch_candidate.type);
}

bool torsh_torch_look_device(const void *record, uint64_t number)
{
	(void)number;
	return narrow_offsets(record, &devices, HOST_DEVICE, HOST_DEVICE_BYTES, 1,
			      &torsh_torch_candidate.device);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/*
 * The word before the inputs, if it has torch's sequence number in both calls, with a node made in
 * between.
 */
bool torsh_torch_look_sequence(const void *record, uint64_t is_second)
{
	int64_t now = torsh_torch_sequence();
	uint64_t word;

	if (now < 0 || torsh_torch_candidate.inputs == TORCH_UNKNOWN ||
	    torch_read_words((uintptr_t)record + torsh_torch_candidate.inputs - sizeof(word), &word,
			     1) != 1 ||
	    (int64_t)word != now)
		return false;
	if (is_second && now > first_sequence)
		torsh_torch_candidate.sequence =
			(uint16_t)(torsh_torch_candidate.inputs - sizeof(word));
	first_sequence = now;
	return true;
}

/*
 * The word that is 0 in an operator and in a scope and, in backward, the number of the thread that
 * ran forward, which is this one.
 */
bool torsh_torch_look_forward_thread(const void *record, uint64_t is_backward)
{
	uint64_t words[RECORD_WORDS], number = is_backward ? torsh_torch_thread() : 0;
	uint32_t n = torch_read_words((uintptr_t)record, words, RECORD_WORDS), n_fitting = 0;
	static bool is_begun;

	if ((is_backward && !number) || torsh_torch_candidate.inputs == TORCH_UNKNOWN)
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
		torsh_torch_candidate.forward_thread = (uint16_t)(8 * i);
		n_fitting++;
	}
	if (n_fitting != 1)
		torsh_torch_candidate.forward_thread = TORCH_UNKNOWN;
	return n_fitting != 0;
}

bool torsh_torch_look_integer(const void *record, uint64_t number)
{
	struct arguments call;

	if (!read_arguments(record, &call, 3) || call.values[2].payload != number)
		return false;
	torsh_torch_candidate.tag_int = call.values[2].tag;
	return true;
}

bool torsh_torch_look_real(const void *record, uint64_t number)
{
	static const double half = 0.5;
	struct arguments call;

	(void)number;
	if (!read_arguments(record, &call, 3) ||
	    memcmp(&call.values[2].payload, &half, sizeof(half)))
		return false;
	torsh_torch_candidate.tag_double = call.values[2].tag;
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
		torsh_torch_candidate.list = (uint16_t)(8 * i);
		n_fitting++;
	}
	if (n_fitting != 1)
		torsh_torch_candidate.list = TORCH_UNKNOWN;
	return n_fitting == 1;
}

static bool are_two_and_zero(const struct torch_ivalue values[2])
{
	return values[0].tag == torsh_torch_candidate.tag_int &&
	       values[1].tag == torsh_torch_candidate.tag_int && values[0].payload == 2 &&
	       values[1].payload == 0;
}

static bool are_plain(const struct torch_ivalue values[2])
{
	return has_dims(&values[0], &plain) && has_dims(&values[1], &plain);
}

/* sum(tensor, (2, 0), keepdim, None): the second call has the other keepdim. */
bool torsh_torch_look_list(const void *record, uint64_t keepdim)
{
	struct arguments call;

	if (torsh_torch_candidate.tag_int == TORCH_NO_TAG || !read_arguments(record, &call, 4) ||
	    (call.values[2].payload & 0xff) != keepdim ||
	    !find_list(&call.values[1], are_two_and_zero))
		return false;
	torsh_torch_candidate.tag_list = call.values[1].tag;
	torsh_torch_candidate.tag_bool = call.values[2].tag;
	torsh_torch_candidate.tag_none = call.values[3].tag;
	return torsh_torch_candidate.tag_list != torsh_torch_candidate.tag_bool &&
	       torsh_torch_candidate.tag_none != torsh_torch_candidate.tag_bool;
}

bool torsh_torch_look_tensors(const void *record, uint64_t number)
{
	struct arguments call;
	uint16_t before = torsh_torch_candidate.list;

	(void)number;
	return torsh_torch_candidate.tag_list != TORCH_NO_TAG && read_arguments(record, &call, 2) &&
	       call.values[0].tag == torsh_torch_candidate.tag_list &&
	       find_list(&call.values[0], are_plain) && torsh_torch_candidate.list == before;
}

/* ---- process groups -------------------------------------------------------------------------- */

bool torsh_torch_look_group(const void *record, uint64_t is_second)
{
	return torsh_torch_group_look(record, is_second != 0);
}
