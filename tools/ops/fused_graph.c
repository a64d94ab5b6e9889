/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/fused_graph.h"

#include <string.h>

#define LINE_BYTES_MAX (1u << 16)

bool torsh_fused_is_word(struct fused_word word, const char *text)
{
	return word.n == strlen(text) && memcmp(word.text, text, word.n) == 0;
}

bool torsh_fused_is_one_of(struct fused_word word, const char *const *texts)
{
	while (*texts && !torsh_fused_is_word(word, *texts))
		texts++;
	return *texts;
}

/* Get the text after the first `mark` in the line, up to one of the characters, or all. */
static bool find_after(struct fused_word line, const char *mark, const char *end,
		       struct fused_word *found)
{
	const char *at = memmem(line.text, line.n, mark, strlen(mark));
	size_t left;

	if (!at)
		return false;
	at += strlen(mark);
	left = line.n - (size_t)(at - line.text);
	*found = (struct fused_word){at, 0};
	while (found->n < left && !strchr(end, at[found->n]))
		found->n++;
	return true;
}

static void add_node(struct fused_graph *graph, struct fused_word line)
{
	struct fused_node node = {0};
	struct fused_word type;

	if (!find_after(line, "%", " ", &node.name) ||
	    !find_after(line, "[target=", "]", &node.target))
		return;
	node.is_read = memmem(line.text, line.n, " = PlaceHolder[", 15);
	if (find_after(line, " : Tensor \"", "\"", &type))
		node.is_tensor = find_after(type, "[", "]", &node.sizes);
	if (!find_after(line, "(args = (", "\n", &node.arguments) && !node.is_read)
		return;
	if (graph->n < FUSED_NODES_MAX)
		graph->nodes[graph->n++] = node;
	else
		graph->is_cut = true;
}

void torsh_fused_parse(struct fused_graph *graph, const char *text)
{
	while (*text && !graph->is_cut) {
		struct fused_word line = {text, strcspn(text, "\n")};

		if (line.n > LINE_BYTES_MAX)
			graph->is_cut = true;
		else if (!find_after(line, "Original ATen: [", "]\n", &graph->operators) &&
			 !find_after(line, "#   return ", "\n", &graph->results))
			add_node(graph, line);
		text += line.n + (text[line.n] == '\n');
	}
}

const struct fused_node *torsh_fused_find_node(const struct fused_graph *graph,
					       struct fused_word name)
{
	for (size_t i = 0; i < graph->n; i++) {
		if (graph->nodes[i].is_tensor && graph->nodes[i].name.n == name.n &&
		    memcmp(graph->nodes[i].name.text, name.text, name.n) == 0)
			return &graph->nodes[i];
	}
	return NULL;
}

/* Get the number at *at, and go behind it. Returns false if there is none. */
static bool take_size(const char **at, uint64_t *size)
{
	bool is_number = torsh_fused_is_digit(**at);

	for (*size = 0; is_number && torsh_fused_is_digit(**at); (*at)++) {
		if (__builtin_mul_overflow(*size, 10u, size) ||
		    __builtin_add_overflow(*size, (uint64_t)(**at - '0'), size))
			return false;
	}
	return is_number;
}

bool torsh_fused_count_elements(const struct fused_node *node, uint64_t *n)
{
	const char *at = node->sizes.text, *end = at + node->sizes.n;

	*n = 1;
	while (at < end) {
		uint64_t size;

		if (!take_size(&at, &size) || __builtin_mul_overflow(*n, size, n))
			return false;
		if (at < end && strspn(at, ", ") == 0)
			return false;
		at += strspn(at, ", ");
	}
	return node->is_tensor;
}

struct fused_word torsh_fused_operator(const struct fused_node *node)
{
	static const char space[] = "torch.ops.aten.";
	size_t n = sizeof(space) - 1;
	struct fused_word word = {node->target.text, 0};

	if (node->target.n <= n || memcmp(node->target.text, space, n) != 0)
		return word;
	word.text += n;
	while (n + word.n < node->target.n && word.text[word.n] != '.')
		word.n++;
	return word;
}

static bool is_result(const struct fused_graph *graph, struct fused_word name)
{
	const char *at = graph->results.text, *end = at + graph->results.n;

	while (at && at < end) {
		size_t n = strcspn(at, ",\n");

		if (n == name.n + 1 && *at == '%' && memcmp(at + 1, name.text, name.n) == 0)
			return true;
		at += n;
		at += at < end ? 1 : 0;
	}
	return false;
}

bool torsh_fused_is_from_elsewhere(const struct fused_graph *graph, const struct fused_node *node)
{
	if (is_result(graph, node->name))
		return false;
	for (size_t i = 0; i < graph->n; i++) {
		if (graph->nodes[i].is_read && graph->nodes[i].name.n == node->name.n &&
		    memcmp(graph->nodes[i].name.text, node->name.text, node->name.n) == 0)
			return true;
	}
	return false;
}
