/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/launch/launcher.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_MAX_BYTES 256u /* a longer one is no launcher's */

struct launcher {
	const char *name, *rank, *world_size, *local_rank, *local_world_size, *node_rank, *role,
		*job;
};

static const struct launcher launchers[] = {
#define LAUNCHER(...) {__VA_ARGS__},
#include "agent/launch/launchers.def"
#undef LAUNCHER
};

/* The variable's value; NULL if it is not set or empty. */
static const char *value_of(const char *variable)
{
	const char *value = variable ? getenv(variable) : NULL;

	return value && *value && strlen(value) <= VALUE_MAX_BYTES ? value : NULL;
}

static const struct launcher *find_launcher(void)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++)
		if (value_of(launchers[i].rank ? launchers[i].rank : launchers[i].job))
			return &launchers[i];
	return NULL;
}

const char *torsh_launcher_rank(void)
{
	const struct launcher *launcher = find_launcher();

	return launcher ? value_of(launcher->rank) : NULL;
}

static void put(struct text *text, const char *name, const char *value)
{
	if (!value)
		return;
	torsh_text_put(text, name);
	torsh_text_put(text, "=");
	torsh_text_put_bytes(text, value, strlen(value) + 1);
}

static size_t label_length(const char *labels)
{
	return strcspn(labels, ",");
}

void torsh_launcher_put(struct text *text, const char *labels)
{
	const struct launcher *launcher = find_launcher();

	if (launcher) {
		put(text, "launcher", launcher->name);
		put(text, "world_size", value_of(launcher->world_size));
		put(text, "local_rank", value_of(launcher->local_rank));
		put(text, "local_world_size", value_of(launcher->local_world_size));
		put(text, "node_rank", value_of(launcher->node_rank));
		put(text, "role", value_of(launcher->role));
		put(text, "job", value_of(launcher->job));
		put(text, "master_addr", value_of("MASTER_ADDR"));
		put(text, "master_port", value_of("MASTER_PORT"));
	}
	while (labels && *labels) {
		size_t n = label_length(labels);

		torsh_text_put(text, "label.");
		torsh_text_put_bytes(text, labels, n);
		torsh_text_put_bytes(text, "", 1);
		labels += n + (labels[n] == ',');
	}
}

static bool is_name_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.';
}

/* Whether a label before `end` has the same n bytes of a name. */
static bool is_repeated(const char *labels, const char *end, size_t n)
{
	for (; labels < end; labels += label_length(labels) + 1)
		if (!strncmp(labels, end, n) && labels[n] == '=')
			return true;
	return false;
}

bool torsh_launcher_are_labels(const char *labels)
{
	const char *at = labels;

	if (!*labels || strlen(labels) > LABELS_MAX_BYTES)
		return false;
	for (;;) {
		size_t n_name = 0, n = label_length(at);

		while (n_name < n && is_name_byte(at[n_name]))
			n_name++;
		if (!n_name || at[n_name] != '=' || n_name + 1 == n ||
		    is_repeated(labels, at, n_name))
			return false;
		for (size_t i = n_name; i < n; i++)
			if ((unsigned char)at[i] < ' ' || at[i] == 127)
				return false;
		if (!at[n])
			return true;
		at += n + 1;
	}
}
