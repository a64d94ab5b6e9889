/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/inductor/cpp_products.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/ops/inductor/cpp_types.h"

/* ---- products -------------------------------------------------------------------------------- */

/* Returns whether the operators of a name, with underscores between them, have this one. */
static bool has_operator(struct cpp_text operators, const char *operator)
{
	size_t n = strlen(operator);

	for (size_t i = 0; i + n <= operators.n; i++) {
		if (memcmp(operators.at + i, operator, n) == 0 &&
		    (!i || operators.at[i - 1] == '_') &&
		    (i + n == operators.n || operators.at[i + n] == '_'))
			return true;
	}
	return false;
}

/* Drop the operators that make no multiplication from the name, and see whether one is left. */
static bool has_other_operators(struct cpp_text name)
{
	static const char *const without[] = {
		"mm",	  "addmm",	  "bmm",       "baddbmm",  "t",	     "transpose", "permute",
		"view",	  "_unsafe_view", "unsqueeze", "squeeze",  "expand", "clone",	  "slice",
		"select", "cat",	  "add",       "sub",	   "relu",   "sum",	  "amax",
		"neg",	  "abs",	  "copy",      "_to_copy", NULL};

	while (name.n) {
		size_t best = 0;

		for (size_t i = 0; without[i]; i++) {
			size_t n = strlen(without[i]);

			if (torsh_cpp_starts(name, without[i]) && n > best &&
			    (n == name.n || name.at[n] == '_'))
				best = n;
		}
		if (!best)
			return true;
		best += best < name.n;
		name = (struct cpp_text){name.at + best, name.n - best};
	}
	return false;
}

/* "add_mm" of "graph_0_cpp_fused_add_mm_1" */
static struct cpp_text operators_of(struct cpp_text name)
{
	static const char mark[] = "cpp_fused_";
	const char *at = memmem(name.at, name.n, mark, sizeof(mark) - 1);

	if (!at)
		return (struct cpp_text){name.at, 0};
	at += sizeof(mark) - 1;
	name.n -= (size_t)(at - name.at);
	name.at = at;
	while (name.n && name.at[name.n - 1] >= '0' && name.at[name.n - 1] <= '9')
		name.n--;
	name.n -= name.n && name.at[name.n - 1] == '_';
	return name;
}

bool torsh_cpp_count_products(struct cpp_kernel *kernel, struct cpp_text name, uint64_t n_products,
			      uint64_t n_sums)
{
	static const char *const products[] = {"mm", "addmm", "bmm", "baddbmm", "_scaled_mm", NULL};
	struct cpp_text operators = operators_of(name);
	bool has_product = false;

	for (size_t i = 0; products[i]; i++)
		has_product |= has_operator(operators, products[i]);
	if (!has_product || !n_products)
		return true;
	if (has_other_operators(operators)) {
		kernel->counter_reason = "the kernel also multiplies for other operators than the "
					 "product, and its code does not tell them apart";
		return true;
	}
	return !__builtin_mul_overflow(n_products, 2u, &kernel->counter) &&
	       (n_sums || !__builtin_add_overflow(kernel->all, n_products, &kernel->all));
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Get the number of the line "int64_t qSize = static_cast<int64_t>(128L);". */
static bool find_size(const char *text, const char *name, uint64_t *size)
{
	char *line = torsh_need_text("  int64_t %s = static_cast<int64_t>(", name);
	const char *at = strstr(text, line);
	char *end = NULL;

	if (at) {
		at += strlen(line);
		*size = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : 0;
	}
	free(line);
	return end && strncmp(end, "L);", 3) == 0;
}

struct cpp_kernel torsh_cpp_count_attention(const char *text)
{
	static const char *const names[] = {"batchSize", "num_head", "qSize", "kvSize"};
	struct cpp_kernel kernel = {.all = 2};
	uint64_t size, of_keys, of_values;
	bool is_known = find_size(text, "headSize", &of_keys) &&
			find_size(text, "headSize_v", &of_values) &&
			!__builtin_add_overflow(of_keys, of_values, &of_keys) &&
			!__builtin_mul_overflow(kernel.all, of_keys, &kernel.all);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		is_known = is_known && find_size(text, names[i], &size) &&
			   !__builtin_mul_overflow(kernel.all, size, &kernel.all);
	kernel.counter = kernel.all;
	kernel.reason = is_known ? NULL : "the template is not one of attention with sizes";
	return kernel;
}
