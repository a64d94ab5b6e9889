/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* External correlation ids: a stack for each thread and kind. */
#include "test/simcuda/cupti/cupti.h"

#include <stdlib.h>

enum { N_KINDS = CUPTI_EXTERNAL_CORRELATION_KIND_SIZE };

static _Thread_local struct ids {
	uint64_t *ids;
	size_t n, capacity;
} stacks[N_KINDS];

CUptiResult do_cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
						      uint64_t id)
{
	CUptiResult result = cupti_check();
	struct ids *stack = &stacks[kind];

	if (result)
		return result;
	if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || (unsigned)kind >= N_KINDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (stack->n == stack->capacity) {
		stack->capacity = stack->capacity ? 2 * stack->capacity : 16;
		stack->ids = realloc(stack->ids, stack->capacity * sizeof(*stack->ids));
	}
	stack->ids[stack->n++] = id;
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
						     uint64_t *lastId)
{
	CUptiResult result = cupti_check();
	struct ids *stack = &stacks[kind];

	if (result)
		return result;
	if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || (unsigned)kind >= N_KINDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!stack->n)
		return CUPTI_ERROR_QUEUE_EMPTY;
	stack->n--;
	if (lastId)
		*lastId = stack->ids[stack->n];
	return CUPTI_SUCCESS;
}

void cupti_record_external_ids(uint32_t correlation)
{
	if (!cupti_kinds[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION].is_on)
		return;
	for (int kind = 1; kind < N_KINDS; kind++) {
		CUpti_ActivityExternalCorrelation record = {
			.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
			.externalKind = (CUpti_ExternalCorrelationKind)kind,
			.correlationId = correlation,
		};

		if (!stacks[kind].n)
			continue;
		record.externalId = stacks[kind].ids[stacks[kind].n - 1];
		cupti_append(&record, sizeof(record));
	}
}
