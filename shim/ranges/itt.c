/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The entry point by which ITT finds the agent. A consumer in the user's environment is opened and
 * fills in the client's pointers first; the agent's functions call those.
 */
#include "shim/ranges/itt.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/symbol.h"
#include "shim/ranges/ranges.h"
#include "shim/sys.h"

#define PREFIX "__itt_"

typedef void function(void);

/* ___itt_api_info; the list ends with a NULL name. */
struct api {
	const char *name;
	function **pointer;
	/* the client's own: the function that finds the tool, and the one used without a tool */
	function *first, *none;
	int group;
};

/* The part of ___itt_global that is common to all versions, on Linux. */
struct client {
	unsigned char magic[8];
	unsigned long major, minor, build;
	volatile long is_initialised, mutex_is_initialised, atomic_counter;
	unsigned char mutex[sizeof(void *) == 8 ? 40 : 24]; /* pthread_mutex_t */
	void *library, *error_handler;
	const char **library_path;
	struct api *apis;
};

typedef void initialize(struct client *client, int groups);

static const struct entry {
	const char *name;
	size_t offset;
} entries[] = {
#define ITT(result, name, parameters, arguments) {#name, offsetof(struct itt_functions, name)},
#define ITT_VOID(name, parameters, arguments) {#name, offsetof(struct itt_functions, name)},
#define ITT_ALSO(other, name) {#other, offsetof(struct itt_functions, name)},
#include "shim/ranges/itt.def"
#undef ITT
#undef ITT_VOID
#undef ITT_ALSO
};

static const struct entry *find_entry(const char *name)
{
	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1))
		return NULL;
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		if (!strcmp(name + sizeof(PREFIX) - 1, entries[i].name))
			return &entries[i];
	return NULL;
}

/* The consumer fills in each client's pointers. */
static void attach_consumer(struct client *client, int groups)
{
	const char *path = torsh_injection_consumer(RANGE_BY_ITT);
	void *library = path ? torsh_next.dlopen(path, RTLD_LAZY) : NULL;
	initialize *entry = library ? (initialize *)torsh_symbol(library, "__itt_api_init") : NULL;

	if (!path)
		return;
	if (!entry) {
		torsh_ranges_note(
			"ITT: what INTEL_LIBITTNOTIFY64 names can't be opened, or is no tool for ITT of version 2 "
			"and later: it gets no calls next to the agent");
		return;
	}
	if (!torsh_itt_has_consumer)
		torsh_ranges_note(
			"ITT: another tool was there first (INTEL_LIBITTNOTIFY64): it gets all calls too");
	torsh_itt_has_consumer = 1;
	entry(client, groups);
}

static void keep(const struct entry *entry, function *set)
{
	memcpy((char *)&torsh_itt_consumer + entry->offset, &set, sizeof(set));
}

/*
 * ___itt_global of a static part of version 3, and behind it the lists that newer ones have, which
 * are empty.
 */
void torsh_itt_attach_consumer(void)
{
	enum { N = sizeof(entries) / sizeof(*entries), NAME_BYTES = 48 };
	struct own {
		struct client client;
		char lists[256];
		struct api apis[N + 1];
		function *set[N];
		char names[N][NAME_BYTES];
	} * own;

	if (torsh_itt_has_consumer || !torsh_injection_consumer(RANGE_BY_ITT))
		return;
	own = torsh_sys_pages(sizeof(*own));
	if (!own)
		return;
	own->client.major = 3;
	own->client.apis = own->apis;
	memcpy(own->client.magic, "\xED\xAB\xAB\xEC\x0D\xEE\xDA\x30", 8);
	for (size_t i = 0; i < N; i++) {
		stpcpy(stpcpy(own->names[i], PREFIX), entries[i].name);
		own->apis[i] = (struct api){.name = own->names[i], .pointer = &own->set[i]};
	}
	attach_consumer(&own->client, -1);
	for (size_t i = 0; i < N; i++)
		if (own->set[i])
			keep(&entries[i], own->set[i]);
}

/*
 * Called by each DSO's static part, under its own lock. Without the activity its calls do nothing.
 */
EXPORT void __itt_api_init(struct client *client, int groups)
{
	if (!torsh_ranges_wanted(RANGE_BY_ITT))
		return;
	attach_consumer(client, groups);
	for (struct api *api = client->apis; api && api->name; api++) {
		const struct entry *entry = find_entry(api->name);
		function *set = *api->pointer, *own;

		if (!entry) {
			/* Without a listener a call costs no more than without a tool. */
			if (!torsh_itt_has_consumer)
				*api->pointer = api->none;
			continue;
		}
		memcpy(&own, (const char *)&torsh_itt_functions + entry->offset, sizeof(own));
		/*
		 * Every client gets the same functions, because a consumer expects a single client.
		 * A client may call again.
		 */
		if (set && set != api->first && set != api->none && set != own)
			keep(entry, set);
		*api->pointer = own;
	}
}
