/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Collectives by the kernels of NCCL: PyTorch writes their name, group and size as arguments of the
 * kernel. Where it doesn't (before 2.3), the name is the kernel's and its stream stands for the
 * group.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/ranks/kineto/kineto_event.h"

#define NAME_BYTES 64
#define GROUP_BYTES 160
#define RANKS_SHOWN 80 /* characters, as of recordings */

static unsigned element_bytes(const char *type)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} types[] = {{"Byte", 1},   {"Char", 1},     {"Bool", 1},	  {"Half", 2},
		     {"Short", 2},  {"BFloat16", 2}, {"Int", 4},	  {"Float", 4},
		     {"Double", 8}, {"Long", 8},     {"ComplexFloat", 8}, {"ComplexDouble", 16}};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (!strcmp(types[i].name, type))
			return types[i].bytes;
	}
	return strncmp(type, "Float8", 6) ? 0 : 1;
}

/* ncclDevKernel_AllReduce_Sum_f32_RING_LL(...) is an allreduce, as PyTorch calls it. */
static void name_by_kernel(const char *kernel, char name[NAME_BYTES])
{
	static const char *const names[][2] = {{"AllReduce", "allreduce"},
					       {"AllGather", "allgather"},
					       {"ReduceScatter", "reduce_scatter"},
					       {"Broadcast", "broadcast"},
					       {"SendRecv", "sendrecv"},
					       {"Reduce", "reduce"}};
	const char *what = strchr(kernel, '_');

	for (size_t i = 0; what && i < sizeof(names) / sizeof(*names); i++) {
		if (!strncmp(what + 1, names[i][0], strlen(names[i][0]))) {
			snprintf(name, NAME_BYTES, "%s", names[i][1]);
			return;
		}
	}
	snprintf(name, NAME_BYTES, "nccl");
}

static void name_group(const struct kineto_event *event, char group[GROUP_BYTES])
{
	if (event->group.n)
		snprintf(group, GROUP_BYTES, "%s of %.0f ranks: %.*s", event->group.text,
			 event->group_size > 0 ? event->group_size : 0, RANKS_SHOWN,
			 event->group_ranks.n ? event->group_ranks.text : "?");
	else
		snprintf(group, GROUP_BYTES, "stream %" PRId64, event->stream);
}

void torsh_kineto_add_collective(struct kineto_trace *trace, const struct kineto_event *event)
{
	char name[NAME_BYTES], group[GROUP_BYTES];
	double most = event->n_in > event->n_out ? event->n_in : event->n_out;
	struct kineto_collective *one;

	if (torsh_kineto_type(event->name.text) != TYPE_COMMUNICATION || event->dur_us < 0)
		return;
	if (event->collective.n)
		snprintf(name, sizeof(name), "%s", event->collective.text);
	else
		name_by_kernel(event->name.text, name);
	name_group(event, group);
	trace->collectives = torsh_array_reserve(trace->collectives, trace->n_collectives,
						 &trace->collectives_room, sizeof(*one));
	one = &trace->collectives[trace->n_collectives++];
	one->name = torsh_rank_collectives_text(&trace->texts, name, strlen(name));
	one->group = torsh_rank_collectives_text(&trace->texts, group, strlen(group));
	if (most > 0 && most < 1e15 && event->type.n)
		one->bytes = (uint64_t)most * element_bytes(event->type.text);
	if (event->group_size > 0 && event->group_size < UINT32_MAX)
		one->group_size = (uint32_t)event->group_size;
	if (event->sequence >= 0 && event->sequence < 1e15)
		one->sequence = (uint64_t)event->sequence + 1;
	one->start_us = event->start_us;
	one->dur_us = event->dur_us;
	one->correlation = event->correlation;
}
