/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * shim/nccl/nccl.h against the offsets that a compiler finds in the headers of NCCL's public
 * source, src/include/plugin/profiler of 2.30.7: no package installs these. The structs of
 * interfaces 1 to 5 are the same in all releases that have them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "shim/nccl/nccl.h"

static const struct place {
	size_t ours, theirs;
	const char *field;
} places[] = {
	{offsetof(struct nccl_descriptor, parent), 8, "parent"},
	{offsetof(struct nccl_descriptor, rank), 16, "rank"},
	{offsetof(struct nccl_descriptor, collective_1.communicator_name), 24,
	 "collective_1.communicator_name"},
	{offsetof(struct nccl_descriptor, collective_1.communicator_hash), 32,
	 "collective_1.communicator_hash"},
	{offsetof(struct nccl_descriptor, collective_1.sequence), 40, "collective_1.sequence"},
	{offsetof(struct nccl_descriptor, collective_1.function), 48, "collective_1.function"},
	{offsetof(struct nccl_descriptor, collective_1.count), 72, "collective_1.count"},
	{offsetof(struct nccl_descriptor, collective_1.root), 80, "collective_1.root"},
	{offsetof(struct nccl_descriptor, collective_1.datatype), 84, "collective_1.datatype"},
	{offsetof(struct nccl_descriptor, collective_1.channels), 104, "collective_1.channels"},
	{offsetof(struct nccl_descriptor, collective_1.warps), 105, "collective_1.warps"},
	{offsetof(struct nccl_descriptor, collective_1.algorithm), 106, "collective_1.algorithm"},
	{offsetof(struct nccl_descriptor, collective_1.protocol), 107, "collective_1.protocol"},
	{offsetof(struct nccl_descriptor, collective_2.function), 48, "collective_2.function"},
	{offsetof(struct nccl_descriptor, collective_2.count), 72, "collective_2.count"},
	{offsetof(struct nccl_descriptor, collective_2.datatype), 88, "collective_2.datatype"},
	{offsetof(struct nccl_descriptor, collective_2.channels), 104, "collective_2.channels"},
	{offsetof(struct nccl_descriptor, collective_2.algorithm), 112, "collective_2.algorithm"},
	{offsetof(struct nccl_descriptor, collective_2.protocol), 120, "collective_2.protocol"},
	{offsetof(struct nccl_descriptor, collective_3.datatype), 88, "collective_3.datatype"},
	{offsetof(struct nccl_descriptor, collective_3.channels), 96, "collective_3.channels"},
	{offsetof(struct nccl_descriptor, collective_3.algorithm), 104, "collective_3.algorithm"},
	{offsetof(struct nccl_descriptor, collective_3.protocol), 112, "collective_3.protocol"},
	{offsetof(struct nccl_descriptor, collective_4.sequence), 24, "collective_4.sequence"},
	{offsetof(struct nccl_descriptor, collective_4.function), 32, "collective_4.function"},
	{offsetof(struct nccl_descriptor, collective_4.count), 56, "collective_4.count"},
	{offsetof(struct nccl_descriptor, collective_4.root), 64, "collective_4.root"},
	{offsetof(struct nccl_descriptor, collective_4.datatype), 72, "collective_4.datatype"},
	{offsetof(struct nccl_descriptor, collective_4.channels), 80, "collective_4.channels"},
	{offsetof(struct nccl_descriptor, collective_4.warps), 81, "collective_4.warps"},
	{offsetof(struct nccl_descriptor, collective_4.algorithm), 88, "collective_4.algorithm"},
	{offsetof(struct nccl_descriptor, collective_4.protocol), 96, "collective_4.protocol"},
	{offsetof(struct nccl_descriptor, collective_4.group), 104, "collective_4.group"},
	{offsetof(struct nccl_descriptor, message_1.function), 40, "message_1.function"},
	{offsetof(struct nccl_descriptor, message_1.datatype), 56, "message_1.datatype"},
	{offsetof(struct nccl_descriptor, message_1.count), 64, "message_1.count"},
	{offsetof(struct nccl_descriptor, message_1.peer), 72, "message_1.peer"},
	{offsetof(struct nccl_descriptor, message_2.function), 40, "message_2.function"},
	{offsetof(struct nccl_descriptor, message_2.datatype), 56, "message_2.datatype"},
	{offsetof(struct nccl_descriptor, message_2.count), 64, "message_2.count"},
	{offsetof(struct nccl_descriptor, message_2.peer), 72, "message_2.peer"},
	{offsetof(struct nccl_descriptor, message_4.function), 24, "message_4.function"},
	{offsetof(struct nccl_descriptor, message_4.datatype), 40, "message_4.datatype"},
	{offsetof(struct nccl_descriptor, message_4.count), 48, "message_4.count"},
	{offsetof(struct nccl_descriptor, message_4.peer), 56, "message_4.peer"},
	{offsetof(struct nccl_descriptor, message_4.channels), 60, "message_4.channels"},
	{offsetof(struct nccl_descriptor, message_4.group), 64, "message_4.group"},
	{offsetof(struct nccl_descriptor, proxy_operation.process), 24, "proxy_operation.process"},
	{offsetof(struct nccl_descriptor, proxy_operation.channel), 28, "proxy_operation.channel"},
	{offsetof(struct nccl_descriptor, proxy_operation.peer), 32, "proxy_operation.peer"},
	{offsetof(struct nccl_descriptor, proxy_operation.steps), 36, "proxy_operation.steps"},
	{offsetof(struct nccl_descriptor, proxy_operation.chunk_bytes), 40,
	 "proxy_operation.chunk_bytes"},
	{offsetof(struct nccl_descriptor, proxy_operation.is_send), 44, "proxy_operation.is_send"},
	{offsetof(struct nccl_descriptor, proxy_step.step), 24, "proxy_step.step"},
	{offsetof(struct nccl_descriptor, kernel_channel.channel), 24, "kernel_channel.channel"},
	{offsetof(struct nccl_descriptor, kernel_channel.device_ns), 32,
	 "kernel_channel.device_ns"},
	{offsetof(struct nccl_descriptor, network.id), 24, "network.id"},
	{offsetof(struct nccl_descriptor, network.data), 32, "network.data"},
	{offsetof(struct nccl_descriptor, group_api.is_captured), 24, "group_api.is_captured"},
	{offsetof(struct nccl_descriptor, group_api.depth), 28, "group_api.depth"},
	{offsetof(struct nccl_descriptor, collective_api.function), 24, "collective_api.function"},
	{offsetof(struct nccl_descriptor, collective_api.count), 32, "collective_api.count"},
	{offsetof(struct nccl_descriptor, collective_api.datatype), 40, "collective_api.datatype"},
	{offsetof(struct nccl_descriptor, collective_api.root), 48, "collective_api.root"},
	{offsetof(struct nccl_descriptor, collective_api.stream), 56, "collective_api.stream"},
	{offsetof(struct nccl_descriptor, collective_api.is_captured), 64,
	 "collective_api.is_captured"},
	{offsetof(struct nccl_descriptor, message_api.stream), 48, "message_api.stream"},
	{offsetof(struct nccl_descriptor, message_api.is_captured), 56, "message_api.is_captured"},
	{offsetof(struct nccl_descriptor, launch.stream), 24, "launch.stream"},
	{offsetof(struct nccl_descriptor, ce_collective.sequence), 24, "ce_collective.sequence"},
	{offsetof(struct nccl_descriptor, ce_collective.function), 32, "ce_collective.function"},
	{offsetof(struct nccl_descriptor, ce_collective.count), 56, "ce_collective.count"},
	{offsetof(struct nccl_descriptor, ce_collective.root), 64, "ce_collective.root"},
	{offsetof(struct nccl_descriptor, ce_collective.datatype), 72, "ce_collective.datatype"},
	{offsetof(struct nccl_descriptor, ce_collective.stream), 104, "ce_collective.stream"},
	{offsetof(struct nccl_descriptor, ce_sync.ranks), 28, "ce_sync.ranks"},
	{offsetof(struct nccl_descriptor, ce_batch.operations), 24, "ce_batch.operations"},
	{offsetof(struct nccl_descriptor, ce_batch.bytes), 32, "ce_batch.bytes"},
	{offsetof(struct nccl_network_ib, device), 8, "device"},
	{offsetof(struct nccl_network_ib, request), 16, "request"},
	{offsetof(struct nccl_network_ib, opcode), 24, "opcode"},
	{offsetof(struct nccl_network_ib, queue), 28, "queue"},
	{offsetof(struct nccl_network_ib, bytes), 32, "bytes"},
	{offsetof(struct nccl_network_socket, descriptor), 8, "descriptor"},
	{offsetof(struct nccl_network_socket, operation), 12, "operation"},
	{offsetof(struct nccl_network_socket, bytes), 16, "bytes"},
	{offsetof(struct nccl_plugin, init), 8, "init"},
	{offsetof(struct nccl_plugin, start), 16, "start"},
	{offsetof(struct nccl_plugin, stop), 24, "stop"},
	{offsetof(struct nccl_plugin, state), 32, "state"},
	{offsetof(struct nccl_plugin, finalize), 40, "finalize"},
	{offsetof(union nccl_state_arguments, operation.bytes), 0, "operation.bytes"},
	{offsetof(union nccl_state_arguments, operation.steps), 8, "operation.steps"},
	{offsetof(union nccl_state_arguments, step.bytes), 0, "step.bytes"},
	{offsetof(union nccl_state_arguments, kernel_channel.device_ns), 0,
	 "kernel_channel.device_ns"},
};

static void fields_lie_where_nccl_has_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (places[i].ours != places[i].theirs)
			fail_msg("%s lies at %zu, NCCL has it at %zu", places[i].field,
				 places[i].ours, places[i].theirs);
}

static void a_type_is_as_wide_as_its_interface_has_it(void **state)
{
	struct nccl_descriptor descriptor;

	(void)state;
	memset(&descriptor, 0xff, sizeof(descriptor));
	descriptor.type.narrow = NCCL_TYPE_KERNEL_CHANNEL;
	for (uint32_t version = 1; version < 5; version++)
		assert_int_equal(nccl_type_of(version, &descriptor), NCCL_TYPE_KERNEL_CHANNEL);
	descriptor.type.wide = NCCL_TYPE_CE_BATCH;
	assert_int_equal(nccl_type_of(5, &descriptor), NCCL_TYPE_CE_BATCH);
	assert_int_equal(nccl_type_of(6, &descriptor), NCCL_TYPE_CE_BATCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_lie_where_nccl_has_them),
		cmocka_unit_test(a_type_is_as_wide_as_its_interface_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
