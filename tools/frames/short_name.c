/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/frames/short_name.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

#define ELLIPSIS "<…>"
#define ANONYMOUS "(anonymous namespace)"

/* A name being shortened, and its output. */
struct shortening {
	const char *at;
	char *out; /* room for at least three times the name */
	size_t n;
	bool has_parameters; /* parameters were just left out: usually the name ends there */
};

static void put(struct shortening *name, const char *text, size_t n)
{
	memcpy(name->out + name->n, text, n);
	name->n += n;
}

/* Returns what follows the bracket that closes the one at `at`; the end if there is none. */
static const char *after_bracket(const char *at)
{
	char opening = *at, closing = opening == '(' ? ')' : '>';
	int depth = 0, inner = 0;

	for (; *at; at++) {
		/* A parenthesis in template arguments may contain a > of its own. */
		if (opening == '<' && *at == '(')
			inner++;
		else if (opening == '<' && *at == ')' && inner)
			inner--;
		else if (*at == opening && !inner)
			depth++;
		else if (*at == closing && !inner && at[-1] != '-' && --depth == 0)
			return at + 1;
	}
	return at;
}

static bool is_word(char byte)
{
	return byte == '_' || isalnum((unsigned char)byte);
}

/* Copy "operator()", "operator<<", "operator new[]" or "operator bool". */
static bool take_operator(struct shortening *name)
{
	const char *start = name->at, *at;

	if (strncmp(start, "operator", 8) != 0 || is_word(start[8]) ||
	    (name->n && is_word(name->out[name->n - 1])))
		return false;
	at = start + 8;
	if (!strncmp(at, "()", 2) || !strncmp(at, "[]", 2))
		at += 2;
	else if (*at == ' ')
		at += 1 + strcspn(at + 1, "(<");
	else
		at += strspn(at, "+-*/%^&|~!=<>,\"");
	put(name, start, (size_t)(at - start));
	name->at = at + !strncmp(at, " <", 2);
	return true;
}

static void take_parenthesis(struct shortening *name)
{
	if (!strncmp(name->at, ANONYMOUS, strlen(ANONYMOUS))) {
		put(name, ANONYMOUS, strlen(ANONYMOUS));
		name->at += strlen(ANONYMOUS);
		return;
	}
	name->at = after_bracket(name->at);
	name->has_parameters = true;
}

/* Before a blank is the return type; after parameters, what follows a blank is left out. */
static bool take_blank(struct shortening *name)
{
	static const char *const endings[] = {" const", " volatile", " &", " [", " noexcept"};

	for (size_t i = 0; name->has_parameters && i < sizeof(endings) / sizeof(*endings); i++)
		if (!strncmp(name->at, endings[i], strlen(endings[i])))
			return false;
	name->n = 0;
	name->at++;
	return true;
}

static bool take(struct shortening *name)
{
	char byte = *name->at;

	if (take_operator(name))
		return true;
	if (byte == '<') {
		name->at = after_bracket(name->at);
		put(name, ELLIPSIS, strlen(ELLIPSIS));
	} else if (byte == '(') {
		take_parenthesis(name);
	} else if (byte == ' ') {
		return take_blank(name);
	} else if (!strncmp(name->at, "[abi:", 5)) {
		name->at += strcspn(name->at, "]");
		name->at += *name->at == ']';
	} else {
		put(name, name->at++, 1);
		name->has_parameters = false;
	}
	return true;
}

char *torsh_short_function(const char *function)
{
	size_t n = strlen(function);
	struct shortening name = {
		.at = function,
		.out = torsh_need_items(NULL, 0, 3 * n + sizeof(ELLIPSIS) + sizeof(ANONYMOUS), 1),
	};

	while (*name.at && take(&name)) {
	}
	/* A name in another form may lose everything: it is returned unchanged. */
	if (!name.n && n) {
		memcpy(name.out, function, n);
		name.n = n;
	}
	name.out[name.n] = '\0';
	return name.out;
}

char *torsh_short_frame(const struct frame *frame)
{
	if (!frame->function)
		return torsh_need_text("?");
	return frame->is_python ? torsh_need_text("%s", frame->function)
				: torsh_short_function(frame->function);
}

const char *torsh_frame_path(const char *path, const char *directory)
{
	size_t n = directory ? strlen(directory) : 0;
	const char *inside = torsh_path_in_package(path);

	if (inside)
		return inside;
	if (n > 1 && !strncmp(path, directory, n) && path[n] == '/')
		return path + n + 1;
	return strncmp(path, "./", 2) ? path : path + 2;
}

char *torsh_short_place(const struct frame *frame, const char *directory)
{
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
	const char *module = slash ? slash + 1 : frame->module;

	if (frame->file && frame->line)
		return torsh_need_text("%s:%d", torsh_frame_path(frame->file, directory),
				       frame->line);
	if (frame->is_python)
		return torsh_need_text("%s", frame->file ? torsh_frame_path(frame->file, directory)
							 : "?");
	if (module && frame->function)
		return torsh_need_text("%s", module);
	if (module)
		return torsh_need_text("%s+0x%" PRIx64, module, frame->module_offset);
	return torsh_need_text("0x%" PRIx64, frame->address);
}
