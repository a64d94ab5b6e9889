/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* FLOPs of spans: computed once for each pair of name and inputs. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/die.h"
#include "tools/ops/inductor/cpp_sources.h"
#include "tools/ops/inductor/packed_weights.h"
#include "tools/ops/operators.h"

/* The cached pairs of one process. */
struct process_pairs {
	const struct recorded_process *process;
	struct key_index index; /* by both labels: index of the cached FLOPs */
};

/* The C++ kernels in a directory of Inductor's cache. */
struct kernel_folder {
	const char *path;
	struct cpp_sources *sources;
};

struct flops_book {
	bool is_off;
	const struct prepass *prepass;
	struct kernel_folder *folders;
	size_t n_folders, folders_room;
	struct packed_weights *packed;
	struct process_pairs *pairs;
	size_t n_pairs, pairs_room;
	struct flops *worth;
	size_t n_worth, worth_room;
	struct inputs inputs;
};

struct flops_book *torsh_flops_book_create(const struct recording *recording,
					   const struct prepass *prepass)
{
	struct flops_book *book = torsh_need(calloc(1, sizeof(*book)));

	book->is_off = recording->without_flops;
	book->prepass = prepass;
	book->packed = torsh_packed_weights_create();
	return book;
}

void torsh_flops_book_destroy(struct flops_book *book)
{
	for (size_t i = 0; i < book->n_pairs; i++)
		torsh_key_index_destroy(&book->pairs[i].index);
	for (size_t i = 0; i < book->n_folders; i++)
		torsh_cpp_sources_destroy(book->folders[i].sources);
	free(book->folders);
	torsh_packed_weights_destroy(book->packed);
	free(book->pairs);
	free(book->worth);
	free(book);
}

static struct process_pairs *find_pairs(struct flops_book *book,
					const struct recorded_process *process)
{
	struct process_pairs *pairs;

	for (size_t i = 0; i < book->n_pairs; i++) {
		if (book->pairs[i].process == process)
			return &book->pairs[i];
	}
	book->pairs = torsh_array_reserve(book->pairs, book->n_pairs, &book->pairs_room,
					  sizeof(*book->pairs));
	pairs = &book->pairs[book->n_pairs++];
	pairs->process = process;
	torsh_key_index_create(&pairs->index);
	return pairs;
}

/* Returns the C++ kernels in the process's cache of Inductor; NULL: the directory is not known. */
static const struct cpp_sources *find_sources(struct flops_book *book,
					      const struct recorded_process *process)
{
	const char *path = torsh_process_attributes_find(
		&torsh_prepass_of(book->prepass, process)->facts, "inductor_cache");
	struct kernel_folder *folder;

	if (!path)
		return NULL;
	for (size_t i = 0; i < book->n_folders; i++) {
		if (strcmp(book->folders[i].path, path) == 0)
			return book->folders[i].sources;
	}
	book->folders = torsh_array_reserve(book->folders, book->n_folders, &book->folders_room,
					    sizeof(*book->folders));
	folder = &book->folders[book->n_folders++];
	*folder = (struct kernel_folder){path, torsh_cpp_sources_read(path)};
	return folder->sources;
}

/* A kernel that Inductor generated for the CPU: its source says what a call computes. */
static struct flops compute_kernel(struct flops_book *book, const struct span *span)
{
	const struct cpp_sources *sources = find_sources(book, span->process);
	struct cpp_kernel kernel = {.reason = "the directory of Inductor's cache was not recorded"};
	struct flops flops = {.status = FLOPS_NO_FORMULA};

	if (sources)
		kernel = torsh_cpp_sources_find(sources, span->process, torsh_span_name(span));
	flops.reason = kernel.reason ? kernel.reason : kernel.counter_reason;
	if (!flops.reason) {
		flops.status = FLOPS_COUNTED;
		flops.counter = kernel.counter;
		flops.all = kernel.all;
	}
	return flops;
}

/* Not if inputs were left out of the recording: a sum would be too small. */
static struct flops compute(struct flops_book *book, const struct span *span)
{
	const char *name = torsh_span_name(span);
	const char *text = torsh_timeline_label(span->process, span->inputs);
	struct flops flops;
	char *filled;

	if (torsh_is_cpp_kernel(name))
		return compute_kernel(book, span);
	if (torsh_packs_weights(name))
		torsh_packed_weights_add(book->packed, span->process, name, text);
	torsh_inputs_parse(&book->inputs, text);
	flops = torsh_flops_of(name, &book->inputs);
	filled = flops.is_packed && text
			 ? torsh_packed_weights_fill(book->packed, span->process, name, text)
			 : NULL;
	if (filled) {
		torsh_inputs_parse(&book->inputs, filled);
		flops = torsh_flops_of(name, &book->inputs);
		flops.is_packed = true;
	}
	free(filled);
	return flops;
}

static struct flops find_worth(struct flops_book *book, const struct span *span)
{
	struct process_pairs *pairs = find_pairs(book, span->process);
	/* No label reaches 2^32 - 1: the key is not 0. */
	uint64_t key = ((uint64_t)span->name << 32 | span->inputs) + 1;
	struct key_slot *slot = torsh_key_index_find(&pairs->index, key);

	if (!slot->key) {
		book->worth = torsh_array_reserve(book->worth, book->n_worth, &book->worth_room,
						  sizeof(*book->worth));
		book->worth[book->n_worth] = compute(book, span);
		torsh_key_index_fill(&pairs->index, slot, key, (uint32_t)book->n_worth++);
		return book->worth[book->n_worth - 1];
	}
	/* Others may have been packed since. */
	if (book->worth[slot->number].is_packed)
		book->worth[slot->number] = compute(book, span);
	return book->worth[slot->number];
}

static void add_flops(struct span *span, const struct flops *flops)
{
	span->flops += flops->counter;
	span->flops_all += flops->all;
	span->has_counted = true;
}

void torsh_flops_book_begin(struct flops_book *book, struct span *span)
{
	struct flops flops;

	if (book->is_off || span->scope == OP_USER)
		return;
	flops = find_worth(book, span);
	span->is_traced = flops.status == FLOPS_NO_DATA;
	span->is_counted =
		span->is_counted || (flops.status == FLOPS_COUNTED && flops.place == FLOPS_HERE);
}

/*
 * A library's operator is counted by itself, except for its memory traffic, unless an operator
 * inside has FLOPs of its own.
 */
static bool is_made_of_others(const struct span *span)
{
	return span->scope == OP_BACKWARD || span->has_counted || span->has_unknown ||
	       span->is_traced || (span->n_inner && !strstr(torsh_span_name(span), "::"));
}

/*
 * FlopCounterMode sees operators that are called above the dispatcher: these call others below it,
 * whose products it does not count.
 */
static bool is_opaque(const char *name)
{
	static const char *const names[] = {
		"aten::_trilinear",
		"aten::_native_multi_head_attention",
		"aten::_transformer_encoder_layer_fwd",
		"aten::_euclidean_dist",
		"aten::affine_grid_generator",
		"aten::linalg_matrix_exp",
		"aten::linalg_pinv",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

static bool is_in_opaque(const struct span *span)
{
	const struct span *outer = torsh_span_outer_operator(span);

	while (outer && !is_opaque(torsh_span_name(outer)))
		outer = torsh_span_outer_operator(outer);
	return outer;
}

struct flops torsh_flops_book_end(struct flops_book *book, struct span *span)
{
	const struct span *outer = torsh_span_outer_operator(span);
	struct flops flops = {.status = FLOPS_NONE};

	if (book->is_off)
		return (struct flops){.status = FLOPS_NO_FORMULA};
	if (span->scope == OP_USER || (outer && outer->is_counted))
		return flops;
	flops = find_worth(book, span);
	if (flops.status == FLOPS_NO_FORMULA && !is_made_of_others(span))
		span->has_unknown = true;
	else if (flops.status != FLOPS_COUNTED || span->is_traced ||
		 (flops.place == FLOPS_AT_LEAF && span->has_counted))
		flops = (struct flops){.status = FLOPS_NONE};
	else {
		if (flops.counter && is_in_opaque(span))
			flops.counter = 0;
		add_flops(span, &flops);
	}
	return flops;
}
