/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lines of the ground truth for kernels, copies and memsets. */
#include "test/simcuda/engine/log/op_log.h"

#include <stdio.h>

#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/engine/queue.h"

enum { MAX_COMMON = 512 };

/* What all lines have, without braces. */
static const char *common_of(const struct sim_op *op, char text[MAX_COMMON])
{
	snprintf(
		text, MAX_COMMON,
		"\"device\":%d,\"context\":%u,\"stream\":%u,\"correlation\":%lu,\"thread\":%u,\"graph\":%u,\"node\":%lu,"
		"\"submitted\":%lu,\"start\":%lu,\"end\":%lu,\"error\":%d",
		op->device->ordinal, op->context->id, op->stream_id, op->correlation, op->thread,
		op->graph_id, op->graph_node, op->submitted_ns, op->start_ns, op->end_ns,
		op->error);
	return text;
}

static void log_kernel(const struct sim_op *op)
{
	const struct sim_kernel_work *kernel = &op->work.kernel;
	char common[MAX_COMMON];

	sim_log("{\"kind\":\"kernel\",\"name\":%s,\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared\":%u,"
		"\"registers\":%u,%s}",
		sim_log_quoted(kernel->name), kernel->grid[0], kernel->grid[1], kernel->grid[2],
		kernel->block[0], kernel->block[1], kernel->block[2], kernel->dynamic_shared_bytes,
		kernel->registers, common_of(op, common));
}

static void log_copy(const struct sim_op *op)
{
	const struct sim_copy_work *copy = &op->work.copy;
	char common[MAX_COMMON];

	sim_log("{\"kind\":\"memcpy\",\"copy\":\"%s\",\"bytes\":%zu,\"from_kind\":%d,\"to_kind\":%d,\"async\":%d,%s}",
		sim_copy_name(sim_copy_kind(copy)), sim_copy_bytes(copy), copy->from_kind,
		copy->to_kind, copy->is_async, common_of(op, common));
}

static void log_memset(const struct sim_op *op)
{
	const struct sim_memset_work *memset = &op->work.memset;
	char common[MAX_COMMON];

	sim_log("{\"kind\":\"memset\",\"bytes\":%zu,\"value\":%u,\"async\":%d,%s}",
		memset->width * memset->height, memset->value, memset->is_async,
		common_of(op, common));
}

static void log_op(const struct sim_op *op)
{
	char common[MAX_COMMON];

	switch (op->work.kind) {
	case SIM_KERNEL:
		log_kernel(op);
		break;
	case SIM_COPY:
		log_copy(op);
		break;
	case SIM_MEMSET:
		log_memset(op);
		break;
	case SIM_HOST:
		sim_log("{\"kind\":\"host\",%s}", common_of(op, common));
		break;
	default:
		if (op->ends_graph)
			sim_log("{\"kind\":\"graph\",\"first\":%lu,%s}", op->graph_start_ns,
				common_of(op, common));
	}
}

void sim_op_report(const struct sim_op *op)
{
	const struct sim_tracer *tracer = sim_tracer();

	if (tracer && tracer->op_ends)
		tracer->op_ends(op);
	if (sim_log_is_on())
		log_op(op);
}
