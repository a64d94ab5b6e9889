/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Primitives of oneDNN where its functions are exported: what they are is queried from the
 * primitive's descriptor, as dnnl.h and dnnl_types.h of versions 2 and 3 have it.
 */
#include <string.h>

#include "collectors/blas/libraries/library_call.h"

#define PRIMITIVE_KIND 2
#define IMPLEMENTATION 8
#define PROPAGATION_KIND 11
#define ALGORITHM_KIND 20 /* of version 3 */
#define N_DIMENSIONS 256 /* of a descriptor of memory, in version 3 */
#define DIMENSIONS 257
#define DATA_TYPE 258
#define RANK 12

typedef int get_descriptor(const void *primitive, const void **descriptor);
typedef int query_descriptor(const void *descriptor, int what, int index, void *result);
typedef const void *query_memory(const void *descriptor, int what, int index);
typedef int query_memory_field(const void *memory, int what, void *result);

/* dnnl_memory_desc_t of version 2, which has no function for these. */
struct memory {
	int n;
	int64_t sizes[RANK];
	int type;
};

struct queries {
	const void *descriptor;
	query_descriptor *query;
	query_memory *memory;
	query_memory_field *field; /* NULL: version 2 */
};

static bool prepare(struct queries *queries, const struct blas_frame *frame)
{
	struct blas_slot *slot = frame->slot;
	get_descriptor *get =
		(get_descriptor *)torsh_library_query(slot, 0, "dnnl_primitive_get_primitive_desc");

	queries->query =
		(query_descriptor *)torsh_library_query(slot, 1, "dnnl_primitive_desc_query");
	queries->memory =
		(query_memory *)torsh_library_query(slot, 2, "dnnl_primitive_desc_query_md");
	queries->field =
		(query_memory_field *)torsh_library_query(slot, 3, "dnnl_memory_desc_query");
	return get && queries->query && queries->memory &&
	       !get((const void *)library_argument(frame, 0), &queries->descriptor);
}

static bool read_memory(const struct queries *queries, int what, struct memory *memory)
{
	const void *given = queries->memory(queries->descriptor, what, 0);
	const int64_t *sizes;

	if (!given)
		return false;
	if (!queries->field) {
		memcpy(memory, given, sizeof(*memory));
		return memory->n > 0 && memory->n <= RANK;
	}
	if (queries->field(given, N_DIMENSIONS, &memory->n) || memory->n < 1 || memory->n > RANK ||
	    queries->field(given, DIMENSIONS, &sizes) ||
	    queries->field(given, DATA_TYPE, &memory->type))
		return false;
	memcpy(memory->sizes, sizes, (size_t)memory->n * sizeof(*sizes));
	return true;
}

/* dnnl_data_type_t: f16, bf16, f32, s32, s8, u8, f64, and of 8 bits f8_e5m2 and f8_e4m3. */
static uint32_t letter_of(int type)
{
	static const char letters[] = " hbsjiud fe";

	return type > 0 && type < (int)sizeof(letters) - 1 && letters[type] != ' '
		       ? (uint8_t)letters[type]
		       : 0;
}

/* What is read, the weights and what is written, or their gradients, separated by colons. */
static void put_memories(struct library_call *call, const struct queries *queries)
{
	static const uint8_t kinds[][2] = {{129, 130}, {131, 132}, {133, 134}};
	struct memory memory;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!read_memory(queries, kinds[i][0], &memory) &&
		    !read_memory(queries, kinds[i][1], &memory))
			continue;
		for (int d = 0; d < memory.n; d++) {
			if (memory.sizes[d] < 0) /* known only at run time */
				torsh_text_put(&call->shape, d ? "x?" : "?");
			else
				torsh_library_put_size(call, (uint64_t)memory.sizes[d],
						       d ? 'x' : ':');
		}
		if (!call->type)
			call->type = letter_of(memory.type);
	}
}

typedef const char *to_text(int kind);

/* The library's own word for a kind of the descriptor; NULL: it has none. i: of the query. */
static const char *word_of(const struct queries *queries, int what, struct blas_slot *slot,
			   uint32_t i, const char *query)
{
	to_text *text = (to_text *)torsh_library_query(slot, i, query);
	int kind = 0;

	return text && !queries->query(queries->descriptor, what, 0, &kind) && kind ? text(kind)
										    : NULL;
}

static void put_word(struct library_call *call, const char *word)
{
	if (!word || !*word || !strcmp(word, "undef"))
		return;
	if (call->details.length)
		torsh_text_put(&call->details, ", ");
	torsh_text_put(&call->details, word);
}

void torsh_library_read_dnnl(struct library_call *call, const struct blas_frame *frame)
{
	struct blas_slot *slot = frame->slot;
	const char *kind, *implementation = NULL;
	struct queries queries;

	if (!prepare(&queries, frame))
		return;
	kind = word_of(&queries, PRIMITIVE_KIND, slot, 4, "dnnl_prim_kind2str");
	call->routine = kind ? kind : call->routine;
	put_memories(call, &queries);
	if (!queries.query(queries.descriptor, IMPLEMENTATION, 0, &implementation))
		put_word(call, implementation);
	put_word(call, word_of(&queries, PROPAGATION_KIND, slot, 5, "dnnl_prop_kind2str"));
	if (queries.field)
		put_word(call, word_of(&queries, ALGORITHM_KIND, slot, 6, "dnnl_alg_kind2str"));
}
