/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/inductor/cpp_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/ops/inductor/cpp_loops.h"
#include "tools/ops/inductor/cpp_products.h"
#include "tools/ops/inductor/cpp_types.h"

#define WELFORD_FLOPS 4u /* mean and variance: as aten::var has for an element */

static const char not_understood[] = "the kernel's C++ code has a statement of an unknown form";
static const char sizes_vary[] = "the kernel's loops have sizes that the program chooses";
static const char masked[] = "the kernel computes a part only for some elements";
static const char too_many[] = "the kernel has too many values";

/* What was counted so far. */
struct counting {
	struct cpp_types types;
	struct cpp_loops loops;
	struct cpp_kernel kernel;
	uint64_t n_products, n_sums; /* multiplications of two values, and additions into sums */
	bool is_operation_of_floats, is_random; /* of the function in place that is open */
	size_t pending; /* the value that the next function in place gives; CPP_VALUES_MAX: none */
};

static void give_up(struct counting *counting, const char *reason)
{
	if (!counting->kernel.reason)
		counting->kernel.reason = reason;
}

static void add(struct counting *counting, uint64_t n_each, uint64_t *also)
{
	const struct cpp_block *block = torsh_cpp_loops_at(&counting->loops);
	uint64_t n;

	if (block->is_loop_of_other)
		give_up(counting, not_understood);
	else if (block->is_conditional)
		give_up(counting, masked);
	else if (!torsh_cpp_loops_elements(block, &n) || __builtin_mul_overflow(n, n_each, &n) ||
		 __builtin_add_overflow(counting->kernel.all, n, &counting->kernel.all))
		give_up(counting, sizes_vary);
	else if (also)
		*also += n; /* at most kernel.all */
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* The values in an expression. */
struct operands {
	size_t n;
	bool has_float, is_defined;
};

static struct operands find_operands(struct counting *counting, struct cpp_text text)
{
	struct operands operands = {.is_defined = true};
	size_t n;

	while (torsh_cpp_next_value(&text, &n)) {
		enum cpp_type type =
			n < CPP_VALUES_MAX ? counting->types.values[n] : CPP_NOT_DEFINED;

		operands.n++;
		operands.has_float |= type == CPP_FLOAT;
		operands.is_defined &= type != CPP_NOT_DEFINED && type != CPP_COMPLEX;
	}
	return operands;
}

/* Get the type that the text has behind its first "<", up to ">" or ",". */
static enum cpp_type type_in(struct cpp_text text)
{
	const char *at = memchr(text.at, '<', text.n);
	struct cpp_text type = {text.at, 0};

	if (!at)
		return CPP_NOT_DEFINED;
	type.at = at + 1;
	while (type.at + type.n < text.at + text.n && !strchr(">,", type.at[type.n]))
		type.n++;
	return torsh_cpp_type_named(type);
}

static bool starts_with_one_of(struct cpp_text text, const char *const *starts)
{
	while (*starts && !torsh_cpp_starts(text, *starts))
		starts++;
	return *starts;
}

/* Get the type of what only loads, converts or repeats a value. */
static bool is_moved(const struct counting *counting, struct cpp_text text, enum cpp_type *type)
{
	static const char *const casts[] = {"static_cast<",
					    "at::vec::Vectorized<",
					    "at::vec::VectorizedN<",
					    "at::vec::convert<",
					    "c10::convert<",
					    "c10::bit_cast<",
					    "inductor_vec_mask_cast<",
					    NULL};
	static const char *const templates[] = {".template loadu<", ".template cast<",
						".template to<", ".to<", NULL};

	for (size_t i = 0; templates[i]; i++) {
		const char *at = memmem(text.at, text.n, templates[i], strlen(templates[i]));

		if (at) {
			*type = type_in((struct cpp_text){at, text.n - (size_t)(at - text.at)});
			return true;
		}
	}
	*type = torsh_cpp_array(&counting->types, text);
	if (*type == CPP_NOT_DEFINED && starts_with_one_of(text, casts))
		*type = type_in(text);
	return *type != CPP_NOT_DEFINED;
}

/* "float(tmp1 * tmp2)", as additions and products of scalars are written: what is inside. */
static struct cpp_text unwrap(struct cpp_text text)
{
	static const char *const types[] = {"(",	"float(",   "double(",	"bool(",
					    "int8_t(",	"int16_t(", "int32_t(", "int64_t(",
					    "uint8_t(", NULL};

	for (size_t i = 0; types[i]; i++) {
		size_t n = strlen(types[i]);

		if (torsh_cpp_starts(text, types[i]) && text.n > n + 1 &&
		    text.at[text.n - 1] == ')' && text.at[n] != '-')
			return (struct cpp_text){text.at + n, text.n - n - 1};
	}
	return text;
}

/* Whether the whole expression is "tmp1" or, with a mark, "tmp1 * tmp2". */
static bool is_values(struct cpp_text text, const char *mark)
{
	size_t n, n_found = 0;
	struct cpp_text at = text;

	while (torsh_cpp_next_value(&at, &n))
		n_found++;
	for (size_t i = 0; i < text.n; i++) {
		if (!torsh_cpp_is_word(text.at[i]) && text.at[i] != ' ' &&
		    !(mark && text.at[i] == *mark))
			return false;
	}
	return n_found == (mark ? 2 : 1) && (!mark || torsh_cpp_has(text, mark));
}

/* Logic of truth values and bits, and questions that no arithmetic answers. */
static bool is_logic(struct cpp_text text)
{
	static const char *const marks[] = {" & ",   " | ", " ^ ",     " && ",	   " || ", "isnan",
					    "isinf", "~",   "signbit", "all_zero", NULL};

	for (size_t i = 0; marks[i]; i++) {
		if (torsh_cpp_has(text, marks[i]))
			return true;
	}
	return torsh_cpp_starts(text, "!");
}

static bool is_comparison(struct cpp_text text)
{
	static const char *const marks[] = {" == ", " != ", " < ", " > ", " <= ", " >= ", NULL};
	static const char *const selections[] = {" ? ", "blendv", NULL};
	bool is_any = false;

	for (size_t i = 0; marks[i]; i++)
		is_any |= torsh_cpp_has(text, marks[i]);
	for (size_t i = 0; selections[i]; i++)
		is_any &= !torsh_cpp_has(text, selections[i]);
	return is_any;
}

/* A function that is an operation of Inductor's language, or an operator or method. */
static bool is_known_operation(struct cpp_text text)
{
	static const char *const functions[] = {"std::",
						"at::vec::",
						"decltype(",
						"calc_",
						"max_propagate_nan(",
						"min_propagate_nan(",
						"mod(",
						"div_floor_floating",
						"floor_divide_integral(",
						"remainder_integral(",
						"1 / std::",
						NULL};
	size_t i = 0;

	if (starts_with_one_of(text, functions))
		return true;
	while (i < text.n && torsh_cpp_is_word(text.at[i]))
		i++;
	/* "tmp1.sin()", "tmp1 + tmp2", "-tmp1": no call of a function with a name of its own */
	return i == text.n || text.at[i] != '(';
}

static bool is_fused_multiply_add(struct cpp_text text)
{
	static const char *const functions[] = {
		"fmadd(",	   "fmsub(",	"fnmadd(", "at::vec::fmadd(",
		"at::vec::fmsub(", "std::fma(", NULL};

	return starts_with_one_of(text, functions);
}

static enum cpp_type take_operation(struct counting *counting, struct cpp_text text,
				    const struct operands *operands)
{
	bool is_fused = is_fused_multiply_add(text);

	if (is_logic(text))
		return CPP_INTEGER;
	if (!is_fused && !is_known_operation(text))
		give_up(counting, not_understood);
	if (!operands->has_float)
		return CPP_INTEGER;
	add(counting, is_fused ? 2 : 1,
	    is_fused || is_values(text, "*") ? &counting->n_products : NULL);
	return is_comparison(text) ? CPP_INTEGER : CPP_FLOAT;
}

/* "tmp1() : ..." of "tmp0 ? tmp1() : 0": a value of a function in place, and no operation. */
static bool calls_value(struct cpp_text text)
{
	size_t n;

	while (torsh_cpp_next_value(&text, &n)) {
		if (torsh_cpp_starts(text, "()"))
			return true;
	}
	return false;
}

/* Count what an expression computes. Returns its type. */
static enum cpp_type take_expression(struct counting *counting, struct cpp_text text)
{
	struct operands operands = find_operands(counting, text);
	enum cpp_type type;

	if (torsh_cpp_has(text, "complex")) {
		give_up(counting, not_understood);
		return CPP_COMPLEX;
	}
	if (torsh_cpp_starts(text, "at::vec::VecMask<") && !torsh_cpp_has(text, ">::"))
		return take_operation(counting, text, &operands), CPP_INTEGER;
	if (torsh_cpp_starts(text, "at::vec::VecMask<"))
		return CPP_INTEGER;
	if (is_moved(counting, text, &type))
		return type;
	if (!operands.n)
		return torsh_cpp_has(text, "tmp_acc") ? CPP_FLOAT : torsh_cpp_type_named(text);
	if (!operands.is_defined)
		give_up(counting, not_understood);
	text = unwrap(text);
	if (is_values(text, NULL) || calls_value(text))
		return operands.has_float ? CPP_FLOAT : CPP_INTEGER;
	if (torsh_cpp_starts(text, "normalized_rand_cpu(") || torsh_cpp_starts(text, "randn_cpu("))
		return CPP_FLOAT;
	if (torsh_cpp_starts(text, "randint64_cpu("))
		return CPP_INTEGER;
	return take_operation(counting, text, &operands);
}

/* ---- statements ------------------------------------------------------------------------------ */

/* "auto tmp3 = ...": get the value and the expression. */
static bool is_definition(struct cpp_text line, size_t *n, struct cpp_text *expression)
{
	struct cpp_text at = line;

	if (!torsh_cpp_starts(line, "auto tmp") || !torsh_cpp_next_value(&at, n) ||
	    !torsh_cpp_starts(at, "="))
		return false;
	*expression = torsh_cpp_behind(at, 1);
	return torsh_cpp_behind(line, 5).at + 3 < at.at;
}

static void define(struct counting *counting, size_t n, enum cpp_type type)
{
	if (n < CPP_VALUES_MAX)
		counting->types.values[n] = (uint8_t)type;
	else
		give_up(counting, too_many);
}

/* "tmp_acc0_vec = tmp_acc0_vec + tmp3": a step of a reduction. */
static void take_reduction(struct counting *counting, struct cpp_text line)
{
	struct operands operands = find_operands(counting, line);
	bool is_sum = torsh_cpp_has(line, " + ") || torsh_cpp_has(line, "sum_masked_reduce(") ||
		      torsh_cpp_has(line, "cascade_sum_combine(");

	if (!operands.n) /* of lanes or threads */
		return;
	if (!operands.is_defined || torsh_cpp_has(line, ", {"))
		give_up(counting, not_understood);
	if (!operands.has_float)
		return;
	add(counting, torsh_cpp_has(line, "welford_combine(") ? WELFORD_FLOPS : 1,
	    is_sum ? &counting->n_sums : NULL);
}

/* A store only moves: "tmp1.store(...)", "out_ptr0[...] = tmp1"; adding into memory computes. */
static void take_store(struct counting *counting, struct cpp_text line)
{
	const char *value = memmem(line.at, line.n, "] = ", 4);
	struct cpp_text stored =
		value ? (struct cpp_text){value + 4, line.n - (size_t)(value + 4 - line.at)} : line;
	struct operands operands = find_operands(counting, stored);
	enum cpp_type type;

	if (torsh_cpp_has(line, "atomic_add")) {
		if (operands.has_float)
			add(counting, 1, NULL);
		return;
	}
	if (!operands.n || torsh_cpp_has(line, ".store(") ||
	    torsh_cpp_starts(line, "TORCH_CHECK(") || torsh_cpp_starts(line, "AOTI_TORCH_CHECK(") ||
	    torsh_cpp_has(line, "transpose_mxn") ||
	    (value && (is_values(stored, NULL) || is_moved(counting, stored, &type))))
		return;
	give_up(counting, not_understood);
}

/* Inside a function in place of one operation, only what it works on matters. */
static void look_into_operation(struct counting *counting, struct cpp_text line)
{
	struct operands operands = find_operands(counting, line);

	counting->is_operation_of_floats |= operands.has_float;
	counting->is_random |=
		torsh_cpp_has(line, "normalized_rand_cpu(") || torsh_cpp_has(line, "randn_cpu(");
}

static void take_return(struct counting *counting, struct cpp_text line)
{
	struct cpp_text text = torsh_cpp_behind(line, 7);
	struct operands operands = find_operands(counting, text);
	enum cpp_type type = operands.has_float ? CPP_FLOAT : CPP_INTEGER;

	if (!operands.has_float && !is_moved(counting, text, &type) && !operands.n)
		type = torsh_cpp_type_named(text);
	for (size_t i = counting->loops.n; i-- > 0;) {
		if (counting->loops.blocks[i].is_lambda) {
			define(counting, counting->loops.blocks[i].result, type);
			return;
		}
	}
}

/* The value is a function in place: "[&]" of what is masked, "[&]()" of one operation. */
static bool take_lambda(struct counting *counting, struct cpp_text line)
{
	struct cpp_block *next = &counting->loops.next;

	if (!torsh_cpp_starts(line, "[&]") || counting->pending == CPP_VALUES_MAX)
		return false;
	next->is_lambda = true;
	next->is_operation = torsh_cpp_starts(line, "[&]()");
	next->is_conditional |= !next->is_operation;
	next->result = counting->pending;
	counting->pending = CPP_VALUES_MAX;
	counting->is_operation_of_floats = counting->is_random = false;
	return true;
}

static bool is_in_operation(const struct counting *counting)
{
	for (size_t i = counting->loops.n; i-- > 1;) {
		if (counting->loops.blocks[i].is_operation)
			return true;
	}
	return false;
}

static void end_operation(struct counting *counting, size_t result)
{
	bool is_float = counting->is_operation_of_floats || counting->is_random;

	define(counting, result, is_float ? CPP_FLOAT : CPP_INTEGER);
	if (is_float && !counting->is_random)
		add(counting, 1, NULL);
}

static void take_statement(struct counting *counting, struct cpp_text line)
{
	struct cpp_text expression;
	size_t n;

	while (line.n && strchr("; ", line.at[line.n - 1]))
		line.n--;
	if (is_definition(line, &n, &expression)) {
		counting->pending = n;
		if (expression.n && !take_lambda(counting, expression))
			define(counting, n, take_expression(counting, expression));
	} else if (take_lambda(counting, line)) {
		return;
	} else if (torsh_cpp_starts(line, "return ")) {
		take_return(counting, line);
	} else if (torsh_cpp_starts(line, "int32_t tmp") && torsh_cpp_next_value(&line, &n)) {
		define(counting, n, CPP_INTEGER);
	} else if (torsh_cpp_starts(line, "tmp_acc") || torsh_cpp_starts(line, "masked_tmp_acc")) {
		take_reduction(counting, line);
	} else if (torsh_cpp_starts(line, "alignas(") && torsh_cpp_next_value(&line, &n)) {
		define(counting, n, CPP_INTEGER); /* only stored to and transposed */
	} else {
		torsh_cpp_declare(&counting->types, line);
		take_store(counting, line);
	}
}

static void take_line(struct counting *counting, struct cpp_text line)
{
	const struct cpp_block *block = torsh_cpp_loops_at(&counting->loops);
	bool was_operation = block->is_operation, was_inside = is_in_operation(counting);
	size_t result = block->result, depth = counting->loops.n;

	if (!line.n || *line.at == '#' || torsh_cpp_starts(line, "//"))
		return;
	if (was_inside && *line.at != '{' && *line.at != '}')
		look_into_operation(counting, line);
	else if (!torsh_cpp_loops_take(&counting->loops, line))
		take_statement(counting, line);
	if (was_operation && counting->loops.n < depth)
		end_operation(counting, result);
	if (counting->loops.is_broken)
		give_up(counting, not_understood);
}

/* ---- a source -------------------------------------------------------------------------------- */

/* "cpp_fused_add_0", with "graph_0_" before it or not, or "graph_0_kernel" of a template. */
static bool is_name(struct cpp_text name)
{
	size_t n = 6;

	if (torsh_cpp_starts(name, "cpp_fused_"))
		return true;
	if (!torsh_cpp_starts(name, "graph_"))
		return false;
	while (n < name.n && name.at[n] >= '0' && name.at[n] <= '9')
		n++;
	name = (struct cpp_text){name.at + n, name.n - n};
	return torsh_cpp_starts(name, "_cpp_fused_") ||
	       (torsh_cpp_starts(name, "_kernel") && name.n == 7);
}

const char *torsh_cpp_kernel_name(const char *text, size_t *n)
{
	static const char *const marks[] = {"RAIIAtenRecordFunctionHandle record_",
					    "RECORD_FUNCTION(\""};

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		const char *at = strstr(text, marks[i]);
		size_t n_line;

		if (!at)
			continue;
		n_line = strcspn(at, "\n");
		at = memchr(at, '"', n_line);
		if (!at)
			continue;
		at++;
		*n = strcspn(at, "\"\n");
		if (at[*n] == '"' && is_name((struct cpp_text){at, *n}))
			return at;
	}
	return NULL;
}

struct cpp_kernel torsh_cpp_kernel_count(const char *text)
{
	struct counting *counting = torsh_need(calloc(1, sizeof(*counting)));
	struct cpp_text name = {NULL, 0};
	struct cpp_kernel kernel;
	const char *begin = strstr(text, "extern \"C\"");

	name.at = torsh_cpp_kernel_name(text, &name.n);
	if (name.at && name.n > 7 && memcmp(name.at + name.n - 7, "_kernel", 7) == 0) {
		free(counting);
		return torsh_cpp_count_attention(text);
	}
	counting->pending = CPP_VALUES_MAX;
	torsh_cpp_loops_start(&counting->loops);
	if (!begin || !name.at)
		give_up(counting, not_understood);
	for (bool is_inside = false; begin && !counting->kernel.reason && *begin;) {
		struct cpp_text line = {begin, strcspn(begin, "\n")};

		begin += line.n + (begin[line.n] == '\n');
		line = torsh_cpp_behind(line, 0);
		if (!is_inside && line.n && *line.at != '{')
			torsh_cpp_declare(&counting->types, line);
		else
			take_line(counting, line);
		is_inside |= counting->loops.n > 1;
		if (is_inside && counting->loops.n == 1)
			break;
	}
	if (counting->loops.n != 1)
		give_up(counting, not_understood);
	if (!counting->kernel.reason &&
	    !torsh_cpp_count_products(&counting->kernel, name, counting->n_products,
				      counting->n_sums))
		give_up(counting, sizes_vary);
	kernel = counting->kernel;
	free(counting);
	return kernel;
}

bool torsh_is_cpp_kernel(const char *operator_name)
{
	return is_name((struct cpp_text){operator_name, strlen(operator_name)});
}
