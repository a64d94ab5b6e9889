/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/frames/frame_kind.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N(names) (sizeof(names) / sizeof(*(names)))

/* Prefixes of the last component of a module's path. */
static const char *const c_libraries[] = {
	"libc.so",     "libc-2.",     "libm.so",     "libpthread",   "libdl.so",  "librt.so",
	"ld-linux",    "ld-2.",	      "ld-musl",     "libc.musl",    "libresolv", "[vdso]",
	"libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc",
};
static const char *const cxx_libraries[] = {"libstdc++", "libc++", "libgcc_s", "libsupc++"};
static const char *const known_libraries[] = {
	"libtorch",  "libc10",	  "libshm.so", "libcaffe2", "libcuda",
	"libcudart", "libcublas", "libcudnn",  "libcufft",  "libnccl",
	"libcupti",  "libgomp",	  "libiomp",   "libomp",    "libmkl",
};

/* Prefixes of a module's path where the system or a distribution installs. */
static const char *const system_folders[] = {
	"/usr/bin/", "/usr/lib",    "/usr/sbin/",  "/usr/local/lib", "/usr/local/cuda",
	"/lib",	     "/bin/",	    "/sbin/",	   "/opt/conda/",    "/opt/nvidia/",
	"/opt/rocm", "/opt/intel/", "/nix/store/", "/snap/",
};
/* Parts of such a path. */
static const char *const installed_parts[] = {
	"/.pyenv/versions/", "/miniconda3/", "/anaconda3/", "/miniforge3/",
	"/mambaforge/",	     "/conda/envs/", "/spack/opt/",
};

static const char *const starters[] = {
	"_start",	   "__libc_start_main", "__libc_start_call_main",
	"__libc_csu_init", "start_thread",	"clone",
	"clone3",	   "__clone3",
};
static const char *const cxx_names[] = {"std::",	   "__gnu_cxx::", "operator new",
					"operator delete", "__cxa_",	  "pybind11::"};

static bool begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool begins_with_one(const char *text, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (begins(text, prefixes[i]))
			return true;
	return false;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Returns what follows "/lib/python3.11/" or "/lib/python3/", anywhere in the path; NULL: it has
 * neither.
 */
static const char *after_python_folder(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/python3")); at++) {
		const char *end = at + strlen("/python3");

		while (*end == '.' || isdigit((unsigned char)*end))
			end++;
		if (*end == 't')
			end++;
		if (*end == '/' && at >= path + 3 && strstr(path, "/lib") &&
		    strstr(path, "/lib") < at)
			return end + 1;
	}
	return NULL;
}

/* Returns what follows the last "site-packages/" or "dist-packages/"; NULL: it has neither. */
static const char *after_packages(const char *path)
{
	static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
	const char *found = NULL;

	for (size_t i = 0; i < N(folders); i++)
		for (const char *at = path; (at = strstr(at, folders[i])); at++)
			if (!found || at + strlen(folders[i]) > found)
				found = at + strlen(folders[i]);
	return found;
}

const char *torsh_path_in_standard(const char *path)
{
	return after_packages(path) ? NULL : after_python_folder(path);
}

const char *torsh_path_in_package(const char *path)
{
	const char *inside = after_packages(path);

	return inside ? inside : after_python_folder(path);
}

static bool is_below(const char *path, const char *directory)
{
	size_t n = directory ? strlen(directory) : 0;

	return n > 1 && !strncmp(path, directory, n) && path[n] == '/';
}

/*
 * Methods that dataclasses and named tuples generate have the file "<string>", as `python -c`
 * does.
 */
static bool is_generated_method(const char *function)
{
	const char *dot = function ? strrchr(function, '.') : NULL;
	const char *name = dot ? dot + 1 : function;

	return name && name[0] == '_' && name[1] == '_' && strcmp(name, "__main__") != 0;
}

/* The kind of a frame with a file that is not on disk. */
static enum frame_kind kind_of_brackets(const struct frame *frame)
{
	static const char *const typed[] = {"<stdin>", "<ipython-input", "<doctest", "<console>",
					    "<timeit"};

	if (begins(frame->file, "<frozen "))
		return FRAME_IMPORT;
	if (!strcmp(frame->file, "<torsh>"))
		return FRAME_AGENT;
	if (!strcmp(frame->file, "<string>"))
		return is_generated_method(frame->function) ? FRAME_PACKAGE : FRAME_OWN;
	return begins_with_one(frame->file, typed, N(typed)) ? FRAME_OWN : FRAME_PACKAGE;
}

static enum frame_kind kind_of_python(const struct frame *frame)
{
	const char *inside;

	if (!frame->file || !*frame->file)
		return FRAME_PACKAGE;
	if (*frame->file == '<')
		return kind_of_brackets(frame);
	if (after_packages(frame->file))
		return FRAME_PACKAGE;
	inside = after_python_folder(frame->file);
	if (!inside)
		return FRAME_OWN;
	return begins(inside, "importlib/") ? FRAME_IMPORT : FRAME_STANDARD;
}

static bool is_interpreter(const char *module, const char *name)
{
	const char *inside = torsh_path_in_standard(module);

	if (begins(name, "libpython") || (inside && begins(inside, "lib-dynload/")))
		return true;
	if (!begins(name, "python"))
		return false;
	for (name += strlen("python"); *name; name++)
		if (!strchr("0123456789.td", *name))
			return false;
	return true;
}

static bool is_installed(const char *module, const char *name)
{
	if (after_packages(module) || begins_with_one(module, system_folders, N(system_folders)) ||
	    begins_with_one(name, known_libraries, N(known_libraries)))
		return true;
	for (size_t i = 0; i < N(installed_parts); i++)
		if (strstr(module, installed_parts[i]))
			return true;
	return false;
}

/* Returns the name without the return type, which precedes the name of a template function. */
static const char *after_return_type(const char *function)
{
	const char *name = function;
	int depth = 0;

	if (strstr(function, "operator "))
		return function;
	for (const char *at = function; *at; at++) {
		if (*at == '<' || *at == '{')
			depth++;
		else if ((*at == '>' || *at == '}') && depth)
			depth--;
		else if (*at == '(' && !depth)
			break;
		else if (*at == ' ' && !depth)
			name = at + 1;
	}
	return name;
}

static bool is_cxx(const struct frame *frame)
{
	if (frame->file && (begins(frame->file, "/usr/include/") || strstr(frame->file, "/c++/") ||
			    begins(frame->file, "/rustc/")))
		return true;
	return frame->function &&
	       begins_with_one(after_return_type(frame->function), cxx_names, N(cxx_names));
}

static bool is_starter(const char *function)
{
	for (size_t i = 0; function && i < N(starters); i++)
		if (!strcmp(function, starters[i]))
			return true;
	return false;
}

static enum frame_kind kind_of_native(const struct frame *frame, const char *directory)
{
	const char *module = frame->module, *name = module ? last_component(module) : NULL;

	if (!module || !*module)
		return FRAME_LIBRARY;
	if (begins(name, "libtorshagent"))
		return FRAME_AGENT;
	if (begins_with_one(name, c_libraries, N(c_libraries)) || is_starter(frame->function))
		return FRAME_C_LIBRARY;
	if (begins_with_one(name, cxx_libraries, N(cxx_libraries)))
		return FRAME_CXX;
	if (is_interpreter(module, name))
		return FRAME_INTERPRETER;
	if (is_cxx(frame))
		return FRAME_CXX;
	if (frame->file && *frame->file == '/' && torsh_path_in_package(frame->file))
		return FRAME_LIBRARY;
	if (frame->file && is_below(frame->file, directory))
		return FRAME_OWN;
	return is_installed(module, name) ? FRAME_LIBRARY : FRAME_OWN;
}

enum frame_kind torsh_frame_kind(const struct frame *frame, const char *directory)
{
	if (frame->cut)
		return FRAME_CUT;
	return frame->is_python ? kind_of_python(frame) : kind_of_native(frame, directory);
}

bool torsh_frame_is_plumbing(enum frame_kind kind)
{
	return kind == FRAME_IMPORT || kind == FRAME_INTERPRETER || kind == FRAME_CXX ||
	       kind == FRAME_C_LIBRARY || kind == FRAME_AGENT;
}

bool torsh_frame_package(const struct frame *frame, char *out, size_t n_out)
{
	const char *path = frame->is_python ? frame->file : frame->module;
	const char *inside = path ? torsh_path_in_package(path) : NULL;
	size_t n;

	*out = '\0';
	if (!inside)
		return false;
	if (begins(inside, "lib-dynload/"))
		inside += strlen("lib-dynload/");
	n = strcspn(inside, "/.");
	/* Wheels put bundled libraries into a folder such as numpy.libs. */
	if (!n)
		return false;
	snprintf(out, n_out, "%.*s", (int)n, inside);
	return true;
}

const char *torsh_working_directory(void)
{
	static char *directory;
	static bool is_known;

	if (!is_known)
		directory = getcwd(NULL, 0);
	is_known = true;
	return directory;
}
