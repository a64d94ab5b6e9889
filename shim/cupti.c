/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>

#include "shim/hooks.h"
#include "shim/next.h"
#include "shim/symbol.h"

struct cupti_functions torsh_cupti;
void *torsh_cupti_library;

static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

#define N_NAMES (sizeof(names) / sizeof(*names))

/* Where it lies, seen from the folder of libcudart: in PyPI's wheels of CUDA 13 and of 12, and in a toolkit. */
static const char *const places[] = {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/",
				     "../../../extras/CUPTI/lib64/"};

#define N_PLACES (sizeof(places) / sizeof(*places))

/* Called by libcuda inside of cuInit, where CUDA_INJECTION64_PATH leads here. Not 0: it is content. */
EXPORT int InitializeInjection(void)
{
	torsh_cuda_injected();
	return 1;
}

static void *open_loaded(void)
{
	for (size_t i = 0; i < N_NAMES; i++) {
		void *library = torsh_next.dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library)
			return library;
	}
	return NULL;
}

static int find_runtime(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	const char **folder_end = context,
		   *found = object->dlpi_name ? strstr(object->dlpi_name, "/libcudart.so") : NULL;

	(void)n_bytes;
	if (!found || found - object->dlpi_name >= PATH_MAX)
		return 0;
	folder_end[0] = object->dlpi_name;
	folder_end[1] = found + 1;
	return 1;
}

static void *open_in(const char *folder, size_t n_folder, const char *place, const char *name)
{
	char path[PATH_MAX + 64];

	if (n_folder + strlen(place) + strlen(name) >= sizeof(path))
		return NULL;
	memcpy(path, folder, n_folder);
	strcpy(path + n_folder, place);
	strcat(path, name);
	return torsh_next.dlopen(path, RTLD_LAZY);
}

static void *open_beside_runtime(void)
{
	const char *folder[2] = {NULL, NULL};
	void *library = NULL;

	if (!dl_iterate_phdr(find_runtime, folder))
		return NULL;
	for (size_t i = 0; i < N_PLACES && !library; i++)
		for (size_t k = 0; k < N_NAMES && !library; k++)
			library = open_in(folder[0], (size_t)(folder[1] - folder[0]), places[i], names[k]);
	return library;
}

static void *open_by_name(void)
{
	void *library = NULL;

	for (size_t i = 0; i < N_NAMES && !library; i++)
		library = torsh_next.dlopen(names[i], RTLD_LAZY);
	for (size_t i = 0; i < N_NAMES && !library; i++)
		library = open_in("/usr/local/cuda/", sizeof("/usr/local/cuda/") - 1, "extras/CUPTI/lib64/", names[i]);
	return library;
}

int torsh_cupti_open(void)
{
	void *library = open_loaded();

	if (!library)
		library = open_beside_runtime();
	if (!library)
		library = open_by_name();
	if (!library)
		return -ENOENT;
	torsh_cupti_library = library;
#define CUPTI_OPTIONAL(Name, parameters) *(void **)&torsh_cupti.Name = torsh_symbol(library, "cupti" #Name);
#define CUPTI(Name, parameters)          \
	CUPTI_OPTIONAL(Name, parameters) \
	if (!torsh_cupti.Name)           \
		return -ENOSYS;
#include "shim/cupti.def"
#undef CUPTI
#undef CUPTI_OPTIONAL
	return 0;
}
