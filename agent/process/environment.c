/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/environment.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "agent/process/text_buffer.h"
#include "shim/sys.h"

#define PRELOAD "LD_PRELOAD="
#define PREFIX "TORSH_PROFILER_"
#define N_INJECTIONS 4
#define N_OF_AGENT (N_INJECTIONS + 2) /* with the preload and the session */

/* What children get: the agent's own variables, then the program's TORSH_PROFILER_ variables. */
static char *of_agent[N_OF_AGENT], **kept = of_agent;
static size_t n_kept;
static char preload[2 * PATH_MAX], session_variable[160];
static const char *agent; /* absolute path of the agent */

#define VARIABLE_NAME_MAX 32
static char **own; /* the program's own entries; see torsh_environment_own */
static char (*injections)[VARIABLE_NAME_MAX + PATH_MAX]; /* N_INJECTIONS, mapped by the first */
static size_t n_injections;

static bool same_name(const char *definition, const char *other)
{
	size_t n = strcspn(definition, "=");

	return !strncmp(definition, other, n + 1);
}

static bool is_ours(const char *definition)
{
	return !strncmp(definition, PRELOAD, sizeof(PRELOAD) - 1) ||
	       !strncmp(definition, PREFIX, sizeof(PREFIX) - 1);
}

static bool is_changeable(const char *definition)
{
	return definition != preload && definition != session_variable;
}

/* One block: the pointers, then the strings. */
static char **copy_own(char *const *envp)
{
	size_t n = 1, n_bytes = 0, n_copied = 0;
	char **copies, *at;

	for (char *const *e = envp; e && *e; e++)
		if (is_ours(*e)) {
			n++;
			n_bytes += strlen(*e) + 1;
		}
	copies = torsh_sys_pages(n * sizeof(*copies) + n_bytes);
	if (!copies)
		return NULL;
	at = (char *)(copies + n);
	for (char *const *e = envp; e && *e; e++)
		if (is_ours(*e)) {
			copies[n_copied++] = at;
			at = stpcpy(at, *e) + 1;
		}
	return copies;
}

char *const *torsh_environment_own(char *const *envp)
{
	if (!own)
		own = copy_own(envp);
	return own ? own : envp;
}

/* The value of LD_PRELOAD, NULL if the environment has none. */
static const char *find_preload(char *const *envp)
{
	const char *list = NULL;

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, PRELOAD, sizeof(PRELOAD) - 1))
			list = *envp + sizeof(PRELOAD) - 1;
	return list;
}

/* Append the other entries of a list; `between` precedes each but the first. */
static void put_others(struct text *text, const char *list, const char *between)
{
	const char *base = strrchr(agent, '/') + 1;

	while (*list) {
		size_t n = strcspn(list, ": "), n_base = strlen(base);

		if (n && (n < n_base || strncmp(list + n - n_base, base, n_base))) {
			torsh_text_put(text, between);
			torsh_text_put_bytes(text, list, n);
			between = ":";
		}
		list += n + (list[n] != '\0');
	}
}

/* Append LD_PRELOAD= with the agent's absolute path and the other preloads. */
static void put_preload(struct text *text, const char *list)
{
	torsh_text_put(text, PRELOAD);
	torsh_text_put(text, agent);
	put_others(text, list, ":");
}

static void keep_preload(const char *path, char *const *envp)
{
	struct text text = TEXT_IN(preload);
	const char *list = find_preload(envp);

	agent = path;
	put_preload(&text, list ? list : "");
	kept[n_kept++] = preload;
}

/* Bytes of the LD_PRELOAD of a child with this list. */
static size_t preload_bytes(const char *list)
{
	return sizeof(PRELOAD) + strlen(agent) + 1 + strlen(list) + 1;
}

size_t torsh_environment_slots(char *const *envp)
{
	size_t n = 0, n_there = 0;
	const char *list = find_preload(envp);

	if (!n_kept)
		return 0;
	for (; envp && envp[n]; n++)
		for (size_t i = 0; i < n_kept; i++)
			n_there += !strcmp(envp[n], kept[i]);
	return n_there >= n_kept
		       ? 0
		       : n + n_kept + 1 + (list ? preload_bytes(list) / sizeof(char *) + 1 : 0);
}

/*
 * The agent's variables keep the values that the caller changed for its child, except the session.
 * The child's own preloads come after the agent; their text follows the pointers.
 */
char *const *torsh_environment_for_child(char *const *envp, char **slots)
{
	const char *list = find_preload(envp);
	size_t n = 0, place = 0;

	for (size_t i = 0; i < n_kept; i++) {
		place = kept[i] == preload ? n : place;
		slots[n++] = kept[i];
	}
	for (; envp && *envp; envp++) {
		size_t i = 0;

		while (i < n_kept && !same_name(kept[i], *envp))
			i++;
		if (i == n_kept)
			slots[n++] = *envp;
		else if (is_changeable(kept[i]))
			slots[i] = *envp;
	}
	slots[n++] = NULL;
	if (list) {
		struct text text = {.bytes = (char *)&slots[n], .capacity = preload_bytes(list)};

		put_preload(&text, list);
		slots[place] = text.bytes;
	}
	return slots;
}

size_t torsh_environment_slots_apart(char *const *envp)
{
	const char *list = find_preload(envp);
	size_t n = 0;

	while (envp && envp[n])
		n++;
	return n_kept ? n + 1 + (list ? preload_bytes(list) / sizeof(char *) + 1 : 0) : 0;
}

/* Whether the variable makes another library load the agent: its value is the agent's path. */
static bool is_injection(const char *definition)
{
	for (size_t i = 0; i < n_injections; i++)
		if (!strcmp(definition, injections[i]))
			return true;
	return false;
}

char *const *torsh_environment_apart(char *const *envp, char **slots)
{
	const char *list = find_preload(envp);
	size_t n = 0;

	for (; envp && *envp; envp++)
		if (!same_name(PRELOAD, *envp) && !is_injection(*envp))
			slots[n++] = *envp;
	if (list) {
		/* After the pointers; there may be one more than so far. */
		struct text text = {.bytes = (char *)&slots[n + 2],
				    .capacity = preload_bytes(list)};

		torsh_text_put(&text, PRELOAD);
		put_others(&text, list, "");
		if (text.length > sizeof(PRELOAD) - 1)
			slots[n++] = text.bytes;
	}
	slots[n] = NULL;
	return slots;
}

void torsh_environment_inject(const char *name, const char *path)
{
	struct text text = {.capacity = sizeof(injections[0])};

	if (!injections)
		injections = torsh_sys_pages(N_INJECTIONS * sizeof(injections[0]));
	if (!injections)
		return;
	text.bytes = injections[n_injections];
	torsh_text_put(&text, name);
	torsh_text_put(&text, "=");
	torsh_text_put(&text, path);
	for (char **e = environ; e && *e; e++)
		if (same_name(text.bytes, *e) && strcmp(text.bytes, *e))
			return;
	n_injections++;
	kept[n_kept++] = text.bytes;
}

static bool is_settled_by_agent(const char *definition, bool has_session)
{
	return same_name(preload, definition) ||
	       (has_session && same_name(session_variable, definition));
}

/* Keep the agent's variables with which the program was started. */
static void keep_own(bool has_session)
{
	char *const *all = torsh_environment_own(environ);
	size_t n = 0;
	char **room;

	while (all && all[n])
		n++;
	room = torsh_sys_pages((N_OF_AGENT + n) * sizeof(*room));
	if (!room)
		return;
	memcpy(room, kept, n_kept * sizeof(*room));
	kept = room;
	for (char *const *e = all; e && *e; e++)
		if (is_ours(*e) && !is_settled_by_agent(*e, has_session))
			kept[n_kept++] = *e;
}

void torsh_environment_start(const char *path, const char *session)
{
	struct text text = TEXT_IN(session_variable);
	char **slots;
	size_t n;

	keep_preload(path, environ);
	torsh_text_put(&text, PREFIX "SESSION=");
	if (session) {
		torsh_text_put(&text, session);
		kept[n_kept++] = session_variable;
	}
	keep_own(session != NULL);
	n = torsh_environment_slots(environ);
	if (!n)
		return;
	slots = torsh_sys_pages(n * sizeof(*slots));
	if (slots)
		environ = (char **)torsh_environment_for_child(environ, slots);
}

/* The first byte is stored last: a thread that reads meanwhile finds no session, or this one. */
void torsh_environment_set_session(const char *session)
{
	char *value = strchr(session_variable, '=') + 1;
	size_t n = strlen(session);

	if ((size_t)(value - session_variable) + n >= sizeof(session_variable))
		return;
	if (n)
		memcpy(value + 1, session + 1, n);
	__atomic_store_n(value, *session, __ATOMIC_RELEASE);
}
