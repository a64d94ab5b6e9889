/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which processes are workers of a DataLoader, by what they and those that they descend from call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/timeline/prepass/data_workers.h"
#include "tools/timeline/span_phase.h"

#define BATCH_OF_WORKERS "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
#define BATCH "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

/*
 * The one that trains, a server that it forks, what that is after its exec, a worker forked by it;
 * and others.
 */
enum { TRAINING, SERVER_FORKED, SERVER, WORKER, SPAWNED, N_PROCESSES };

static struct recorded_process processes[N_PROCESSES];
static struct recorded_process *const all[N_PROCESSES] = {
	&processes[TRAINING], &processes[SERVER_FORKED], &processes[SERVER], &processes[WORKER],
	&processes[SPAWNED]};

static struct data_workers *start(void)
{
	static const struct recording recording = {.processes = (struct recorded_process **)all,
						   .n_processes = N_PROCESSES};

	processes[TRAINING] = (struct recorded_process){.number = 1, .pid = 10};
	processes[SERVER_FORKED] = (struct recorded_process){
		.number = 2, .pid = 11, .parent_pid = 10, .forked_from = 1};
	processes[SERVER] = (struct recorded_process){
		.number = 3, .pid = 11, .parent_pid = 10, .executed_from = 2};
	processes[WORKER] = (struct recorded_process){.number = 5,
						      .pid = 12,
						      .parent_pid = 11,
						      .forked_from = 3,
						      .start_ns = 50,
						      .end_ns = 500,
						      .has_end_ns = true};
	processes[SPAWNED] =
		(struct recorded_process){.number = 8, .pid = 13, .parent_pid = 10, .start_ns = 50};
	return torsh_data_workers_create(&recording);
}

static void call(struct data_workers *workers, size_t process, const char *name,
		 enum span_phase phase, uint64_t at_ns)
{
	const struct span made = {.process = &processes[process],
				  .traits = torsh_name_traits(name),
				  .phase = phase,
				  .start_ns = at_ns};

	torsh_data_workers_add(workers, &made);
}

static void decide(struct data_workers *workers)
{
	assert_int_equal(torsh_data_workers_decide(workers, all, N_PROCESSES), 0);
	torsh_data_workers_destroy(workers);
	assert_false(processes[TRAINING].is_data_worker);
	assert_false(processes[SERVER].is_data_worker);
}

static void descendants_of_who_gets_batches_are_workers(void **state)
{
	struct data_workers *workers = start();

	(void)state;
	call(workers, TRAINING, BATCH_OF_WORKERS, PHASE_DATA, 100);
	call(workers, WORKER, "aten::stack", PHASE_FORWARD, 60);
	call(workers, SPAWNED, "Normalize:Normalize", PHASE_FORWARD, 70);
	decide(workers);
	assert_true(processes[WORKER].is_data_worker);
	assert_true(processes[SPAWNED].is_data_worker);
}

static void who_trains_or_has_batches_is_none(void **state)
{
	struct data_workers *workers = start();

	(void)state;
	call(workers, TRAINING, BATCH_OF_WORKERS, PHASE_DATA, 100);
	call(workers, WORKER, "AddmmBackward0", PHASE_BACKWARD, 60);
	call(workers, SPAWNED, BATCH, PHASE_DATA, 70);
	decide(workers);
	assert_false(processes[WORKER].is_data_worker);
	assert_false(processes[SPAWNED].is_data_worker);
}

static void without_batches_of_workers_there_are_none(void **state)
{
	struct data_workers *workers = start();

	(void)state;
	call(workers, TRAINING, BATCH, PHASE_DATA, 100);
	call(workers, WORKER, "aten::stack", PHASE_FORWARD, 60);
	decide(workers);
	assert_false(processes[WORKER].is_data_worker);
}

static void batches_before_or_after_its_life_make_none(void **state)
{
	struct data_workers *workers = start();

	(void)state;
	call(workers, TRAINING, BATCH_OF_WORKERS, PHASE_DATA, 501);
	call(workers, WORKER, "aten::stack", PHASE_FORWARD, 60);
	call(workers, SPAWNED, "aten::stack", PHASE_FORWARD, 60);
	decide(workers);
	assert_false(processes[WORKER].is_data_worker);
	assert_true(processes[SPAWNED].is_data_worker);
	workers = start();
	call(workers, TRAINING, BATCH_OF_WORKERS, PHASE_DATA, 49);
	call(workers, WORKER, "aten::stack", PHASE_FORWARD, 60);
	decide(workers);
	assert_false(processes[WORKER].is_data_worker);
}

static void what_a_worker_calls_is_data(void **state)
{
	const struct recorded_process worker = {.is_data_worker = true};
	struct span module = {.kind = SPAN_RANGE, .is_module = true, .process = &worker};
	struct span loss = {.kind = SPAN_OPERATOR, .process = &worker, .traits = NAME_LOSS};

	(void)state;
	torsh_span_set_phase(&module, NULL);
	assert_int_equal(module.phase, PHASE_DATA);
	torsh_span_set_phase(&loss, &module);
	assert_int_equal(loss.phase, PHASE_DATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descendants_of_who_gets_batches_are_workers),
		cmocka_unit_test(who_trains_or_has_batches_is_none),
		cmocka_unit_test(without_batches_of_workers_there_are_none),
		cmocka_unit_test(batches_before_or_after_its_life_make_none),
		cmocka_unit_test(what_a_worker_calls_is_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
