/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The kinds of tensors, by lives made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tools/device/owners/tensor_kind.h"

#define NEVER N_PHASES

/* A tensor made in a phase by the operator of call 1, and freed in another one by none. */
static struct tensor_life lived(enum span_phase made, enum span_phase freed)
{
	return (struct tensor_life){
		.made = {.phase = made, .pass = made == PHASE_BACKWARD ? 1 : PASS_NONE, .call = 1},
		.freed = {.phase = freed == NEVER ? PHASE_SETUP : freed,
			  .pass = freed == PHASE_BACKWARD ? 1 : PASS_NONE},
		.is_freed = freed != NEVER,
		.has_operator = true,
		.has_graph = made == PHASE_FORWARD,
		.is_of_backward = made == PHASE_BACKWARD,
		.is_in_module = made == PHASE_FORWARD,
		.is_module_over = made == PHASE_FORWARD,
		.source = FROM_DEVICE,
	};
}

static void expect(const struct tensor_life *life, enum owner_kind kind)
{
	struct tensor_kind found = torsh_tensor_kind(life);

	assert_string_equal(torsh_owner_names[found.kind], torsh_owner_names[kind]);
	assert_int_equal(found.kind == OWNER_UNKNOWN && !found.reason, 0);
}

static void what_backward_frees_of_the_forward_pass_is_an_activation(void **state)
{
	struct tensor_life life = lived(PHASE_FORWARD, PHASE_BACKWARD);

	(void)state;
	expect(&life, OWNER_ACTIVATIONS);
	life.made.phase = PHASE_LOSS;
	expect(&life, OWNER_ACTIVATIONS);
	life.is_in_module = false;
	expect(&life, OWNER_ACTIVATIONS);
	/* The gradient that a backward pass starts with. */
	life.is_first_gradient = true;
	expect(&life, OWNER_TEMPORARIES);
}

static void what_its_own_call_frees_is_temporary(void **state)
{
	static const enum span_phase phases[] = {PHASE_SETUP, PHASE_FORWARD, PHASE_LOSS,
						 PHASE_BACKWARD, PHASE_OPTIMIZER};
	struct tensor_life life;

	(void)state;
	for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++) {
		life = lived(phases[i], phases[i]);
		life.freed.call = life.made.call;
		expect(&life, OWNER_TEMPORARIES);
	}
	/* Between the operators of its module. */
	life = lived(PHASE_FORWARD, PHASE_FORWARD);
	life.is_module_over = false;
	expect(&life, OWNER_TEMPORARIES);
}

static void a_gradient_outlives_its_backward_pass(void **state)
{
	struct tensor_life life = lived(PHASE_BACKWARD, PHASE_OPTIMIZER);

	(void)state;
	expect(&life, OWNER_GRADIENTS);
	life = lived(PHASE_BACKWARD, NEVER);
	expect(&life, OWNER_GRADIENTS);
	/* Of several passes in a step: a later one frees it. */
	life = lived(PHASE_BACKWARD, PHASE_BACKWARD);
	life.freed.pass = 2;
	expect(&life, OWNER_GRADIENTS);
	life.freed.pass = 1;
	expect(&life, OWNER_TEMPORARIES);
	/* A norm of all gradients, that the program keeps. */
	life = lived(PHASE_BACKWARD, NEVER);
	life.is_of_backward = false;
	expect(&life, OWNER_OUTPUTS);
}

static void the_optimizers_state_outlives_its_step(void **state)
{
	struct tensor_life life = lived(PHASE_OPTIMIZER, PHASE_OPTIMIZER);

	(void)state;
	life.made.update = life.freed.update = 7;
	expect(&life, OWNER_TEMPORARIES);
	life.freed.update = 8;
	expect(&life, OWNER_OPTIMIZER_STATE);
	life = lived(PHASE_OPTIMIZER, NEVER);
	expect(&life, OWNER_OPTIMIZER_STATE);
	/* Loaded from a file before the first step. */
	life = lived(PHASE_SETUP, NEVER);
	life.evidence = STACK_OF_OPTIMIZER;
	expect(&life, OWNER_OPTIMIZER_STATE);
}

static void parameters_are_known_by_their_stack_or_their_shape(void **state)
{
	struct tensor_life life = lived(PHASE_SETUP, NEVER);

	(void)state;
	life.source = FROM_HOST;
	expect(&life, OWNER_INPUTS);
	life.evidence = STACK_OF_MODULE;
	expect(&life, OWNER_PARAMETERS);
	life.evidence = STACK_SHOWS_NOTHING;
	life.has_parameter_shape = true;
	expect(&life, OWNER_PARAMETERS);
	/* A step's input with a parameter's shape lives into the next step. */
	life.is_freed = true;
	life.freed.phase = PHASE_FORWARD;
	life.n_passes = 1;
	expect(&life, OWNER_INPUTS);
	life.n_passes = 2;
	expect(&life, OWNER_PARAMETERS);
}

static void inputs_come_from_the_host_or_from_nothing(void **state)
{
	struct tensor_life life = lived(PHASE_FORWARD, PHASE_FORWARD);

	(void)state;
	life.is_in_module = life.is_module_over = life.has_graph = false;
	expect(&life, OWNER_TEMPORARIES);
	life.source = FROM_HOST;
	expect(&life, OWNER_INPUTS);
	life.source = FROM_NOTHING;
	expect(&life, OWNER_INPUTS);
	/* Within a module it is an intermediate result: the first state of a recurrent one. */
	life.is_in_module = true;
	expect(&life, OWNER_TEMPORARIES);
	life = lived(PHASE_DATA, NEVER);
	expect(&life, OWNER_INPUTS);
}

static void results_that_outlive_their_pass_are_outputs(void **state)
{
	struct tensor_life life = lived(PHASE_FORWARD, PHASE_FORWARD);

	(void)state;
	life.n_passes = 1;
	expect(&life, OWNER_OUTPUTS);
	/* Without autograd a module's result is one as well. */
	life.n_passes = 0;
	life.has_graph = false;
	life.is_module_over = true;
	expect(&life, OWNER_OUTPUTS);
	/* With it, its graph is kept: a backward pass may follow. */
	life = lived(PHASE_FORWARD, NEVER);
	expect(&life, OWNER_ACTIVATIONS);
	assert_non_null(torsh_tensor_kind(&life).reason);
}

static void a_checkpoints_second_forward_pass_makes_activations(void **state)
{
	struct tensor_life life = lived(PHASE_BACKWARD, PHASE_BACKWARD);

	(void)state;
	life.is_of_backward = false;
	life.has_graph = life.is_in_module = life.is_module_over = true;
	expect(&life, OWNER_ACTIVATIONS);
	life.is_module_over = false;
	expect(&life, OWNER_TEMPORARIES);
}

static void a_librarys_workspace_is_one_in_each_phase(void **state)
{
	struct tensor_life life = lived(PHASE_FORWARD, NEVER);

	(void)state;
	life.evidence = STACK_OF_LIBRARY;
	expect(&life, OWNER_WORKSPACE);
	life.freed.call = life.made.call;
	life.is_freed = true;
	expect(&life, OWNER_WORKSPACE);
}

static void what_nothing_shows_is_unknown_with_a_reason(void **state)
{
	struct tensor_life life = lived(PHASE_FORWARD, NEVER);

	(void)state;
	life.has_operator = false;
	expect(&life, OWNER_UNKNOWN);
	life = lived(PHASE_SETUP, NEVER);
	expect(&life, OWNER_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_backward_frees_of_the_forward_pass_is_an_activation),
		cmocka_unit_test(what_its_own_call_frees_is_temporary),
		cmocka_unit_test(a_gradient_outlives_its_backward_pass),
		cmocka_unit_test(the_optimizers_state_outlives_its_step),
		cmocka_unit_test(parameters_are_known_by_their_stack_or_their_shape),
		cmocka_unit_test(inputs_come_from_the_host_or_from_nothing),
		cmocka_unit_test(results_that_outlive_their_pass_are_outputs),
		cmocka_unit_test(a_checkpoints_second_forward_pass_makes_activations),
		cmocka_unit_test(a_librarys_workspace_is_one_in_each_phase),
		cmocka_unit_test(what_nothing_shows_is_unknown_with_a_reason),
	};

	return cmocka_run_group_tests_name("tensor_kind", tests, NULL, NULL);
}
