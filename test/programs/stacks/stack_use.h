/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * stack_use's clients of NVTX and ITT, as their headers are some: pointers that a tool fills in,
 * and what they are called with.
 */
#ifndef TORSH_TEST_PROGRAMS_STACK_USE_H
#define TORSH_TEST_PROGRAMS_STACK_USE_H

#include <stdbool.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef long function(void *, void *, void *, void *, void *, void *, void *, void *, void *,
		      void *, void *, void *);

static void *with[12]; /* the next call's arguments */

/* ---- NVTX: each module's slots, which a tool fills in (enum NvtxCallbackModule) ---- */

#define N_MODULES 7
#define N_SLOTS 16

static function *slots[N_MODULES][N_SLOTS];

static int get_module(int module, function ***table[], unsigned int *n_slots)
{
	static function **tables[N_MODULES][N_SLOTS];

	for (int i = 0; i < N_SLOTS; i++)
		tables[module][i] = &slots[module][i];
	*table = tables[module];
	*n_slots = N_SLOTS;
	return 1;
}

static const void *get_table(uint32_t id)
{
	static const struct {
		size_t struct_size;
		int (*get_module)(int module, function ***table[], unsigned int *n_slots);
	} callbacks = {sizeof(callbacks), get_module};

	return id == 1 ? &callbacks : NULL;
}

static int begins(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

/* Texts, but not the empty one, which has no label; and events, which zeros are. */
static void set_nvtx_arguments(const char *slot, void *zeros)
{
	static const char *const with_event[] = {"1-1", "1-4", "1-8", "5-1", "5-2", "5-4"};

	with[0] = begins(slot, "1-") ? (void *)L"range" : zeros;
	with[1] = with[2] = (void *)L"range";
	for (size_t i = 0; i < sizeof(with_event) / sizeof(with_event[0]); i++)
		if (!strcmp(slot, with_event[i]))
			with[0] = with[1] = zeros;
}

/* ---- ITT: a list of names and pointers (___itt_global) ---- */

#define ITT_MOST 80

static struct itt_api {
	const char *name;
	function **pointer, *first, *none;
	int group;
} itt_apis[ITT_MOST + 1];

static struct {
	unsigned char magic[8];
	unsigned long version[3];
	long state[3];
	unsigned char mutex[sizeof(void *) == 8 ? 40 : 24];
	void *library, *error_handler, *path;
	struct itt_api *apis;
} itt_client = {.apis = itt_apis};

static function *itt_functions[ITT_MOST];
static char itt_names[ITT_MOST][64];
static void *itt_domain, *itt_string, *itt_counter, *itt_histogram;

/* What the tool gives for a name; NULL: there is none. */
static function *find_itt(const char *name)
{
	function *begin = (function *)dlsym(RTLD_DEFAULT, "__itt_api_init");
	static int n;

	if (!begin || n == ITT_MOST)
		return NULL;
	snprintf(itt_names[n], sizeof(itt_names[n]), "__itt_%s", name);
	itt_apis[n] = (struct itt_api){.name = itt_names[n], .pointer = &itt_functions[n]};
	begin(&itt_client, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	return itt_functions[n++];
}

static void *make_itt(const char *how, void *first, void *second)
{
	function *make = find_itt(how);

	return make ? (void *)make(first, second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) : NULL;
}

static void make_itt_handles(void)
{
	itt_domain = make_itt("domain_create", "domain", NULL);
	itt_string = make_itt("string_handle_create", "string", NULL);
	itt_counter = make_itt("counter_create", "counter", "domain");
	itt_histogram = make_itt("histogram_create", itt_domain, "histogram");
}

/* Names are texts of five letters; ids are on the stack, behind the first six. */
static void set_itt_arguments(const char *name)
{
	bool is_of_domain = strstr(name, "v3") || begins(name, "histogram"),
	     has_scope = strstr(name, "scope") != NULL;

	with[0] = itt_domain;
	with[1] = itt_string;
	if (begins(name, "counter_") && (!is_of_domain || begins(name, "counter_set")))
		with[0] = itt_counter;
	if (begins(name, "event_"))
		with[0] = with[1] = (void *)5;
	if (begins(name, "histogram_submit")) {
		with[0] = itt_histogram;
		with[1] = (void *)1;
	}
	if (strstr(name, "create"))
		with[is_of_domain || begins(name, "counter_") ? 1 : 0] = "range";
	if (strstr(name, "create") && !is_of_domain)
		with[0] = "range";
	if (begins(name, "thread_set_name"))
		with[0] = "range";
	if (begins(name, "metadata_")) {
		with[2] = has_scope ? itt_string : (void *)1;
		with[3] = with[has_scope ? 4 : 3] = (void *)1;
	}
	if (begins(name, "metadata_str"))
		with[has_scope ? 3 : 2] = "range";
}

#endif
