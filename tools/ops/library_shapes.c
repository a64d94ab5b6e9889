/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/library_shapes.h"

#include <string.h>

#define RANK 12
#define TENSORS 3

struct tensor {
	uint64_t sizes[RANK];
	uint32_t rank;
};

/* Read digits; false: there are none, or the number doesn't fit. */
static bool take_number(const char **text, uint64_t *number)
{
	const char *at = *text;

	for (*number = 0; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, (uint64_t)(*at - '0'), number))
			return false;
	if (at == *text)
		return false;
	*text = at;
	return true;
}

/* "2x3x32x32:8x3x3x3:2x8x30x30". Returns how many tensors; 0: it is something else. */
static uint32_t read_tensors(const char *text, struct tensor tensors[TENSORS])
{
	for (uint32_t n = 0; n < TENSORS; n++) {
		struct tensor *tensor = &tensors[n];

		tensor->rank = 0;
		do
			if (tensor->rank == RANK ||
			    !take_number(&text, &tensor->sizes[tensor->rank++]))
				return 0;
		while (*text == 'x' && text++);
		if (!*text)
			return n + 1;
		if (*text++ != ':')
			return 0;
	}
	return 0;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t all;

	return __builtin_mul_overflow(a, b, &all) ? UINT64_MAX - 1 : all;
}

static uint64_t product(const struct tensor *tensor, uint32_t from, uint32_t to)
{
	uint64_t all = 1;

	for (uint32_t i = from; i < to; i++)
		all = times(all, tensor->sizes[i]);
	return all;
}

static void set(struct recorded_library_call *call, uint64_t m, uint64_t n, uint64_t k,
		uint64_t batch)
{
	call->m = m + 1;
	call->n = n + 1;
	call->k = k + 1;
	call->batch = batch + 1;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/*
 * Weights are output by input channels by the kernel, in oneDNN with the groups before; of a
 * transposed convolution the source has the role of what is written.
 */
static void set_convolution(struct recorded_library_call *call,
			    const struct tensor tensors[TENSORS], bool is_transposed)
{
	const struct tensor *weights = &tensors[1], *large = &tensors[is_transposed ? 2 : 0],
			    *small = &tensors[is_transposed ? 0 : 2];
	bool has_groups = weights->rank == small->rank + 1;
	uint64_t groups, out, in;

	if (large->rank != small->rank || small->rank < 3 ||
	    (!has_groups && weights->rank != small->rank))
		return;
	out = weights->sizes[has_groups];
	in = weights->sizes[has_groups + 1];
	if (is_transposed && has_groups) {
		uint64_t other = out;

		out = in;
		in = other;
	}
	/* cuDNN's weights have all output channels, and the input channels of one group. */
	groups = has_groups ? weights->sizes[0] : in ? large->sizes[1] / in : 0;
	if (is_transposed && !has_groups) {
		groups = 1;
		out = small->sizes[1];
		in = large->sizes[1];
	} else if (!has_groups && groups) {
		out /= groups;
	}
	set(call, times(small->sizes[0], product(small, 2, small->rank)), out,
	    times(in, product(weights, has_groups + 2u, weights->rank)), groups);
}

static void set_product(struct recorded_library_call *call, const struct tensor tensors[TENSORS],
			uint32_t n)
{
	const struct tensor *a = &tensors[0], *b = &tensors[1], *large;
	uint64_t batch = 1;

	if (n < 2 || a->rank < 2 || a->rank != b->rank)
		return;
	/* A size of 1 is repeated. */
	for (uint32_t i = 0; i + 2 < a->rank; i++) {
		large = a->sizes[i] > b->sizes[i] ? a : b;
		batch = times(batch, large->sizes[i]);
	}
	set(call, a->sizes[a->rank - 2], b->sizes[b->rank - 1], a->sizes[a->rank - 1], batch);
}

/* The rows of what is read, whatever they consist of, with the rows of the weights. */
static void set_inner_product(struct recorded_library_call *call,
			      const struct tensor tensors[TENSORS])
{
	const struct tensor *source = &tensors[0], *weights = &tensors[1];

	if (source->rank < 2 || weights->rank < 2)
		return;
	set(call, source->sizes[0], weights->sizes[0], product(weights, 1, weights->rank), 1);
}

/* ---- oneDNN's own text ----------------------------------------------------------------------- */

/* The size after a name in "mb2_g1ic3oc8_ih32oh30kh3sh1dh0ph0_iw32..."; otherwise the default. */
static uint64_t named(const char *text, const char *name, uint64_t otherwise)
{
	size_t n = strlen(name);

	for (const char *at = text; (at = strstr(at, name)); at += n) {
		const char *number = at + n;
		uint64_t size;

		if (at > text && at[-1] >= 'a' && at[-1] <= 'z')
			continue;
		if (take_number(&number, &size))
			return size;
	}
	return otherwise;
}

static void set_named(struct recorded_library_call *call, const char *text, bool is_transposed)
{
	uint64_t groups = named(text, "g", 1), mb = named(text, "mb", 0);
	uint64_t ic = named(text, "ic", 0), oc = named(text, "oc", 0);
	bool is_inner = !strcmp(call->routine, "inner_product");
	uint64_t points = times(times(named(text, is_transposed ? "id" : "od", 1),
				      named(text, is_transposed ? "ih" : "oh", 1)),
				named(text, is_transposed ? "iw" : "ow", 1));
	uint64_t kernel = times(times(named(text, is_inner ? "id" : "kd", 1),
				      named(text, is_inner ? "ih" : "kh", 1)),
				named(text, is_inner ? "iw" : "kw", 1));

	if (!mb || !ic || !oc || !groups)
		return;
	set(call, is_inner ? mb : times(mb, points), (is_transposed ? ic : oc) / groups,
	    times((is_transposed ? oc : ic) / groups, kernel), groups);
}

void torsh_library_set_sizes(struct recorded_library_call *call)
{
	const char *routine = call->routine ? call->routine : "";
	bool is_transposed = !strcmp(routine, "deconvolution");
	bool is_convolution = is_transposed || !strcmp(routine, "convolution");
	bool is_inner = !strcmp(routine, "inner_product");
	struct tensor tensors[TENSORS];
	uint32_t n;

	if (!call->shape || call->n || (!is_convolution && !is_inner && strcmp(routine, "matmul")))
		return;
	n = read_tensors(call->shape, tensors);
	if (n == TENSORS && is_convolution)
		set_convolution(call, tensors, is_transposed);
	else if (n >= 2 && is_inner)
		set_inner_product(call, tensors);
	else if (n >= 2 && !is_convolution)
		set_product(call, tensors, n);
	else if (!n && (is_convolution || is_inner))
		set_named(call, call->shape, is_transposed);
}
