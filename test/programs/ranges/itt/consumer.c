/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A typical tool for ITT: writes its calls to the file CONSUMER_LOG, a line a call, with
 * CONSUMER_THREADS after the caller's thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ittnotify.h>

/* Of ittnotify_config.h, which is no public header. */
struct api {
	const char *name;
	void **pointer, *first, *none;
	int group;
};

struct client {
	unsigned char magic[8];
	unsigned long version[3];
	long state[3];
	unsigned char mutex[40];
	void *library, *error_handler, *path;
	struct api *apis;
};

static void put(const char *call, const char *domain, const char *text)
{
	FILE *file = fopen(getenv("CONSUMER_LOG"), "a");

	if (getenv("CONSUMER_THREADS"))
		fprintf(file, "%ld ", syscall(SYS_gettid));
	fprintf(file, "%s %s %s\n", call, domain, text);
	fclose(file);
}

static void begin(const __itt_domain *domain, __itt_id id, __itt_id parent,
		  __itt_string_handle *name)
{
	(void)id;
	(void)parent;
	put("begin", domain->nameA, name->strA);
}

static void end(const __itt_domain *domain)
{
	put("end", domain->nameA, "");
}

static __itt_domain *make_domain(const char *name)
{
	__itt_domain *domain = calloc(1, sizeof(*domain));

	domain->flags = 1;
	domain->nameA = strdup(name);
	put("domain", name, "");
	return domain;
}

static __itt_string_handle *make_string(const char *text)
{
	__itt_string_handle *string = calloc(1, sizeof(*string));

	string->strA = strdup(text);
	return string;
}

static void begin_overlapped(const __itt_domain *domain, __itt_id id, __itt_id parent,
			     __itt_string_handle *name)
{
	(void)id;
	(void)parent;
	put("start", domain->nameA, name->strA);
}

static void end_overlapped(const __itt_domain *domain, __itt_id id)
{
	(void)id;
	put("finish", domain->nameA, "");
}

static void pause_it(void)
{
	put("pause", "", "");
}

static __itt_counter make_counter(const char *name, const char *domain)
{
	char *handle = malloc(8);

	strcpy(handle, "counter");
	put("counter", domain, name);
	return (__itt_counter)handle;
}

static void increment(__itt_counter counter)
{
	(void)counter;
	put("increment", "", "");
}

void __itt_api_init(struct client *client, int groups)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		{"__itt_task_begin", begin},
		{"__itt_task_end", end},
		{"__itt_task_begin_overlapped", begin_overlapped},
		{"__itt_task_end_overlapped", end_overlapped},
		{"__itt_domain_create", make_domain},
		{"__itt_pause", pause_it},
		{"__itt_string_handle_create", make_string},
		{"__itt_counter_create", make_counter},
		{"__itt_counter_inc", increment},
	};

	(void)groups;
	put("initialize", "", "");
	for (struct api *api = client->apis; api->name; api++)
		for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
			if (!strcmp(api->name, functions[i].name))
				*api->pointer = functions[i].function;
}
