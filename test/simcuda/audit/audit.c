/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Leads the linker to the simulated libraries, whatever path a program has of its own (PyTorch's
 * DT_RPATH) and whatever it makes of LD_PRELOAD: an audit library (rtld-audit(7)), which lies
 * beside them.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[4096];

unsigned la_version(unsigned version)
{
	Dl_info info;
	const char *slash;

	if (!dladdr((void *)la_version, &info) || !(slash = strrchr(info.dli_fname, '/')))
		return 0;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - info.dli_fname), info.dli_fname);
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	char *path = NULL;

	(void)cookie;
	/* Only the requested name; the results of the search come here too. */
	if (flag != LA_SER_ORIG)
		return (char *)name;
	if (asprintf(&path, "%s/%s", folder, base) > 0 && !access(path, F_OK))
		return path;
	free(path);
	return (char *)name;
}
