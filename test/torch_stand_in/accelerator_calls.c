/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls each of an accelerator's functions as the agent does; linked with shim/torch/privateuse1.c.
 */
#include <stdbool.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/torch/privateuse1.h"

static void need(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	exit(1);
}

#define NEED(claim) need(claim, #claim)

static void count_device(int device, void *context)
{
	int *sum = context;

	*sum = *sum * 10 + device + 1;
}

int main(int argc, char **argv)
{
	void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
	struct privateuse1_event from = {0}, to = {0};
	int *is_enabled, device = -1, sum = 0;
	const void *stubs;
	int64_t ns, *alive;

	NEED(library != NULL);
	is_enabled = dlsym(library, "accelerator_is_enabled");
	alive = dlsym(library, "accelerator_alive");
	*is_enabled = -1;
	NEED(!torsh_privateuse1_stubs());
	*is_enabled = 0;
	NEED(!torsh_privateuse1_stubs());
	*is_enabled = 1;
	stubs = torsh_privateuse1_stubs();
	NEED(stubs != NULL);
	torsh_privateuse1_record(stubs, &device, &from, &ns);
	torsh_privateuse1_record(stubs, &device, &to, &ns);
	NEED(device == 3 && ns == 1 && from.object != to.object);
	NEED(torsh_privateuse1_elapsed(stubs, &from, &to) == 1);
	NEED(torsh_privateuse1_elapsed(stubs, &to, &from) == -1);
	for (int i = 0; i < 10; i++)
		torsh_privateuse1_record(stubs, &device, &to, &ns);
	NEED(*alive == 2);
	NEED(torsh_privateuse1_elapsed(stubs, &from, &to) == 11);
	torsh_privateuse1_on_each_device(stubs, count_device, &sum);
	NEED(sum == 123);
	torsh_privateuse1_synchronize(stubs);
	NEED(*(int64_t *)dlsym(library, "accelerator_waits") == 1);
	torsh_privateuse1_mark(stubs, "here");
	torsh_privateuse1_range_push(stubs, "inside");
	torsh_privateuse1_range_pop(stubs);
	return 0;
}
