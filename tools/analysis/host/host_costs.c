/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/host/host_costs.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analysis/host/stack_line.h"
#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/timeline/inputs.h"

#define ROWS_AN_INDEX 10u /* fewer rows of an embedding are not worth a sparse gradient; ours */

static const struct {
	const char *name;
	enum host_cost cost;
} names[] = {
	{"aten::item", COST_SCALAR_READ},
	{"aten::contiguous", COST_CONTIGUOUS},
	{"aten::cat", COST_CAT},
	{"aten::arange", COST_CONSTANT},
	{"aten::linspace", COST_CONSTANT},
	{"aten::logspace", COST_CONSTANT},
	{"aten::eye", COST_CONSTANT},
	{"aten::tril_indices", COST_CONSTANT},
	{"aten::triu_indices", COST_CONSTANT},
	{"aten::embedding_dense_backward", COST_EMBEDDING_GRADIENT},
	{"TorchDynamo Cache Lookup", COST_GUARDS},
	{"aten::dropout", COST_TRAINING_LAYER},
	{"aten::feature_dropout", COST_TRAINING_LAYER},
	{"aten::alpha_dropout", COST_TRAINING_LAYER},
	{"aten::batch_norm", COST_TRAINING_LAYER},
};

static enum host_cost cost_of_text(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(names[i].name, name) == 0)
			return names[i].cost;
	}
	return COST_NONE;
}

static enum host_cost cost_of(struct host_costs *costs, const struct span *span)
{
	uint8_t *known;

	if (span->traits & NAME_OPTIMIZER)
		return span->traits & NAME_OPTIMIZER_STEP ? COST_OPTIMIZER : COST_ZERO_GRAD;
	if (span->traits & NAME_DATA)
		return span->traits & NAME_DATA_OF_WORKERS ? COST_LOAD_BY_WORKERS : COST_LOAD_ALONE;
	if (span->name > costs->n_names)
		return COST_NONE;
	known = &costs->cost_of_name[span->name];
	if (!*known)
		*known = (uint8_t)(cost_of_text(torsh_span_name(span)) + 1);
	return *known - 1;
}

static void add_time(struct cost_sum *sum, uint64_t at_ns, uint64_t ns, uint32_t stack,
		     const char *operator_name)
{
	sum->n++;
	sum->ns += ns;
	if (ns < sum->longest_ns)
		return;
	sum->longest_ns = ns;
	sum->longest_at_ns = at_ns;
	sum->stack = stack;
	sum->operator_name = operator_name;
}

static void add_span(struct cost_sum *sum, const struct span *span)
{
	add_time(sum, span->start_ns, span->end_ns - span->start_ns, span->stack,
		 torsh_span_name(span));
}

/* ---- what depends on inputs ------------------------------------------------------------------ */

static struct inputs *parse(struct host_costs *costs, const struct span *span)
{
	struct inputs *inputs = torsh_need(malloc(sizeof(*inputs)));

	torsh_inputs_parse(inputs, torsh_timeline_label(span->process, span->inputs));
	costs->has_inputs = costs->has_inputs || inputs->n;
	return inputs;
}

/*
 * Count a call if it appends to what the line made before. Several tensors may grow there in turn:
 * then some are still as long as the others were before their last call.
 */
static void grow(struct growing_tensor *tensor, const struct span *span, uint64_t first,
		 uint64_t all)
{
	if (first && all > first && (first == tensor->now || first == tensor->before)) {
		add_span(&tensor->sum, span);
		tensor->copied += first;
		tensor->has_grown = true;
		if (first == tensor->now) {
			tensor->before = tensor->now;
			tensor->now = all;
		}
		return;
	}
	if (tensor->has_grown)
		tensor->ended += tensor->now;
	tensor->has_grown = false;
	tensor->before = 0;
	tensor->now = all;
}

static void add_cat(struct host_costs *costs, const struct span *span)
{
	struct inputs *inputs = parse(costs, span);
	const struct input *list = torsh_inputs_get(inputs, 0);
	/* Most recordings have no stacks of operators: then by the size of the pieces. */
	uint64_t key[] = {torsh_stack_line(span->process, span->stack), 0, 0}, first, all = 0;
	size_t i;

	if (!list || list->kind != INPUT_LIST || list->n_items < 2) {
		free(inputs);
		return;
	}
	first = torsh_input_elements(&list[1]);
	key[1] = list[1].n_dims;
	key[2] = torsh_input_elements(&list[list->n_items]);
	for (uint32_t k = 1; k <= list->n_items; k++)
		all += torsh_input_elements(&list[k]);
	free(inputs);
	i = torsh_hash_map_put(&costs->known_growing, key, sizeof(key), costs->n_growing)->value;
	if (i == costs->n_growing) {
		costs->growing = torsh_array_reserve(costs->growing, i, &costs->growing_room,
						     sizeof(*costs->growing));
		costs->growing[costs->n_growing++] = (struct growing_tensor){0};
	}
	grow(&costs->growing[i], span, first, all);
}

static void add_constant(struct host_costs *costs, const struct span *span)
{
	uint64_t key[] = {span->name, span->inputs, torsh_stack_line(span->process, span->stack)};
	size_t i;

	if (!span->inputs || torsh_span_outer_operator(span))
		return;
	costs->has_inputs = true;
	i = torsh_hash_map_put(&costs->known_constants, key, sizeof(key), costs->n_constants)
		    ->value;
	if (i == costs->n_constants) {
		costs->constants = torsh_array_reserve(costs->constants, i, &costs->constants_room,
						       sizeof(*costs->constants));
		costs->constants[costs->n_constants++] = (struct cost_sum){0};
	}
	add_span(&costs->constants[i], span);
}

/* grad_output, indices, number of rows */
static void add_embedding(struct host_costs *costs, const struct span *span)
{
	struct inputs *inputs = parse(costs, span);
	const struct input *indices = torsh_inputs_get(inputs, 1),
			   *rows = torsh_inputs_get(inputs, 2);
	uint64_t n_indices =
		indices && indices->kind == INPUT_TENSOR ? torsh_input_elements(indices) : 0;
	uint64_t n_rows = rows && rows->kind == INPUT_INTEGER && rows->integer > 0
				  ? (uint64_t)rows->integer
				  : 0;
	struct cost_sum *sum = &costs->of[COST_EMBEDDING_GRADIENT];

	free(inputs);
	if (!n_indices || n_rows / ROWS_AN_INDEX < n_indices)
		return;
	if (span->end_ns - span->start_ns >= sum->longest_ns) {
		costs->n_rows = n_rows;
		costs->n_indices = n_indices;
	}
	add_span(sum, span);
}

/* dropout(input, p, train), batch_norm(input, weight, bias, mean, variance, training, ...) */
static void add_training_layer(struct host_costs *costs, const struct span *span)
{
	struct inputs *inputs = parse(costs, span);
	bool is_norm = strcmp(torsh_span_name(span), "aten::batch_norm") == 0;
	const struct input *training = torsh_inputs_get(inputs, is_norm ? 5 : 2);

	if (training && training->kind == INPUT_BOOL && training->integer)
		add_span(&costs->of[COST_TRAINING_LAYER], span);
	free(inputs);
}

/* ---- spans ----------------------------------------------------------------------------------- */

static bool is_in_optimizer_step(const struct span *span)
{
	const struct span *outer = torsh_span_outer_operator(span);

	while (outer && !(outer->traits & NAME_OPTIMIZER_STEP))
		outer = torsh_span_outer_operator(outer);
	return outer;
}

/* The first input is a tensor, and not of a single number: Python's numbers are float64, too. */
static bool is_of_float64(const struct span *span)
{
	static const char start[] = "float64[";
	const char *text = torsh_timeline_label(span->process, span->inputs);
	size_t n = sizeof(start) - 1;

	return text && strncmp(text, start, n) == 0 && text[n] != ']';
}

/* Conversions to another type are dtype_copies. */
static bool computes_float64(const struct span *span)
{
	static const char *const conversions[] = {"aten::to", "aten::_to_copy", "aten::copy_"};
	const struct span *outer = torsh_span_outer_operator(span);

	if (span->scope == OP_USER || !is_of_float64(span) || (outer && is_of_float64(outer)))
		return false;
	for (size_t i = 0; i < sizeof(conversions) / sizeof(*conversions); i++) {
		if (strcmp(conversions[i], torsh_span_name(span)) == 0)
			return false;
	}
	return true;
}

static void add_leaf(struct host_costs *costs, const struct span *span)
{
	if (span->phase == PHASE_DATA)
		add_span(&costs->of[COST_LOAD_OPERATOR], span);
	else if (span->phase == PHASE_OPTIMIZER && is_in_optimizer_step(span))
		add_span(&costs->of[COST_OPTIMIZER_OPERATOR], span);
}

static void add_named(struct host_costs *costs, enum host_cost cost, const struct span *span)
{
	switch (cost) {
	case COST_CAT:
		add_cat(costs, span);
		return;
	case COST_CONSTANT:
		add_constant(costs, span);
		return;
	case COST_EMBEDDING_GRADIENT:
		add_embedding(costs, span);
		return;
	case COST_TRAINING_LAYER:
		add_training_layer(costs, span);
		return;
	case COST_CONTIGUOUS:
	case COST_ZERO_GRAD:
		/* Without an inner operator nothing was copied, or filled. */
		if (!span->n_inner)
			return;
		break;
	default:
		break;
	}
	add_span(&costs->of[cost], span);
}

static void add_node(struct host_costs *costs, const struct time_scope *scope, size_t interval,
		     const struct span *span)
{
	if (!costs->backward)
		costs->backward = torsh_need_items(NULL, 0, scope->n, sizeof(*costs->backward));
	costs->backward[interval].n_nodes++;
	costs->backward[interval].ns += span->end_ns - span->start_ns;
}

static void add_sequence(struct host_costs *costs, const struct span *span)
{
	if (!costs->last_node || span->sequence < costs->first_node)
		costs->first_node = span->sequence;
	if (span->sequence + 1 > costs->last_node)
		costs->last_node = span->sequence + 1;
}

void torsh_host_costs_start(struct host_costs *costs, const struct recorded_process *process)
{
	costs->n_names = process->tables->n_functions;
	costs->cost_of_name =
		torsh_need_items(NULL, 0, costs->n_names + 1, sizeof(*costs->cost_of_name));
}

void torsh_host_costs_add(struct host_costs *costs, const struct time_scope *scope,
			  const struct span *span)
{
	size_t interval;
	enum host_cost cost;

	if (span->kind != SPAN_OPERATOR || span->is_cut)
		return;
	cost = cost_of(costs, span);
	costs->has_backward = costs->has_backward || span->phase == PHASE_BACKWARD;
	costs->has_list_operators =
		costs->has_list_operators ||
		(span->phase == PHASE_OPTIMIZER && (strstr(torsh_span_name(span), "::_foreach_") ||
						    strstr(torsh_span_name(span), "::_fused_")));
	if (cost == COST_LOAD_BY_WORKERS)
		torsh_busy_add(&costs->batches, span->start_ns, span->end_ns);
	interval = torsh_scope_at(scope, span->start_ns);
	if (interval == STEP_NONE || interval < scope->first_steady || interval >= scope->n_whole)
		return;
	costs->has_inputs = costs->has_inputs || span->inputs;
	if (computes_float64(span))
		add_span(&costs->of[COST_FLOAT64], span);
	if (!span->n_inner && span->scope != OP_USER)
		add_leaf(costs, span);
	if (span->traits & NAME_BACKWARD)
		add_node(costs, scope, interval, span);
	else if (span->sequence != OP_NO_SEQUENCE && span->phase != PHASE_BACKWARD)
		add_sequence(costs, span);
	if (cost != COST_NONE)
		add_named(costs, cost, span);
}

/* ---- waits ----------------------------------------------------------------------------------- */

void torsh_host_costs_wait(struct host_costs *costs, const struct time_scope *scope,
			   const struct recorded_process *process,
			   const struct timeline_event *event, const struct span *innermost)
{
	const struct event_thread_wait *wait = &event->event.thread_wait;
	const struct recorded_thread *thread =
		event->thread < process->n_threads ? &process->threads[event->thread] : NULL;
	uint32_t tid = wait->tid ? wait->tid : thread && thread->is_known ? thread->tid : 0;
	size_t interval = torsh_scope_at(scope, wait->begin);

	costs->waits.are_there = true;
	if (tid != process->pid || wait->kind >= N_THREAD_WAIT_KINDS || interval == STEP_NONE ||
	    interval < scope->first_steady || interval >= scope->n_whole ||
	    (innermost && innermost->phase == PHASE_DATA))
		return;
	add_time(&costs->waits.of_kind[wait->kind], wait->begin, wait->duration_ns, event->stack,
		 innermost ? torsh_span_name(innermost) : NULL);
}

/* ---- life ------------------------------------------------------------------------------------ */

void torsh_cost_add(struct cost_sum *to, const struct cost_sum *sum)
{
	uint64_t longest_ns = to->longest_ns;
	struct cost_sum all = sum->longest_ns >= longest_ns ? *sum : *to;

	all.n = to->n + sum->n;
	all.ns = to->ns + sum->ns;
	*to = all;
}

void torsh_host_costs_settle(struct host_costs *costs, const struct time_scope *scope)
{
	size_t n_steps = scope->n_whole - scope->first_steady;

	torsh_busy_settle(&costs->batches);
	for (size_t i = 0; i < costs->n_constants; i++) {
		if (costs->constants[i].n >= n_steps)
			torsh_cost_add(&costs->of[COST_CONSTANT], &costs->constants[i]);
	}
	torsh_hash_map_free(&costs->known_growing);
	torsh_hash_map_free(&costs->known_constants);
	free(costs->cost_of_name);
	free(costs->constants);
	costs->cost_of_name = NULL;
	costs->constants = NULL;
	costs->n_constants = 0;
}

void torsh_host_costs_free(struct host_costs *costs)
{
	torsh_busy_free(&costs->batches);
	free(costs->growing);
	free(costs->backward);
}
