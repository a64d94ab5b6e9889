/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Extern kernels are operators of their own: what a kernel reads of them does not count. */
#include "tools/ops/fused_flops.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/ops/flops.h"
#include "tools/ops/fused_graph.h"

#define INPUTS_TEXT_MAX 4096u

/* ---- products that are nodes ----------------------------------------------------------------- */

/* Arguments as the text of inputs that torsh_inputs_parse reads. */
struct inputs_text {
	char text[INPUTS_TEXT_MAX];
	size_t n;
	bool is_cut; /* there are more, or one without a size */
};

static void put(struct inputs_text *out, const char *text, size_t n)
{
	if (out->n + n >= sizeof(out->text)) {
		out->is_cut = true;
		return;
	}
	memcpy(out->text + out->n, text, n);
	out->n += n;
	out->text[out->n] = '\0';
}

static void put_tensor(struct inputs_text *out, const struct fused_node *node)
{
	uint64_t n;

	if (!torsh_fused_count_elements(node, &n)) {
		out->is_cut = true;
		return;
	}
	put(out, "float32[", 8);
	for (size_t i = 0; i < node->sizes.n; i++) {
		if (node->sizes.text[i] != ' ')
			put(out, node->sizes.text + i, 1);
	}
	put(out, "]", 1);
}

static void put_item(struct inputs_text *out, const struct fused_graph *graph,
		     struct fused_word item)
{
	const struct fused_node *node = NULL;

	if (*item.text == '%')
		node = torsh_fused_find_node(graph, (struct fused_word){item.text + 1, item.n - 1});
	if (node)
		put_tensor(out, node);
	else if (torsh_fused_is_word(item, "None"))
		put(out, "-", 1);
	else if (torsh_fused_is_word(item, "True"))
		put(out, "true", 4);
	else if (torsh_fused_is_word(item, "False"))
		put(out, "false", 5);
	else if (strspn(item.text, "0123456789-.e+") >= item.n)
		put(out, item.text, item.n);
	else
		put(out, "_", 1);
}

static void put_arguments(struct inputs_text *out, const struct fused_graph *graph,
			  struct fused_word arguments)
{
	size_t depth = 0, i = 0;

	while (i < arguments.n && !out->is_cut) {
		const char *at = arguments.text + i;
		struct fused_word item = {at, strcspn(at, ",()[] \n")};

		item.n = item.n < arguments.n - i ? item.n : arguments.n - i;
		if (item.n) {
			put_item(out, graph, item);
			i += item.n;
			continue;
		}
		if (!depth && *at == ')')
			return;
		if (*at == '[' || *at == '(')
			put(out, "{", 1);
		else if (*at == ']' || *at == ')')
			put(out, "}", 1);
		else if (*at == ',' && !strchr(")]", at[1]))
			put(out, depth ? "," : ";", 1);
		depth += *at == '[' || *at == '(';
		depth -= depth && (*at == ']' || *at == ')');
		i++;
	}
}

/*
 * FlopCounterMode's, by the formulas of the operators. Returns false if sizes are missing, or if
 * the number takes more than 64 bits.
 */
static bool count_product(const struct fused_graph *graph, const struct fused_node *node,
			  uint64_t *n)
{
	struct inputs_text *out = torsh_need(calloc(1, sizeof(*out)));
	struct inputs *inputs = torsh_need(malloc(sizeof(*inputs)));
	struct fused_word word = torsh_fused_operator(node);
	char *name = torsh_need_text("aten::%.*s", (int)word.n, word.text);
	struct flops flops = {.status = FLOPS_NO_FORMULA};

	put_arguments(out, graph, node->arguments);
	torsh_inputs_parse(inputs, out->text);
	if (!out->is_cut)
		flops = torsh_flops_of(name, inputs);
	*n = flops.counter;
	free(name);
	free(inputs);
	free(out);
	return flops.status == FLOPS_COUNTED && flops.counter < UINT64_MAX;
}

static const char *const of_matrices[] = {"mm", "addmm", "bmm", "baddbmm", "_scaled_mm", NULL};
static const char *const convolutions[] = {"convolution", "convolution_backward", NULL};

/* Count the products among the nodes that no other kernel computes, and find the last. */
static size_t find_products(const struct fused_graph *graph, const char *const *names,
			    const struct fused_node **found)
{
	size_t n = 0;

	for (size_t i = 0; i < graph->n; i++) {
		const struct fused_node *node = &graph->nodes[i];

		if (node->is_read || !torsh_fused_is_one_of(torsh_fused_operator(node), names) ||
		    torsh_fused_is_from_elsewhere(graph, node))
			continue;
		*found = node;
		n++;
	}
	return n;
}

/* A template computes one product, with what was fused into it before and behind. */
static struct fused_flops count_template(const struct fused_graph *graph)
{
	struct fused_flops flops = {0};
	const struct fused_node *product = NULL;
	size_t n = find_products(graph, of_matrices, &product) +
		   find_products(graph, convolutions, &product);

	if (n != 1)
		flops.reason = n ? "the kernel's graph has several products"
				 : "the kernel is a template of an operator without a formula";
	else if (!count_product(graph, product, &flops.n))
		flops.reason = "the kernel's graph lacks the sizes of an operand, or they are too "
			       "large";
	return flops;
}

/* ---- products that Inductor decomposed ------------------------------------------------------- */

/* Operators that Inductor makes without multiplying two tensors. */
static const char *const without_products[] = {"aten.t",
					       "aten.transpose",
					       "aten.permute",
					       "aten.view",
					       "aten.reshape",
					       "aten._unsafe_view",
					       "aten.slice",
					       "aten.select",
					       "aten.squeeze",
					       "aten.unsqueeze",
					       "aten.expand",
					       "aten.clone",
					       "aten.cat",
					       "aten.split",
					       "aten.add",
					       "aten.sub",
					       "aten.neg",
					       "aten.abs",
					       "aten.relu",
					       "aten.threshold_backward",
					       "aten.sum",
					       "aten.mean",
					       "aten.amax",
					       "aten.exp",
					       "aten.sigmoid",
					       "aten.tanh",
					       "aten.le",
					       "aten.where",
					       "aten.full",
					       "aten._to_copy",
					       "aten.slice_backward",
					       "prims.convert_element_type",
					       NULL};
static const char *const decomposed[] = {"aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm", NULL};
/* FlopCounterMode counts them; Inductor makes templates of them only. */
static const char *const attention[] = {"flex_attention", "flex_attention_backward", NULL};

struct listed {
	bool has_product, has_other, has_attention;
};

static struct listed read_operators(struct fused_word operators)
{
	struct listed listed = {0};
	const char *at = operators.text, *end = at + operators.n;

	while (at < end) {
		struct fused_word word = {at, strcspn(at, ", ]\n")};

		word.n = word.n < (size_t)(end - at) ? word.n : (size_t)(end - at);
		if (torsh_fused_is_one_of(word, decomposed))
			listed.has_product = true;
		else if (torsh_fused_is_one_of(word, attention))
			listed.has_attention = true;
		else if (word.n && !torsh_fused_is_one_of(word, without_products))
			listed.has_other = true;
		at += word.n;
		at += at < end ? 1 : 0;
	}
	return listed;
}

/* Get both operands of a multiplication of two tensors; those not in the graph are NULL. */
static bool find_operands(const struct fused_graph *graph, const struct fused_node *node,
			  const struct fused_node *operands[2])
{
	const char *at = node->arguments.text;

	if (node->is_read || !torsh_fused_is_word(torsh_fused_operator(node), "mul"))
		return false;
	for (size_t i = 0; i < 2; i++) {
		size_t n = strcspn(at, ",)\n");

		if (*at != '%')
			return false;
		operands[i] = torsh_fused_find_node(graph, (struct fused_word){at + 1, n - 1});
		at += n;
		at += strspn(at, ", ");
	}
	return true;
}

/* What the multiplications of two tensors in a kernel are. */
struct multiplications {
	size_t n, n_outer; /* outer: both operands have fewer elements than the result */
	uint64_t flops; /* with the additions of the products */
	bool is_unknown;
};

static struct multiplications find_multiplications(const struct fused_graph *graph)
{
	struct multiplications found = {0};

	for (size_t i = 0; i < graph->n; i++) {
		const struct fused_node *operands[2] = {NULL, NULL};
		uint64_t n, a, b;

		if (!find_operands(graph, &graph->nodes[i], operands))
			continue;
		found.n++;
		if (!torsh_fused_count_elements(&graph->nodes[i], &n) ||
		    __builtin_add_overflow(found.flops, n, &found.flops) ||
		    __builtin_add_overflow(found.flops, n, &found.flops))
			found.is_unknown = true;
		else if (!operands[0] || !operands[1] ||
			 !torsh_fused_count_elements(operands[0], &a) ||
			 !torsh_fused_count_elements(operands[1], &b) || (a < n && b < n))
			found.n_outer++;
	}
	return found;
}

/* Returns whether a node of that operator may be named so: "mm", "mm_1", "mm_default_1". */
static bool is_named_after(struct fused_word name, const char *operator)
{
	static const char overload[] = "_default";
	size_t n = strlen(operator);

	if (name.n < n || memcmp(name.text, operator, n) != 0)
		return false;
	if (name.n - n >= sizeof(overload) - 1 &&
	    memcmp(name.text + n, overload, sizeof(overload) - 1) == 0)
		n += sizeof(overload) - 1;
	if (name.n == n)
		return true;
	if (name.text[n++] != '_' || n == name.n)
		return false;
	while (n < name.n && torsh_fused_is_digit(name.text[n]))
		n++;
	return n == name.n;
}

/* Returns whether the kernel reads the result of a product that another kernel computed. */
static bool reads_product(const struct fused_graph *graph)
{
	for (size_t i = 0; i < graph->n; i++) {
		for (size_t k = 0; graph->nodes[i].is_read && of_matrices[k]; k++) {
			if (is_named_after(graph->nodes[i].name, of_matrices[k]))
				return true;
		}
	}
	return false;
}

static bool has_sum(const struct fused_graph *graph)
{
	for (size_t i = 0; i < graph->n; i++) {
		if (!graph->nodes[i].is_read &&
		    torsh_fused_is_word(torsh_fused_operator(&graph->nodes[i]), "sum"))
			return true;
	}
	return false;
}

/*
 * Inductor decomposes small products into multiplications, of each row by each column, and sums:
 * each of these makes two operations. Multiplications of other operators don't count.
 */
static struct fused_flops count_decomposed(const struct fused_graph *graph,
					   const struct listed *listed)
{
	struct multiplications found = find_multiplications(graph);
	struct fused_flops flops = {0};

	if (!found.n)
		return flops;
	if (!listed->has_other && !found.is_unknown)
		flops.n = found.flops;
	else if (!reads_product(graph) || found.n_outer || found.is_unknown || has_sum(graph))
		flops.reason = found.is_unknown
				       ? "sizes in the kernel's graph are not numbers, or too large"
				       : "the kernel also multiplies for other operators than the "
					 "product, and its graph does not tell them apart";
	return flops;
}

struct fused_flops torsh_fused_flops_of(const char *name, const char *comment)
{
	struct fused_flops flops = {0};
	struct fused_graph *graph;
	const struct fused_node *product;
	struct listed listed;

	if (!comment)
		return (struct fused_flops){
			.reason = "Inductor's cache has no graph of the kernel, or several"};
	graph = torsh_need(calloc(1, sizeof(*graph)));
	torsh_fused_parse(graph, comment);
	listed = read_operators(graph->operators);
	if (!graph->n || graph->is_cut)
		flops.reason = "the kernel's graph has no nodes, or is too long";
	else if (listed.has_attention)
		flops.reason = "the kernel is a template of an operator without a formula";
	else if (strncmp(name, "triton_tem_", 11) == 0)
		flops = count_template(graph);
	/* Pointwise kernels can't: the node is there for what they do before or behind it. */
	else if (strncmp(name, "triton_poi_", 11) != 0 &&
		 find_products(graph, of_matrices, &product))
		flops.reason = "the kernel may compute the product in its graph itself";
	else if (listed.has_product)
		flops = count_decomposed(graph, &listed);
	free(graph);
	return flops;
}
