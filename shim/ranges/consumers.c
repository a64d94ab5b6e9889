/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions of other tools that NVTX or ITT would call without the agent:
 * shim/ranges/{itt,nvtx}.c find them, the collectors forward recorded calls to them.
 */
#include "shim/ranges/itt.h"

#include <stdbool.h>

#include "shim/ranges/nvtx.h"

struct itt_functions torsh_itt_consumer;
bool torsh_itt_has_consumer;

struct nvtx_functions torsh_nvtx_consumer;
bool torsh_nvtx_has_consumer;
intptr_t torsh_nvtx_consumer_memory[NVTX_EXTENSION_SLOTS],
	torsh_nvtx_consumer_payload[NVTX_EXTENSION_SLOTS],
	torsh_nvtx_consumer_counters[NVTX_EXTENSION_SLOTS];
