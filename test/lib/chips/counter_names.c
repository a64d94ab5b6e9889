/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * counter_names LIBCUPTI CHIP... [METRIC...]: what the agent would measure on these chips, by a
 * libcupti that needs no device. One JSON object a line: {"chip", "choice": "K1"|"K2"|"FULL"|"T",
 * "passes", "metrics": {field: name}}. Metrics, which have "__" in their names, are looked up
 * instead: {"chip", "name", "range", "sampling"}, the results of CUPTI.
 */
#include <stdbool.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/counters/cuda_counter_set.h"
#include "collectors/cuda/counters/cuda_counters.h"
#include "collectors/cuda/counters/cuda_counter_state.h"
#include "shim/cuda/cupti.h"
#include "shim/cuda/cupti_profiler.h"

/* Stubs for the rest of the agent: they print nothing. */
uint32_t torsh_label(const char *bytes, size_t n)
{
	(void)bytes;
	(void)n;
	return 0;
}

/* The agent's calls the next dlopen; here there is no other. */
void *torsh_cupti_open_beside(const void *address, const char *name)
{
	char path[4096];
	Dl_info info;
	int n;

	if (!dladdr(address, &info))
		return NULL;
	n = (int)(strrchr(info.dli_fname, '/') + 1 - info.dli_fname);
	snprintf(path, sizeof(path), "%.*s%s", n, info.dli_fname, name);
	return dlopen(path, RTLD_LAZY);
}

void torsh_counters_send(const struct event *event)
{
	(void)event;
}

static void print_choice(const char *chip, const char *word, enum counter_choice choice)
{
	struct counter_set set;
	int result = torsh_counter_set_choose(&set, choice, chip, NULL);

	printf("{\"chip\":\"%s\",\"choice\":\"%s\",\"result\":%d,\"passes\":%zu,\"metrics\":{",
	       chip, word, result, set.n_passes);
	for (uint32_t i = 0; i < set.n; i++)
		printf("%s\"%s\":\"%s\"", i ? "," : "", torsh_counter_field(set.rows[i]),
		       set.names[i]);
	puts("}}");
	torsh_counter_set_free(&set);
}

static int look_up(const char *chip, const char *name, enum cupti_profiler_type type)
{
	struct cupti_host_create create = {.n_bytes = CUPTI_PROFILER_BYTES(cupti_host_create, host),
					   .type = (int)type,
					   .chip = chip};
	struct cupti_host destroy = {.n_bytes = CUPTI_PROFILER_BYTES(cupti_host, host)};
	struct cupti_host_metric metric = {.n_bytes = CUPTI_PROFILER_BYTES(cupti_host_metric, type),
					   .name = name};
	int result = torsh_cupti_profiler.ProfilerHostInitialize(&create);

	if (result)
		return result;
	metric.host = destroy.host = create.host;
	result = torsh_cupti_profiler.ProfilerHostGetMetricProperties(&metric);
	torsh_cupti_profiler.ProfilerHostDeinitialize(&destroy);
	return result;
}

static bool is_metric(const char *argument)
{
	return strstr(argument, "__") != NULL;
}

static void print_names(const char *chip, char *const *names)
{
	for (; *names; names++)
		if (is_metric(*names))
			printf("{\"chip\":\"%s\",\"name\":\"%s\",\"range\":%d,\"sampling\":%d}\n",
			       chip, *names, look_up(chip, *names, CUPTI_PROFILER_OF_RANGES),
			       look_up(chip, *names, CUPTI_PROFILER_OF_SAMPLES));
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	if (!library || torsh_cupti_profiler_open(library)) {
		fprintf(stderr, "usage: counter_names LIBCUPTI CHIP... [METRIC...]: %s\n",
			library ? "it is too old" : dlerror());
		return 2;
	}
	for (int i = 2; i < argc && !is_metric(argv[i]); i++) {
		if (is_metric(argv[argc - 1])) {
			print_names(argv[i], argv + 2);
			continue;
		}
		print_choice(argv[i], "K1", K1);
		print_choice(argv[i], "K2", K2);
		print_choice(argv[i], "FULL", FULL);
		print_choice(argv[i], "T", T);
	}
	return 0;
}
