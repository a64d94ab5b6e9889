/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The graph of what had to come before what, against a search of all chains: on small random
 * graphs, as recorded, without some of the work, and without waits for devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/analysis/critical/graph.h"

enum { NODES_MAX = 14, NEEDS_MAX = 3, WHATS = 3, ROUNDS = 4000 };

/* A graph as it is meant: its recorded times follow from it. */
struct meant {
	size_t n;
	struct {
		uint64_t work_ns, begin_ns, end_ns;
		uint32_t what;
		size_t n_needs, needs[NEEDS_MAX];
		uint32_t least_ns[NEEDS_MAX]; /* as the graph receives them */
		uint64_t delay_ns[NEEDS_MAX]; /* more for what it began for, which took so long */
		enum edge_kind kind[NEEDS_MAX];
	} nodes[NODES_MAX];
};

struct left_out {
	bool is_free[WHATS], without_sync;
};

/*
 * The end of the longest chain that leads to the node, of all chains, each followed to its begin.
 * A need that is left out leads nowhere; a node without any begins when it did.
 */
static int64_t longest(const struct meant *meant, size_t at, const struct left_out *left_out)
{
	int64_t work_ns =
		left_out->is_free[meant->nodes[at].what] ? 0 : (int64_t)meant->nodes[at].work_ns;
	int64_t most = INT64_MIN;

	for (size_t i = 0; i < meant->nodes[at].n_needs; i++) {
		int64_t end_ns;

		if (left_out->without_sync && meant->nodes[at].kind[i] == EDGE_SYNC)
			continue;
		end_ns = longest(meant, meant->nodes[at].needs[i], left_out) +
			 (int64_t)meant->nodes[at].delay_ns[i];
		most = end_ns > most ? end_ns : most;
	}
	return (most == INT64_MIN ? (int64_t)meant->nodes[at].begin_ns : most) + work_ns;
}

/* Returns when the last of a node's needs is over; *last: which one, the same as others or not. */
static uint64_t last_need(const struct meant *meant, size_t at, size_t *last, bool *is_alone)
{
	uint64_t last_ns = 0;

	*is_alone = true;
	for (size_t k = 0; k < meant->nodes[at].n_needs; k++) {
		uint64_t end_ns = meant->nodes[meant->nodes[at].needs[k]].end_ns +
				  meant->nodes[at].least_ns[k];

		*is_alone = end_ns == last_ns ? false : end_ns > last_ns ? true : *is_alone;
		*last = end_ns > last_ns ? k : *last;
		last_ns = end_ns > last_ns ? end_ns : last_ns;
	}
	return last_ns;
}

static void make_meant(struct meant *meant, uint64_t *seed)
{
	memset(meant, 0, sizeof(*meant));
	meant->n = 2 + random_below(seed, NODES_MAX - 1);
	for (size_t i = 0; i < meant->n; i++) {
		uint64_t begin_ns = 100 + random_below(seed, 500), lag_ns;
		size_t last = 0;
		bool is_alone = true;

		meant->nodes[i].what = (uint32_t)random_below(seed, WHATS);
		meant->nodes[i].work_ns = random_below(seed, 4) ? 1 + random_below(seed, 1000) : 0;
		meant->nodes[i].n_needs = i ? random_below(seed, NEEDS_MAX + 1) : 0;
		for (size_t k = 0; k < meant->nodes[i].n_needs; k++) {
			meant->nodes[i].needs[k] = random_below(seed, i);
			meant->nodes[i].least_ns[k] = (uint32_t)random_below(seed, 20);
			meant->nodes[i].delay_ns[k] = meant->nodes[i].least_ns[k];
			meant->nodes[i].kind[k] = random_below(seed, N_EDGE_KINDS);
		}
		if (meant->nodes[i].n_needs) {
			begin_ns = last_need(meant, i, &last, &is_alone);
			/* Of two that end at once it isn't known which one took longer. */
			lag_ns = is_alone ? random_below(seed, 2) * random_below(seed, 100) : 0;
			meant->nodes[i].delay_ns[last] += lag_ns;
			begin_ns += lag_ns;
		}
		meant->nodes[i].begin_ns = begin_ns;
		meant->nodes[i].end_ns = begin_ns + meant->nodes[i].work_ns;
	}
}

static void give(const struct meant *meant, struct graph *graph)
{
	for (size_t i = 0; i < meant->n; i++) {
		torsh_graph_add(graph, meant->nodes[i].begin_ns, meant->nodes[i].end_ns,
				meant->nodes[i].what);
		for (size_t k = 0; k < meant->nodes[i].n_needs; k++)
			torsh_graph_need(graph, (uint32_t)i, (uint32_t)meant->nodes[i].needs[k],
					 meant->nodes[i].kind[k], meant->nodes[i].least_ns[k]);
	}
	torsh_graph_settle(graph);
}

static void expect_ends(const struct meant *meant, const struct graph *graph,
			const struct left_out *left_out)
{
	const struct graph_change change = {.is_free = left_out->is_free,
					    .without_sync = left_out->without_sync};
	int64_t ends[NODES_MAX];

	torsh_graph_replay(graph, &change, ends);
	for (size_t i = 0; i < meant->n; i++)
		assert_int_equal(ends[i], longest(meant, i, left_out));
}

static void a_replay_ends_as_the_longest_of_all_chains(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		struct left_out left_out = {.without_sync = random_below(&seed, 2)};
		const struct left_out none = {.without_sync = false};
		struct graph graph = {.n = 0};
		struct meant meant;

		make_meant(&meant, &seed);
		give(&meant, &graph);
		assert_int_equal(graph.n_contradicting, 0);
		for (size_t i = 0; i < meant.n; i++)
			assert_int_equal(longest(&meant, i, &none), meant.nodes[i].end_ns);
		expect_ends(&meant, &graph, &none);
		for (size_t i = 0; i < WHATS; i++)
			left_out.is_free[i] = random_below(&seed, 2);
		expect_ends(&meant, &graph, &left_out);
		torsh_graph_free(&graph);
	}
}

/* ---- paths ----------------------------------------------------------------------------------- */

struct pieces {
	uint64_t work_ns[WHATS], between_ns;
};

static void add_piece(void *context, const struct graph_node *node, bool is_work, uint64_t ns)
{
	struct pieces *pieces = context;

	assert_true(ns > 0);
	*(is_work ? &pieces->work_ns[node->what] : &pieces->between_ns) += ns;
}

/*
 * What the chains that end last consist of, from from_ns on: of several that end at the same time
 * each is tried. Returns whether one has these pieces.
 */
static bool is_chain(const struct meant *meant, size_t at, uint64_t from_ns, struct pieces left)
{
	uint64_t begin_ns = meant->nodes[at].begin_ns, end_ns = meant->nodes[at].end_ns;
	uint64_t last_ns = 0;

	if (end_ns > from_ns)
		left.work_ns[meant->nodes[at].what] -=
			end_ns - (begin_ns > from_ns ? begin_ns : from_ns);
	if (begin_ns <= from_ns || !meant->nodes[at].n_needs) {
		if (begin_ns > from_ns)
			left.between_ns -= begin_ns - from_ns;
		return !left.between_ns && !left.work_ns[0] && !left.work_ns[1] && !left.work_ns[2];
	}
	for (size_t i = 0; i < meant->nodes[at].n_needs; i++) {
		uint64_t ns = meant->nodes[meant->nodes[at].needs[i]].end_ns +
			      meant->nodes[at].least_ns[i];

		last_ns = ns > last_ns ? ns : last_ns;
	}
	for (size_t i = 0; i < meant->nodes[at].n_needs; i++) {
		size_t need = meant->nodes[at].needs[i];
		uint64_t until_ns = meant->nodes[need].end_ns;
		struct pieces rest = left;

		if (until_ns + meant->nodes[at].least_ns[i] != last_ns)
			continue;
		rest.between_ns -= begin_ns - (until_ns > from_ns ? until_ns : from_ns);
		if (until_ns <= from_ns ? !rest.between_ns && !rest.work_ns[0] &&
						  !rest.work_ns[1] && !rest.work_ns[2]
					: is_chain(meant, need, from_ns, rest))
			return true;
	}
	return false;
}

static void a_path_is_a_chain_that_ends_last_and_adds_up(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		struct graph graph = {.n = 0};
		struct meant meant;
		size_t at;

		make_meant(&meant, &seed);
		give(&meant, &graph);
		for (at = 0; at < meant.n; at++) {
			uint64_t end_ns = meant.nodes[at].end_ns,
				 from_ns = random_below(&seed, end_ns);
			struct pieces pieces = {.between_ns = 0};

			torsh_graph_walk(&graph, (uint32_t)at, from_ns, end_ns, add_piece, &pieces);
			assert_int_equal(pieces.work_ns[0] + pieces.work_ns[1] + pieces.work_ns[2] +
						 pieces.between_ns,
					 end_ns - from_ns);
			assert_true(is_chain(&meant, at, from_ns, pieces));
		}
		torsh_graph_free(&graph);
	}
}

/* ---- what times contradict ------------------------------------------------------------------- */

static void needs_that_end_too_late_are_left_out_and_counted(void **state)
{
	const struct graph_change none = {.is_free = NULL};
	struct graph graph = {.n = 0};
	int64_t ends[4];

	(void)state;
	torsh_graph_add(&graph, 0, 10000, 0);
	torsh_graph_add(&graph, 5000, 6000, 0); /* begins long before that ends */
	torsh_graph_add(&graph, 10000 - GRAPH_TOLERANCE_NS, 20000, 0); /* clocks differ so much */
	torsh_graph_add(&graph, 10000 - GRAPH_TOLERANCE_NS - 1, 20000, 0);
	for (uint32_t i = 1; i < 4; i++)
		torsh_graph_need(&graph, i, 0, EDGE_ORDER, 0);
	torsh_graph_need(&graph, 1, GRAPH_NONE, EDGE_ORDER, 0);
	torsh_graph_settle(&graph);
	assert_int_equal(graph.n_contradicting, 2);
	assert_int_equal(graph.edges[graph.nodes[2].last].delay_ns, -(int64_t)GRAPH_TOLERANCE_NS);
	torsh_graph_replay(&graph, &none, ends);
	assert_int_equal(ends[1], 6000);
	assert_int_equal(ends[2], 20000);
	torsh_graph_free(&graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replay_ends_as_the_longest_of_all_chains),
		cmocka_unit_test(a_path_is_a_chain_that_ends_last_and_adds_up),
		cmocka_unit_test(needs_that_end_too_late_are_left_out_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
