/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arguments as texts. They are first read into tokens; a hash of these is the key of the label of
 * an earlier equal call on the thread. Only the first such call formats the text.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "agent/process/text_buffer.h"
#include "agent/producer/key_map.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/torch/operator_events.h"
#include "collectors/torch/torch_number.h"
#include "shim/torch/torch.h"

#define MOST_INPUTS 32u
#define MOST_IN_LIST 32u
#define MOST_DIMS 16u
#define MOST_DEPTH 2u /* of nested lists: each process's part of each tensor */
#define TEXT_SPACE 64u /* of one more piece of text, at most */
#define INPUTS_TEXT_BYTES 1024u /* of all inputs of an operator */

/*
 * Numbers that change with each call (an optimizer's step, an index) would fill the tables: of
 * calls that differ only in these, this many are distinguished; later ones have "_" instead of
 * their numbers.
 */
#define MOST_VARIANTS 64u
#define VARIANT_SLOTS 4096u

static struct key_map known; /* key -> label | flags << 32 */
static _Atomic uint16_t variants[VARIANT_SLOTS];

/*
 * The tokens: for each argument one with its kind in the lowest byte, then its data. A tensor's has
 * its type in bits 16-31, its device in bits 32-47, its dimensions in bits 8-14, and bit 15 if
 * strides follow the sizes.
 */
enum kind {
	KIND_OTHER,
	KIND_NONE,
	KIND_TENSOR,
	KIND_UNDEFINED,
	KIND_INT,
	KIND_DOUBLE,
	KIND_BOOL,
	KIND_LIST,
	KIND_GROUP, /* a process group: its number in the bits above */
};

#define HAS_STRIDES (1u << 15)
#define DEVICE_META 14u

/* ---- reading --------------------------------------------------------------------------------- */

static uint16_t half_at(uintptr_t object, uint16_t offset)
{
	return offset == TORCH_UNKNOWN ? TORCH_UNKNOWN : *(const uint16_t *)(object + offset);
}

/*
 * Copy a tensor's sizes, and return whether its strides are those of a contiguous one. As in torch,
 * a tensor without elements is contiguous.
 */
static inline bool read_sizes(const int64_t *sizes, const int64_t *strides, uint64_t n,
			      uint64_t *to)
{
	int64_t expected = 1;
	bool is_in_order = true;

	for (uint64_t i = n; i-- > 0;) {
		to[i] = (uint64_t)sizes[i];
		is_in_order &= sizes[i] == 1 || strides[i] == expected;
		expected *= sizes[i];
	}
	return is_in_order || expected == 0;
}

/* A view has the memory of its base. */
static void read_storage(struct torch_tokens *tokens, uintptr_t tensor)
{
	const struct torch_layout *at = &torsh_torch_layout;
	uintptr_t storage;
	uint64_t data;

	if (at->storage == TORCH_UNKNOWN)
		return;
	storage = *(const uintptr_t *)(tensor + at->storage);
	data = storage ? *(const uint64_t *)(storage + at->data) : 0;
	if (!data)
		return;
	if (tokens->n_reads == TORCH_INPUT_READS)
		tokens->reads[TORCH_INPUT_READS - 1] = OP_READS_MORE;
	else
		tokens->reads[tokens->n_reads++] = data;
}

/* Of arguments that have no text. */
static void read_storages(struct torch_tokens *tokens, const struct torch_ivalue *values,
			  uint64_t n)
{
	const struct torch_layout *at = &torsh_torch_layout;

	for (uint64_t i = 0; i < n; i++) {
		if (values[i].tag == at->tag_tensor &&
		    *(const uintptr_t *)values[i].payload == at->tensor_class)
			read_storage(tokens, values[i].payload);
	}
}

static void read_tensor(struct torch_tokens *tokens, uintptr_t tensor)
{
	const struct torch_layout *at = &torsh_torch_layout;
	const uint64_t *shape = (const uint64_t *)(tensor + at->sizes);
	const int64_t *sizes = (const int64_t *)(shape + 1), *strides = sizes + TORCH_INLINE_DIMS;
	uint64_t n = shape[0], device = half_at(tensor, at->device), *head = &tokens->at[tokens->n];
	bool has_strides;

	if (__builtin_expect(n > TORCH_INLINE_DIMS, 0)) {
		sizes = *(const int64_t *const *)sizes;
		strides = sizes + n;
	}
	/* A fake tensor with a symbolic size has this instead. */
	if (n > MOST_DIMS || (n == 1 && sizes[0] == 0 && (device & 0xff) == DEVICE_META)) {
		tokens->at[tokens->n++] = KIND_OTHER;
		return;
	}
	read_storage(tokens, tensor);
	has_strides = !read_sizes(sizes, strides, n, head + 1);
	*head = KIND_TENSOR | n << 8 | (has_strides ? HAS_STRIDES : 0) |
		(uint64_t)half_at(tensor, at->type) << 16 | device << 32;
	tokens->n += 1 + (uint32_t)n;
	for (uint64_t i = 0; has_strides && i < n; i++)
		tokens->at[tokens->n++] = (uint64_t)strides[i];
}

static void read_values(struct torch_tokens *tokens, const struct torch_ivalue *values, uint64_t n,
			uint32_t depth);

/* depth: the number of enclosing lists. */
static void read_list(struct torch_tokens *tokens, uintptr_t list, uint32_t depth)
{
	const struct torch_ivalue *const *ends =
		(const struct torch_ivalue *const *)(list + torsh_torch_layout.list);
	uint64_t n = (uint64_t)(ends[1] - ends[0]), n_kept = n < MOST_IN_LIST ? n : MOST_IN_LIST;

	if (n_kept < n)
		tokens->flags |= OP_INPUTS_CUT;
	tokens->at[tokens->n++] = KIND_LIST | n_kept << 8;
	read_values(tokens, ends[0], n_kept, depth + 1);
	read_storages(tokens, ends[0] + n_kept, n - n_kept);
}

/* Only objects that are registered groups are read. */
static uint64_t read_object(uintptr_t object)
{
	const struct torch_ivalue *const *slots =
		(const struct torch_ivalue *const *)(object + torsh_torch_group_layout.slots);
	uint64_t number =
		slots[1] - slots[0] == 1 ? torsh_torch_group_number(slots[0]->payload) : 0;

	return number ? KIND_GROUP | number << 8 : KIND_OTHER;
}

static uint64_t read_other(const struct torch_ivalue *value)
{
	const struct torch_layout *at = &torsh_torch_layout;

	if (value->tag == at->tag_bool)
		return KIND_BOOL | (value->payload & 1) << 8;
	if (value->tag == at->tag_none)
		return KIND_NONE;
	/* Pairs with the release in torsh_torch_calibration_finish_groups. */
	if (atomic_load_explicit(&torsh_torch_has_groups, memory_order_acquire) &&
	    value->tag == torsh_torch_group_layout.tag)
		return read_object(value->payload);
	return KIND_OTHER;
}

static void read_value(struct torch_tokens *tokens, const struct torch_ivalue *value,
		       uint32_t depth)
{
	const struct torch_layout *at = &torsh_torch_layout;
	uint64_t *next = &tokens->at[tokens->n];
	uintptr_t class;

	if (value->tag == at->tag_tensor) {
		class = *(const uintptr_t *)value->payload;
		if (class == at->tensor_class) {
			read_tensor(tokens, value->payload);
			return;
		}
		next[0] = class == at->undefined_class ? KIND_UNDEFINED : KIND_OTHER;
		tokens->n++;
	} else if (value->tag == at->tag_int || value->tag == at->tag_double) {
		next[0] = value->tag == at->tag_int ? KIND_INT : KIND_DOUBLE;
		next[1] = value->payload;
		tokens->n += 2;
	} else if (value->tag == at->tag_list && depth < MOST_DEPTH) {
		read_list(tokens, value->payload, depth);
	} else {
		next[0] = read_other(value);
		tokens->n++;
	}
}

/* Room is kept for the largest value, including a list's first token and its tensors. */
static void read_values(struct torch_tokens *tokens, const struct torch_ivalue *values, uint64_t n,
			uint32_t depth)
{
	for (uint64_t i = 0; i < n; i++) {
		if (tokens->n + 2 + 2 * MOST_DIMS > TORCH_INPUT_TOKENS) {
			tokens->flags |= OP_INPUTS_CUT;
			tokens->at[tokens->n < TORCH_INPUT_TOKENS ? tokens->n++
								  : TORCH_INPUT_TOKENS - 1] =
				KIND_OTHER;
			read_storages(tokens, &values[i], 1);
			continue;
		}
		read_value(tokens, &values[i], depth);
	}
}

/* ---- keys ------------------------------------------------------------------------------------ */

static uint64_t key_of(const struct torch_tokens *tokens)
{
	uint64_t a = tokens->n + 1, b = tokens->flags;
	uint32_t i = 0;

	for (; i + 1 < tokens->n; i += 2) {
		a = (a ^ tokens->at[i]) * UINT64_C(0x9e3779b97f4a7c15);
		b = (b ^ tokens->at[i + 1]) * UINT64_C(0xc2b2ae3d27d4eb4f);
		a ^= a >> 32;
		b ^= b >> 29;
	}
	if (i < tokens->n)
		a = (a ^ tokens->at[i]) * UINT64_C(0x165667b19e3779f9);
	return torsh_key_map_mix(a, b);
}

/* The number of tokens of the argument that begins with this one; for a list only the first. */
static uint32_t length_at(uint64_t token)
{
	switch (token & 0xff) {
	case KIND_TENSOR:
		return 1 + (uint32_t)(token >> 8 & 0x7f) * (token & HAS_STRIDES ? 2 : 1);
	case KIND_INT:
	case KIND_DOUBLE:
		return 2;
	default:
		return 1;
	}
}

/*
 * Remove the numbers that are arguments themselves; returns whether there were any. Numbers in
 * lists stay.
 */
static bool drop_numbers(const struct torch_tokens *tokens, struct torch_tokens *without)
{
	bool has_any = false;
	uint32_t in_list = 0; /* values left in the enclosing lists */

	without->n = 0;
	without->flags = tokens->flags;
	for (uint32_t i = 0; i < tokens->n;) {
		uint32_t kind = tokens->at[i] & 0xff, n = length_at(tokens->at[i]);

		if ((kind == KIND_INT || kind == KIND_DOUBLE) && !in_list) {
			without->at[without->n++] = KIND_OTHER;
			has_any = true;
		} else {
			memcpy(&without->at[without->n], &tokens->at[i], n * sizeof(tokens->at[0]));
			without->n += n;
		}
		if (in_list)
			in_list--;
		if (kind == KIND_LIST)
			in_list += (uint32_t)(tokens->at[i] >> 8);
		i += n;
	}
	return has_any;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* In the order of c10::ScalarType, which is never changed. */
static const char *const type_names[] = {
	"uint8",
	"int8",
	"int16",
	"int32",
	"int64",
	"float16",
	"float32",
	"float64",
	"complex32",
	"complex64",
	"complex128",
	"bool",
	"qint8",
	"quint8",
	"qint32",
	"bfloat16",
	"quint4x2",
	"quint2x4",
	"bits1x8",
	"bits2x4",
	"bits4x2",
	"bits8",
	"bits16",
	"float8_e5m2",
	"float8_e4m3fn",
	"float8_e5m2fnuz",
	"float8_e4m3fnuz",
	"uint16",
	"uint32",
	"uint64",
	"uint1",
	"uint2",
	"uint3",
	"uint4",
	"uint5",
	"uint6",
	"uint7",
	"int1",
	"int2",
	"int3",
	"int4",
	"int5",
	"int6",
	"int7",
	"float8_e8m0fnu",
	"float4_e2m1fn_x2",
};

/* In the order of c10::DeviceType. */
static const char *const device_names[] = {
	"cpu",	"cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
	"fpga", "maia", "xla",	  "vulkan", "metal",  "xpu",   "mps",
	"meta", "hpu",	"ve",	  "lazy",   "ipu",    "mtia",  "privateuseone",
};

#define N_NAMES(names) (sizeof(names) / sizeof(*(names)))

static void put_dims(struct text *text, char open, const uint64_t *dims, uint32_t n, char close)
{
	torsh_text_put_bytes(text, &open, 1);
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			torsh_text_put(text, ",");
		torsh_torch_put_integer(text, (int64_t)dims[i]);
	}
	torsh_text_put_bytes(text, &close, 1);
}

static void put_device(struct text *text, uint32_t device)
{
	uint32_t type = device & 0xff;
	int8_t index = (int8_t)(device >> 8);

	if (type == 0)
		return;
	torsh_text_put(text, "@");
	torsh_text_put(text, type < N_NAMES(device_names) ? device_names[type] : "?");
	if (index >= 0) {
		torsh_text_put(text, ":");
		torsh_torch_put_integer(text, index);
	}
}

static void put_tensor(struct text *text, const uint64_t *tokens)
{
	uint32_t n = tokens[0] >> 8 & 0x7f, type = tokens[0] >> 16 & 0xffff;

	torsh_text_put(text, type < N_NAMES(type_names) ? type_names[type] : "dtype?");
	put_dims(text, '[', tokens + 1, n, ']');
	if (tokens[0] & HAS_STRIDES)
		put_dims(text, '(', tokens + 1 + n, n, ')');
	put_device(text, tokens[0] >> 32 & 0xffff);
}

static void put_value(struct text *text, const uint64_t *tokens)
{
	double real;

	switch (tokens[0] & 0xff) {
	case KIND_NONE:
		torsh_text_put(text, "-");
		break;
	case KIND_TENSOR:
		put_tensor(text, tokens);
		break;
	case KIND_UNDEFINED:
		torsh_text_put(text, "?");
		break;
	case KIND_INT:
		torsh_torch_put_integer(text, (int64_t)tokens[1]);
		break;
	case KIND_DOUBLE:
		memcpy(&real, &tokens[1], sizeof(real));
		torsh_torch_put_double(text, real);
		break;
	case KIND_GROUP:
		torsh_text_put(text, "group#");
		torsh_torch_put_integer(text, (int64_t)(tokens[0] >> 8));
		break;
	case KIND_BOOL:
		torsh_text_put(text, tokens[0] >> 8 ? "true" : "false");
		break;
	default:
		torsh_text_put(text, "_");
	}
}

static bool put_next(struct text *text, const struct torch_tokens *tokens, uint32_t *i,
		     const char *before);

static bool put_list(struct text *text, const struct torch_tokens *tokens, uint32_t *i)
{
	uint32_t n = (uint32_t)(tokens->at[(*i)++] >> 8);
	bool has_room = true;

	torsh_text_put(text, "{");
	for (uint32_t k = 0; k < n && has_room; k++)
		has_room = put_next(text, tokens, i, k ? "," : "");
	torsh_text_put(text, "}");
	return has_room;
}

/* Put the value at token *i, which advances past it. Returns false without room for all of it. */
static bool put_next(struct text *text, const struct torch_tokens *tokens, uint32_t *i,
		     const char *before)
{
	size_t length = text->length;

	if (*i >= tokens->n || text->length + TEXT_SPACE > text->capacity)
		return false;
	torsh_text_put(text, before);
	if ((tokens->at[*i] & 0xff) == KIND_LIST)
		return put_list(text, tokens, i);
	put_value(text, &tokens->at[*i]);
	*i += length_at(tokens->at[*i]);
	if (!text->is_cut)
		return true;
	text->length = length;
	text->bytes[length] = '\0';
	return false;
}

/* A text without room for the rest ends with the last argument that fits. */
static void put_values(struct text *text, const struct torch_tokens *tokens, uint32_t *flags)
{
	uint32_t i = 0;

	while (i < tokens->n) {
		if (!put_next(text, tokens, &i, i ? ";" : "")) {
			*flags |= OP_INPUTS_CUT;
			return;
		}
	}
}

static uint64_t make_label(const struct torch_tokens *tokens)
{
	struct text text = torsh_text_map(INPUTS_TEXT_BYTES);
	uint32_t flags = tokens->flags, label;

	put_values(&text, tokens, &flags);
	label = torsh_label(text.bytes, text.length);
	torsh_text_unmap(&text);
	return (uint64_t)flags << 32 | label;
}

/* The label and flags of these tokens, created if needed. */
static uint64_t look_up(struct torch_inputs *inputs, uint64_t key)
{
	const struct torch_tokens *tokens = &inputs->tokens;
	struct torch_tokens *without = &inputs->without;
	uint64_t value = torsh_key_map_find(&known, key);
	_Atomic uint16_t *count;

	if (value)
		return value;
	if (drop_numbers(tokens, without)) {
		uint64_t alike = key_of(without);

		count = &variants[(alike >> 20) % VARIANT_SLOTS];
		if (atomic_load_explicit(count, memory_order_relaxed) >= MOST_VARIANTS) {
			value = torsh_key_map_find(&known, alike);
			return value ? value
				     : torsh_key_map_add(&known, alike, make_label(without));
		}
		atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
	}
	value = make_label(tokens);
	return (uint32_t)value ? torsh_key_map_add(&known, key, value) : 0;
}

/* The slot of these tokens, filled if needed. Each key has two, in one line of the cache. */
static const struct torch_input_slot *slot_of(struct torch_inputs *inputs, uint64_t key)
{
	uint32_t at = (uint32_t)(key >> 40) % TORCH_INPUT_SLOTS;
	struct torch_input_slot *slot = &inputs->slots[at], *other = &inputs->slots[at ^ 1];
	uint64_t value;

	if (__builtin_expect(slot->key == key, 1))
		return slot;
	if (other->key == key)
		return other;
	if (slot->key && !other->key)
		slot = other;
	value = look_up(inputs, key);
	*slot = (struct torch_input_slot){
		.key = key, .label = (uint32_t)value, .flags = (uint32_t)(value >> 32)};
	return slot;
}

static uint32_t label_of_none(struct torch_inputs *inputs)
{
	if (!inputs->none)
		inputs->none = torsh_label("()", 2);
	return inputs->none;
}

uint32_t torsh_torch_inputs(struct torch_inputs *inputs, const void *record, bool may_be_none,
			    uint32_t *flags)
{
	const struct {
		const struct torch_ivalue *values;
		uint64_t n;
	} * arguments;
	struct torch_tokens *tokens = &inputs->tokens;
	const struct torch_input_slot *slot;
	uint64_t key;

	tokens->n_reads = 0;
	/* Pairs with the release in torsh_torch_calibration_finish. */
	if (!atomic_load_explicit(&torsh_torch_is_calibrated, memory_order_acquire))
		return 0;
	arguments = (const void *)((uintptr_t)record + torsh_torch_layout.inputs);
	if (!arguments->n)
		return may_be_none ? label_of_none(inputs) : 0;
	tokens->n = 0;
	tokens->flags = arguments->n > MOST_INPUTS ? OP_INPUTS_CUT : 0;
	read_values(tokens, arguments->values,
		    arguments->n < MOST_INPUTS ? arguments->n : MOST_INPUTS, 0);
	if (arguments->n > MOST_INPUTS)
		read_storages(tokens, arguments->values + MOST_INPUTS, arguments->n - MOST_INPUTS);
	key = key_of(tokens);
	slot = slot_of(inputs, key);
	*flags |= slot->flags;
	return slot->label;
}
