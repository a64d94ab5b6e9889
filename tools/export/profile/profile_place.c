/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Assigns the collected device activities to their operators, and sorts both. */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/profile/profile_collect.h"

/*
 * Returns the operator of a torch.compile kernel that no operator launched: the first of those
 * that it was fused from.
 */
static uint32_t operator_of_fused(struct profile_json *profile, const struct profile_work *work)
{
	struct known_name *name = torsh_profile_name(profile, work->by.operator_name);
	struct profile_operator *op = torsh_profile_add_operator(
		profile, work->process, torsh_profile_next_id(name), ATTRIBUTION_BY_INDUCTOR);

	op->start_ns = work->record.begin_ns;
	return (uint32_t)profile->n_operators - 1;
}

/* Activities without a launching span are merged by family and process. */
static uint32_t operator_of_family(struct profile_json *profile, const struct profile_work *work,
				   size_t from)
{
	char *text = torsh_need_text("kernel_family::%s", work->by.family);
	struct known_name *name = torsh_profile_name(profile, text);

	free(text);
	for (size_t i = from; i < profile->n_operators; i++) {
		if (profile->operators[i].id.name == name->text &&
		    profile->operators[i].process == work->process)
			return (uint32_t)i;
	}
	torsh_profile_add_operator(profile, work->process, torsh_profile_next_id(name),
				   ATTRIBUTION_BY_FAMILY)
		->start_ns = work->record.begin_ns;
	return (uint32_t)profile->n_operators - 1;
}

/*
 * Returns false if the activity is left out. n_calls: number of operators that are spans; later
 * ones are made up from names.
 */
static bool place_work(struct profile_json *profile, struct profile_work *work, size_t n_calls)
{
	work->op = NO_OPERATOR;
	if (work->by.owner == OWNER_LEFT_OUT)
		return false;
	if (work->by.method == ATTRIBUTION_BY_CAPTURE &&
	    !torsh_profile_selects(profile, work->process, work->record.begin_ns))
		return false;
	if (work->by.owner >= OWNER_FIRST) {
		work->op = work->by.owner - OWNER_FIRST;
		profile->operators[work->op].method = work->by.method;
		return true;
	}
	if (!torsh_profile_selects(profile, work->process, work->record.begin_ns))
		return false;
	if (work->by.method == ATTRIBUTION_BY_INDUCTOR)
		work->op = operator_of_fused(profile, work);
	else if (work->by.method == ATTRIBUTION_BY_FAMILY)
		work->op = operator_of_family(profile, work, n_calls);
	return true;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_work(const void *a, const void *b)
{
	const struct profile_work *x = a, *y = b;
	int rc = compare_numbers(x->record.begin_ns, y->record.begin_ns);

	rc = rc ? rc : compare_numbers(x->process->number, y->process->number);
	rc = rc ? rc : compare_numbers(x->record.correlation, y->record.correlation);
	rc = rc ? rc : compare_numbers(x->record.node, y->record.node);
	return rc ? rc : compare_numbers(x->record.stream, y->record.stream);
}

static void place_all(struct profile_json *profile)
{
	size_t n_calls = profile->n_operators, n = 0, n_kernels = 0;

	if (profile->n_work)
		qsort(profile->work, profile->n_work, sizeof(*profile->work), compare_work);
	for (size_t i = 0; i < profile->n_work; i++) {
		struct profile_work *work = &profile->work[i];

		if (!place_work(profile, work, n_calls))
			continue;
		work->number = work->record.what == DEVICE_KERNEL ? n_kernels++ : n - n_kernels;
		profile->work[n++] = *work;
	}
	profile->n_work = n;
}

/* Set the order by which activities are sorted by operator. */
static void order_work(struct profile_json *profile)
{
	size_t at = 0;

	profile->order = torsh_need_items(NULL, 0, profile->n_work + 1, sizeof(*profile->order));
	for (size_t i = 0; i < profile->n_work; i++) {
		if (profile->work[i].op != NO_OPERATOR)
			profile->operators[profile->work[i].op].n++;
		else
			profile->n_unattributed++;
	}
	for (size_t i = 0; i < profile->n_operators; i++) {
		profile->operators[i].first = at;
		at += profile->operators[i].n;
		profile->operators[i].n = 0;
	}
	for (size_t i = 0; i < profile->n_work; i++) {
		struct profile_operator *op = profile->work[i].op != NO_OPERATOR
						      ? &profile->operators[profile->work[i].op]
						      : NULL;

		if (op)
			profile->order[op->first + op->n++] = (uint32_t)i;
		else
			profile->order[at++] = (uint32_t)i;
	}
}

void torsh_profile_place(struct profile_json *profile)
{
	place_all(profile);
	order_work(profile);
}
