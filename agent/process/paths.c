/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/paths.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/modules/maps.h"
#include "agent/process/text_buffer.h"
#include "shim/libc/next.h"
#include "shim/sys.h"

static char agent_path[PATH_MAX];
static char program_path[PATH_MAX];
static bool has_proc;

/* The mapping of this function has the agent's absolute path, whatever form LD_PRELOAD has. */
int torsh_paths_find_agent(void)
{
	struct text text = TEXT_IN(agent_path);
	const char *name = torsh_next_own_path();

	if (!name)
		return -ENOENT;
	if (*name != '/') {
		if (TORSH_SYS(SYS_getcwd, agent_path, sizeof(agent_path), 0, 0, 0, 0) < 0)
			return -ENOENT;
		text.length = strlen(agent_path);
		torsh_text_put(&text, "/");
	}
	torsh_text_put(&text, name);
	return 0;
}

const char *torsh_agent_path(void)
{
	return agent_path;
}

const char *torsh_agent_program(void)
{
	return program_path;
}

const char *torsh_program_name(void)
{
	const char *slash = strrchr(program_path, '/');

	return slash ? slash + 1 : program_path;
}

/*
 * For "ld.so PROGRAM" the kernel's program is the loader, with a base of 0; it passes the
 * program's headers. Without /proc the kernel still has the name by which the program was started.
 */
void torsh_paths_find_program(void)
{
	struct text text = TEXT_IN(program_path);
	const char *started = (const char *)getauxval(AT_EXECFN);
	long n;

	if (getauxval(AT_BASE) == 0)
		torsh_maps_put_path(getauxval(AT_PHDR), &text);
	n = text.length
		    ? (long)text.length
		    : torsh_sys_readlink("/proc/self/exe", program_path, sizeof(program_path) - 1);
	program_path[n > 0 ? n : 0] = '\0';
	has_proc = n > 0;
	if (!has_proc && started)
		torsh_text_put(&text, started);
}

bool torsh_paths_has_proc(void)
{
	return has_proc;
}
