/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the tests of stack capture share: hooks that take a stack, follow its differences, and compare each result with
 * libunwind's, address by address. The registry and the counters are stand-ins.
 *
 * A comparison may run in a signal handler: it only counts. expect_no_mismatch() is the assertion.
 */
#ifndef TORSH_TEST_STACK_FIXTURE_H
#define TORSH_TEST_STACK_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/arbiter.h"
#include "agent/counter.h"
#include "agent/registry.h"
#include "agent/stack.h"
#include "shim/sys.h"

#define FRAMELESS __attribute__((noinline, noclone, optimize("omit-frame-pointer")))
#define NOINLINE __attribute__((noinline, noclone))
#define N_ADDRESSES (1u << 20)

static _Atomic uint64_t counters[N_COUNTERS];
_Atomic uint64_t *torsh_counters = counters;

static struct {
	uintptr_t ip;
	uint32_t flags;
} addresses[N_ADDRESSES];
static _Atomic uint32_t n_addresses = 1;

uint32_t torsh_registry_add_address(uintptr_t ip, uint32_t flags)
{
	uint32_t id = atomic_fetch_add(&n_addresses, 1);

	if (id >= N_ADDRESSES)
		return REGISTRY_FULL;
	addresses[id].ip = ip;
	addresses[id].flags = flags;
	return id;
}

void torsh_registry_forget_modules(void)
{
}

/* One sequence of captures, and the stack that its differences make up. */
struct flow {
	struct stack *stack;
	uint32_t depth;
	uint32_t last_pop;
	uint32_t ids[STACK_MAX_FRAMES];
	uintptr_t arbiters[ARBITER_MAX_FRAMES];
};

static struct {
	_Atomic uint64_t n_compared, n_mismatches, n_bad_deltas, n_cut, n_deepest;
	_Atomic int has_first;
	uint32_t n_ours, n_arbiters;
	uintptr_t ours[64], arbiters[64];
} outcome;

static __thread struct flow *main_flow, *signal_flow;

static struct flow *make_flow(void)
{
	struct flow *flow = calloc(1, sizeof(*flow));

	assert_non_null(flow);
	flow->stack = torsh_stack_place(torsh_sys_pages(torsh_stack_bytes()));
	assert_non_null(flow->stack);
	return flow;
}

static void destroy_flow(struct flow *flow)
{
	torsh_stack_leave(flow->stack);
	torsh_sys_munmap(flow->stack, torsh_stack_bytes());
	free(flow);
}

static void make_flows(void)
{
	main_flow = make_flow();
	signal_flow = make_flow();
}

static void destroy_flows(void)
{
	destroy_flow(main_flow);
	destroy_flow(signal_flow);
	main_flow = signal_flow = NULL;
}

static void note_mismatch(const struct flow *flow, uint32_t n_arbiters)
{
	outcome.n_mismatches++;
	if (atomic_exchange(&outcome.has_first, 1))
		return;
	outcome.n_ours = flow->depth;
	outcome.n_arbiters = n_arbiters;
	for (uint32_t i = 0; i < 64 && i < flow->depth; i++)
		outcome.ours[i] = addresses[flow->ids[flow->depth - 1 - i]].ip;
	for (uint32_t i = 0; i < 64 && i < n_arbiters; i++)
		outcome.arbiters[i] = flow->arbiters[i];
}

static int is_cut(const struct flow *flow)
{
	return flow->depth && addresses[flow->ids[0]].flags >= ADDRESS_CUT_UNKNOWN_CODE;
}

static void compare(struct flow *flow, const void *frame)
{
	uint32_t n_arbiters = torsh_arbiter_walk((uintptr_t)frame + 16, flow->arbiters);
	uint32_t has_cut = (uint32_t)is_cut(flow), n = flow->depth - has_cut;

	/* A signal interrupted a comparison. */
	if (n_arbiters == ARBITER_NOT_ASKED)
		return;
	outcome.n_compared++;
	outcome.n_cut += has_cut;
	if (n > outcome.n_deepest)
		outcome.n_deepest = n;
	if (n > n_arbiters || (!has_cut && n != n_arbiters)) {
		note_mismatch(flow, n_arbiters);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (addresses[flow->ids[flow->depth - 1 - i]].ip != flow->arbiters[i]) {
			note_mismatch(flow, n_arbiters);
			return;
		}
	}
}

static void capture(struct flow *flow, const void *frame)
{
	struct stack_delta delta;
	int kept_errno = errno;

	torsh_stack_capture(flow->stack, frame, &delta);
	if (errno != kept_errno)
		outcome.n_bad_deltas++;
	flow->last_pop = delta.pop;
	if (delta.pop == STACK_POP_ALL)
		flow->depth = 0;
	else if (delta.pop <= flow->depth)
		flow->depth -= delta.pop;
	else
		outcome.n_bad_deltas++;
	for (uint32_t i = 0; i < delta.n_push && flow->depth < STACK_MAX_FRAMES; i++)
		flow->ids[flow->depth++] = delta.push[i];
}

/* Like malloc's wrapper: its frame pointer leads to its caller. */
NOINLINE static void hook(void)
{
	capture(main_flow, __builtin_frame_address(0));
	compare(main_flow, __builtin_frame_address(0));
}

static void begin_comparing(void)
{
	outcome.n_compared = outcome.n_mismatches = outcome.n_bad_deltas = outcome.n_cut = outcome.n_deepest = 0;
	outcome.has_first = 0;
}

static void expect_no_mismatch(uint64_t at_least)
{
	if (outcome.n_mismatches) {
		print_error("%lu of %lu stacks differ; the first:\n", (unsigned long)outcome.n_mismatches,
			    (unsigned long)outcome.n_compared);
		for (uint32_t i = 0; i < 64 && (i < outcome.n_ours || i < outcome.n_arbiters); i++)
			print_error("%3u  %#18lx %#18lx\n", i, i < outcome.n_ours ? outcome.ours[i] : 0,
				    i < outcome.n_arbiters ? outcome.arbiters[i] : 0);
	}
	assert_int_equal(outcome.n_mismatches, 0);
	assert_int_equal(outcome.n_bad_deltas, 0);
	assert_true(outcome.n_compared >= at_least);
}

static int start_fixture(void **state)
{
	(void)state;
	torsh_stack_start();
	if (torsh_arbiter_open()) {
		print_message("libunwind.so.8 is not here: nothing to compare with\n");
		exit(77);
	}
	make_flows();
	return 0;
}

static int stop_fixture(void **state)
{
	(void)state;
	print_message("%lu stacks compared in the last case\n", (unsigned long)outcome.n_compared);
	destroy_flows();
	return 0;
}

#endif
