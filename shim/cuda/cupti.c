/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cuda/cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "shim/find_text.h"
#include "shim/libc/next.h"
#include "shim/loader/symbol.h"
#include "shim/sys.h"

struct cupti_functions torsh_cupti;
void *torsh_cupti_library;

static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

#define PATH_BYTES (PATH_MAX + 64u)
#define N_NAMES (sizeof(names) / sizeof(*names))

/*
 * Where libcupti is, relative to the folder of libcudart: in PyPI's wheels of CUDA 13 and of 12,
 * and in a toolkit.
 */
static const char *const folders[] = {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/",
				      "../../../extras/CUPTI/lib64/"};

#define N_FOLDERS (sizeof(folders) / sizeof(*folders))

/* The loaded libcudart; no folder: it is absent, or linked into the program. */
struct runtime {
	const char *folder;
	size_t n_folder;
	const char *version; /* "12", "12.1.105", "" */
};

static int find_runtime(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	static const char name[] = "/libcudart.so";
	struct runtime *runtime = context;
	const char *found = object->dlpi_name ? torsh_find_text(object->dlpi_name, name) : NULL;

	(void)n_bytes;
	if (!found || found - object->dlpi_name >= PATH_MAX)
		return 0;
	runtime->folder = object->dlpi_name;
	runtime->n_folder = (size_t)(found + 1 - object->dlpi_name);
	runtime->version = found + sizeof(name) - 1;
	runtime->version += *runtime->version == '.';
	return 1;
}

static bool is_of_version(const char *name, const char *version)
{
	const char *own = name + strlen("libcupti.so");
	size_t n = strcspn(version, ".");

	return n && *own == '.' && strlen(own + 1) == n && !memcmp(own + 1, version, n);
}

/*
 * The names in the order to try: first that of the program's own CUDA, because a driver that
 * supports it may be too old for a newer one.
 */
static void order_names(const struct runtime *runtime, const char *ordered[N_NAMES])
{
	size_t n = 0;

	for (int is_own = 1; is_own >= 0; is_own--)
		for (size_t i = 0; i < N_NAMES; i++)
			if ((runtime->folder && is_of_version(names[i], runtime->version)) ==
			    is_own)
				ordered[n++] = names[i];
}

static void *open_loaded(const char *const ordered[N_NAMES])
{
	for (size_t i = 0; i < N_NAMES; i++) {
		void *library = torsh_next.dlopen(ordered[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library)
			return library;
	}
	return NULL;
}

static void *open_in(const char *folder, size_t n_folder, const char *place, const char *name)
{
	char *path;
	void *library;

	if (n_folder + strlen(place) + strlen(name) >= PATH_BYTES)
		return NULL;
	/* Not on the stack: CUDA's first call may come on a small one. */
	path = torsh_sys_pages(PATH_BYTES);
	if (!path)
		return NULL;
	memcpy(path, folder, n_folder);
	strcpy(path + n_folder, place);
	strcat(path, name);
	library = torsh_next.dlopen(path, RTLD_LAZY);
	torsh_sys_munmap(path, PATH_BYTES);
	return library;
}

void *torsh_cupti_open_beside(const void *address, const char *name)
{
	const char *slash;
	Dl_info info;

	if (!dladdr(address, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	return slash ? open_in(info.dli_fname, (size_t)(slash + 1 - info.dli_fname), "", name)
		     : NULL;
}

static void *open_beside(const struct runtime *runtime, const char *const ordered[N_NAMES])
{
	void *library = NULL;

	for (size_t i = 0; i < N_FOLDERS && !library && runtime->folder; i++)
		for (size_t k = 0; k < N_NAMES && !library; k++)
			library =
				open_in(runtime->folder, runtime->n_folder, folders[i], ordered[k]);
	return library;
}

static void *open_by_name(const char *const ordered[N_NAMES])
{
	void *library = NULL;

	for (size_t i = 0; i < N_NAMES && !library; i++)
		library = torsh_next.dlopen(ordered[i], RTLD_LAZY);
	for (size_t i = 0; i < N_NAMES && !library; i++)
		library = open_in("/usr/local/cuda/", sizeof("/usr/local/cuda/") - 1,
				  "extras/CUPTI/lib64/", ordered[i]);
	return library;
}

int torsh_cupti_open(void)
{
	struct runtime runtime = {0};
	const char *ordered[N_NAMES];
	void *library;

	dl_iterate_phdr(find_runtime, &runtime);
	order_names(&runtime, ordered);
	library = open_loaded(ordered);
	if (!library)
		library = open_beside(&runtime, ordered);
	if (!library)
		library = open_by_name(ordered);
	if (!library)
		return -ENOENT;
	torsh_cupti_library = library;
#define CUPTI_OPTIONAL(Name, parameters) \
	*(void **)&torsh_cupti.Name = torsh_symbol(library, "cupti" #Name);
#define CUPTI(Name, parameters)          \
	CUPTI_OPTIONAL(Name, parameters) \
	if (!torsh_cupti.Name)           \
		return -ENOSYS;
#include "shim/cuda/cupti.def"
#undef CUPTI
#undef CUPTI_OPTIONAL
	return 0;
}
