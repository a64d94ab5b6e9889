/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/lead.h"

static void prepare(struct lead_cursor *cursor, const struct process_pass *pass)
{
	for (size_t i = 0; i < pass->compute.n; i++)
		torsh_busy_add(&cursor->under_way, pass->compute.intervals[i].begin_ns,
			       pass->compute.intervals[i].end_ns);
	for (size_t i = 0; i < pass->collectives.n; i++) {
		const struct rank_collective *of = &pass->collectives.items[i];

		if (of->has_wait)
			torsh_busy_add(&cursor->under_way, of->wait_begin_ns,
				       of->wait_begin_ns + of->waited_ns);
		else if (of->flags & FOLD_SAMPLE_ENDS && of->end_ns > of->issued_ns)
			torsh_busy_add(&cursor->under_way, of->issued_ns, of->end_ns);
	}
	torsh_busy_settle(&cursor->under_way);
	cursor->is_ready = true;
}

void torsh_lead_of(struct lead_cursor *cursor, const struct process_pass *pass, size_t i,
		   uint64_t leads[N_FOLD_LEADS])
{
	const struct rank_collective *of = &pass->collectives.items[i], *before = of - 1;
	uint64_t from, to = of->issued_ns, gc, data, compute, known;

	for (size_t k = 0; k < N_FOLD_LEADS; k++)
		leads[k] = 0;
	if (!cursor->is_ready)
		prepare(cursor, pass);
	if (!i || before->issued_ns >= to)
		return;
	from = before->issued_ns;
	gc = torsh_busy_within(&pass->gc, from, to, &cursor->gc);
	data = torsh_busy_within(&pass->data, from, to, &cursor->data);
	compute = torsh_busy_within(&pass->compute, from, to, &cursor->compute);
	known = torsh_busy_within(&cursor->under_way, from, to, &cursor->waiting);
	leads[FOLD_LEAD_gc_ns] = gc;
	leads[FOLD_LEAD_data_ns] = data - gc;
	leads[FOLD_LEAD_compute_ns] = compute - data;
	leads[FOLD_LEAD_waiting_ns] = known - compute;
	leads[FOLD_LEAD_python_ns] = to - from - known;
	leads[FOLD_LEAD_operators] = of->n_operators - before->n_operators;
}

uint64_t torsh_lead_exposed(struct lead_cursor *cursor, const struct process_pass *pass, size_t i)
{
	const struct rank_collective *of = &pass->collectives.items[i];
	const struct busy *busy =
		of->flags & FOLD_SAMPLE_ON_DEVICE ? &pass->kernels : &pass->compute;

	if (of->has_wait)
		return of->waited_ns;
	if (!(of->flags & FOLD_SAMPLE_ENDS) || of->end_ns <= of->entered_ns)
		return 0;
	/* Kernels of several streams may begin in another order than they were issued in. */
	if (of->entered_ns < cursor->last_entered_ns)
		cursor->exposed = 0;
	cursor->last_entered_ns = of->entered_ns;
	return of->end_ns - of->entered_ns -
	       torsh_busy_within(busy, of->entered_ns, of->end_ns, &cursor->exposed);
}

void torsh_lead_end(struct lead_cursor *cursor)
{
	torsh_busy_free(&cursor->under_way);
}
