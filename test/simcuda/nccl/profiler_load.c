/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How NCCL finds its profiler plugin: by NCCL_PROFILER_PLUGIN, a path, a library's name, or the X
 * of libnccl-profiler-X.so; "STATIC_PLUGIN" is the program itself, "none" is none, and where the
 * variable isn't set it is libnccl-profiler.so. Of the tables that it knows it takes the newest.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/nccl/profiler.h"

#define NAME_BYTES 255

int profiler_mask;
unsigned profiler_version;
const struct plugin *profiler_plugin;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;
static int n_users;
static bool has_failed;

int profiler_nccl_version(void)
{
	/* the first release with each */
	static const int versions[] = {22105, 22304, 22403, 22602, 22703, 22803, 22902};
	int interface = sim_config()->nccl_interface;

	return interface >= 0 && interface <= 6 ? versions[interface] : NCCL_VERSION_CODE;
}

static int newest_interface(void)
{
	return sim_config()->nccl_interface < 0 ? 6 : sim_config()->nccl_interface;
}

static void *open_name(const char *name)
{
	if (!*name)
		return NULL;
	return dlopen(strncasecmp(name, "STATIC_PLUGIN", strlen(name)) ? name : NULL,
		      RTLD_NOW | RTLD_LOCAL);
}

static bool is_short(const char *name)
{
	size_t n = strlen(name);

	return n && !strchr(name, '/') &&
	       (strncmp(name, "lib", 3) || n < 3 || strcmp(name + n - 3, ".so"));
}

static void *open_plugin(void)
{
	const char *set = getenv("NCCL_PROFILER_PLUGIN");
	char name[NAME_BYTES];
	void *found;

	if (set && !strcasecmp(set, "none"))
		return NULL;
	snprintf(name, sizeof(name), "%s", set && *set ? set : "libnccl-profiler.so");
	found = open_name(name);
	if (!found && set && is_short(set)) {
		snprintf(name, sizeof(name), "libnccl-profiler-%s.so", set);
		found = open_name(name);
	}
	return found;
}

static bool find_table(void)
{
	char name[] = "ncclProfiler_v0";

	for (int version = newest_interface(); version > 0; version--) {
		name[sizeof(name) - 2] = (char)('0' + version);
		profiler_plugin = dlsym(library, name);
		if (profiler_plugin) {
			profiler_version = (unsigned)version;
			return true;
		}
	}
	return false;
}

static bool load(void)
{
	if (n_users)
		return true;
	if (has_failed || !newest_interface())
		return false;
	library = open_plugin();
	if (library && find_table())
		return true;
	has_failed = true;
	if (library)
		dlclose(library);
	library = NULL;
	return false;
}

static void unload(void)
{
	if (--n_users)
		return;
	dlclose(library);
	library = NULL;
	profiler_plugin = NULL;
	profiler_version = 0;
}

static void log_nothing(int level, unsigned long flags, const char *file, int line,
			const char *format, ...)
{
}

static int initialize(struct profiler *of)
{
	int (*init_1)(void **, int *);
	int (*init_4)(void **, int *, const char *, uint64_t, int, int, int, void *);
	int (*init_5)(void **, uint64_t, int *, const char *, int, int, int, void *);

	*(void **)&init_1 = *(void **)&init_4 = *(void **)&init_5 = profiler_plugin->init;
	if (profiler_version < 4)
		return init_1(&of->context, &profiler_mask);
	if (profiler_version < 5)
		return init_4(&of->context, &profiler_mask, of->name, of->hash, 1, of->n_ranks,
			      of->rank, (void *)log_nothing);
	return init_5(&of->context, of->hash, &profiler_mask, of->name, 1, of->n_ranks, of->rank,
		      (void *)log_nothing);
}

bool profiler_load(struct profiler *profiler)
{
	bool is_there;

	pthread_mutex_lock(&lock);
	is_there = load();
	if (is_there) {
		n_users++;
		is_there = !initialize(profiler);
		if (is_there)
			sim_log("{\"kind\":\"nccl\",\"what\":\"init\",\"communicator\":%u,"
				"\"interface\":%u,\"plugin\":%s,\"name\":%s,\"hash\":%llu,"
				"\"ranks\":%d,\"rank\":%d,\"mask\":%d}",
				profiler->number, profiler_version,
				sim_log_quoted(profiler_plugin->name),
				sim_log_quoted(profiler->name ? profiler->name : ""),
				(unsigned long long)profiler->hash, profiler->n_ranks,
				profiler->rank, profiler_mask);
		else
			unload();
	}
	pthread_mutex_unlock(&lock);
	return is_there;
}

void profiler_unload(void)
{
	pthread_mutex_lock(&lock);
	unload();
	pthread_mutex_unlock(&lock);
}
