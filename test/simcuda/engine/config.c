/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reading SIMCUDA_* variables. A wrong one ends the process: a test with ignored settings proves
 * nothing.
 */
#include "test/simcuda/engine/config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "SIMCUDA_"

extern char **environ;

static struct sim_config config = {
	.n_devices = 1,
	.device_bytes = (size_t)16 << 30,
	.device_name = "Simulated CUDA device",
	.arch = 90,
	.n_processors = 132,
	.driver_version = 13020,
	.call_ns = 1000,
	.launch_ns = 2000,
	.kernel_ns = 5000,
	.copy_ns = 1000,
	.link_bytes_per_us = 25000,
	.local_bytes_per_us = 1000000,
	.flops_per_ns = 100000,
	.n_concurrent = 32,
	.queue_depth = 1024,
	.loop_rounds = 3,
	.nccl_interface = -1,
	.is_protected = true,
	.is_strict = true,
	.shares_correlation = true,
};

enum type {
	TYPE_TEXT,
	TYPE_INT,
	TYPE_U64,
	TYPE_I64,
	TYPE_SIZE,
	TYPE_BOOL,
	TYPE_CLOCK,
	TYPE_DRIVER
};

static const struct variable {
	const char *name;
	enum type type;
	void *value;
} variables[] = {
	{"DRIVER", TYPE_DRIVER, &config.driver},
	{"DEVICES", TYPE_INT, &config.n_devices},
	{"FIRST_DEVICE", TYPE_INT, &config.first_device},
	{"MEMORY", TYPE_SIZE, &config.device_bytes},
	{"OTHERS", TYPE_SIZE, &config.other_bytes},
	{"CONTEXT", TYPE_SIZE, &config.context_bytes},
	{"MODULE", TYPE_SIZE, &config.module_bytes},
	{"HIDES_PROCESSES", TYPE_BOOL, &config.hides_processes},
	{"WORKSPACE", TYPE_SIZE, &config.workspace_bytes},
	{"SHARED", TYPE_TEXT, &config.shared},
	{"NAME", TYPE_TEXT, &config.device_name},
	{"ARCH", TYPE_INT, &config.arch},
	{"PROCESSORS", TYPE_INT, &config.n_processors},
	{"DRIVER_VERSION", TYPE_INT, &config.driver_version},
	{"RUNTIME_VERSION", TYPE_INT, &config.runtime_version},
	{"CUPTI_VERSION", TYPE_INT, &config.cupti_version},
	{"CLOCK", TYPE_CLOCK, &config.is_virtual_clock},
	{"CALL_NS", TYPE_U64, &config.call_ns},
	{"LAUNCH_NS", TYPE_U64, &config.launch_ns},
	{"KERNEL_NS", TYPE_U64, &config.kernel_ns},
	{"KERNELS", TYPE_TEXT, &config.kernels},
	{"COPY_NS", TYPE_U64, &config.copy_ns},
	{"LINK_BYTES_PER_US", TYPE_U64, &config.link_bytes_per_us},
	{"LOCAL_BYTES_PER_US", TYPE_U64, &config.local_bytes_per_us},
	{"FLOPS_PER_NS", TYPE_U64, &config.flops_per_ns},
	{"CONCURRENT", TYPE_INT, &config.n_concurrent},
	{"QUEUE", TYPE_INT, &config.queue_depth},
	{"LOOP_ROUNDS", TYPE_INT, &config.loop_rounds},
	{"NCCL_INTERFACE", TYPE_INT, &config.nccl_interface},
	{"LOG", TYPE_TEXT, &config.log},
	{"LOG_AT_ONCE", TYPE_BOOL, &config.logs_at_once},
	{"LOG_CALLS", TYPE_BOOL, &config.logs_calls},
	{"FAULTS", TYPE_TEXT, &config.faults},
	{"PROTECT", TYPE_BOOL, &config.is_protected},
	{"STRICT", TYPE_BOOL, &config.is_strict},
	{"ZERO_COUNTS", TYPE_BOOL, &config.zeroes_counts},
	{"SHARED_CORRELATION", TYPE_BOOL, &config.shares_correlation},
	{"NESTED_RECORDS", TYPE_BOOL, &config.records_nested},
	{"LOST_BUFFERS", TYPE_INT, &config.lost_buffers},
	{"UNTIMED_KERNELS", TYPE_INT, &config.untimed_kernels},
	{"MIXED_CLOCKS", TYPE_BOOL, &config.mixes_clocks},
	{"FLUSH_NS", TYPE_U64, &config.flush_ns},
	{"SKEW_PPB", TYPE_I64, &config.skew_ppb},
	{"CLOCK_STEPS", TYPE_TEXT, &config.clock_steps},
};

static void refuse(const char *name, const char *value, const char *why)
{
	fprintf(stderr, "simcuda: " PREFIX "%s=%s: %s\n", name, value, why);
	_exit(2);
}

static int64_t read_number(const char *name, const char *value)
{
	char *end;

	errno = 0;
	int64_t number = strtoll(value, &end, 0);
	if (errno || end == value || (*end && !strchr("KMG", *end)) || (*end && end[1]))
		refuse(name, value, "not a number");
	return number * (*end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : *end == 'G' ? 1 << 30 : 1);
}

/* The index of value among the words, which end with a NULL. */
static int read_word(const char *name, const char *value, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(value, words[i]))
			return i;
	refuse(name, value, "not one of the words that it can be");
	return 0;
}

static void set_variable(const struct variable *variable, const char *value)
{
	static const char *const clocks[] = {"real", "virtual", NULL};
	static const char *const drivers[] = {"present", "absent", "stub", "nodevice", NULL};
	const char *name = variable->name;

	switch (variable->type) {
	case TYPE_TEXT:
		*(const char **)variable->value = value;
		break;
	case TYPE_CLOCK:
		*(bool *)variable->value = read_word(name, value, clocks);
		break;
	case TYPE_DRIVER:
		*(enum sim_driver *)variable->value = read_word(name, value, drivers);
		break;
	case TYPE_BOOL:
		*(bool *)variable->value = read_number(name, value) != 0;
		break;
	case TYPE_INT:
		*(int *)variable->value = (int)read_number(name, value);
		break;
	case TYPE_U64:
	case TYPE_I64:
		*(int64_t *)variable->value = read_number(name, value);
		break;
	case TYPE_SIZE:
		*(size_t *)variable->value = (size_t)read_number(name, value);
		break;
	}
}

static void read_variable(const char *text)
{
	const char *value = strchr(text, '=');

	for (size_t i = 0; value && i < sizeof(variables) / sizeof(variables[0]); i++) {
		size_t length = strlen(variables[i].name);

		if (length == (size_t)(value - text) && !memcmp(text, variables[i].name, length)) {
			set_variable(&variables[i], value + 1);
			return;
		}
	}
	refuse(text, "", "no such variable");
}

static void read_environment(void)
{
	for (char **entry = environ; entry && *entry; entry++)
		if (!strncmp(*entry, PREFIX, strlen(PREFIX)))
			read_variable(*entry + strlen(PREFIX));
	if (config.n_devices < 0 || config.n_devices > SIM_MAX_DEVICES)
		refuse("DEVICES", "", "between 0 and 16");
	if (!config.link_bytes_per_us || !config.local_bytes_per_us || !config.flops_per_ns)
		refuse("*_PER_*", "0", "nothing would ever end");
	if (config.n_concurrent < 1 || config.queue_depth < 1)
		refuse("CONCURRENT, QUEUE", "", "at least 1");
	if (config.driver == SIM_DRIVER_WITHOUT_DEVICE)
		config.n_devices = 0;
}

const struct sim_config *sim_config(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_environment);
	return &config;
}
