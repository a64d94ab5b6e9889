/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The oneDNN that is linked into libtorch_cpu.so exports nothing, but prints a line for each
 * primitive that it executed if it is set to. The agent sets it unless the user did, and its
 * references to printf lead here: the lines go to the collector instead of the program's output.
 * Lines that the user requested are printed as well.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/blas/blas.h"
#include "shim/loader/objects.h"
#include "shim/loader/symbol.h"

#define SET_VERBOSE "_ZN5torch7verbose19_mkldnn_set_verboseEi"

typedef int set_verbose(int level);

/* The C library's. */
static int (*next_vprintf)(const char *, va_list);
static int (*next_vprintf_chk)(int, const char *, va_list);
static int (*next_fflush)(FILE *);
static FILE *const *next_stdout;

static _Atomic bool is_waiting; /* PyTorch's library is there, and is not set yet */
static _Atomic bool is_printed; /* the user wants to see the lines */
static _Thread_local bool is_withheld; /* the last line; then its fflush is, too */

static int print(int flag, const char *format, va_list arguments, const void *caller)
{
	bool is_text = format[0] == '%' && format[1] == 's' && !format[2];
	const char *line = NULL;
	va_list copy;

	if (is_text) {
		va_copy(copy, arguments);
		line = va_arg(copy, const char *);
		va_end(copy);
	}
	if (line && torsh_text_after(line, "onednn_verbose,")) {
		torsh_dnnl_executed(line, caller);
		is_withheld = !atomic_load_explicit(&is_printed, memory_order_relaxed);
		if (is_withheld)
			return (int)strlen(line);
	}
	return flag >= 0 && next_vprintf_chk ? next_vprintf_chk(flag, format, arguments)
					     : next_vprintf(format, arguments);
}

static int print_checked(int flag, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = print(flag, format, arguments, __builtin_frame_address(0));
	va_end(arguments);
	return n;
}

static int print_plainly(const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = print(-1, format, arguments, __builtin_frame_address(0));
	va_end(arguments);
	return n;
}

static int flush(FILE *file)
{
	if (is_withheld && file && file == *next_stdout) {
		is_withheld = false;
		return 0;
	}
	return next_fflush(file);
}

static int set_next(int level)
{
	set_verbose *next = (set_verbose *)torsh_objects_find_in("/libtorch_cpu.so", SET_VERBOSE);

	return next ? next(level) : 0;
}

/* The program's own setting: it sees its lines, and the agent goes on. */
static int set(int level)
{
	atomic_store_explicit(&is_printed, level > 0, memory_order_relaxed);
	return set_next(level > 0 ? level : 1);
}

static const struct {
	const char *name;
	void *wrapper;
} wrappers[] = {
	{"__printf_chk", print_checked},
	{"printf", print_plainly},
	{"fflush", flush},
	{SET_VERBOSE, set},
};

static bool is_set_by_user(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0") != 0 && strcmp(value, "none") != 0;
}

static bool prepare(void)
{
	next_vprintf_chk =
		(int (*)(int, const char *, va_list))torsh_symbol(RTLD_NEXT, "__vprintf_chk");
	next_fflush = (int (*)(FILE *))torsh_symbol(RTLD_NEXT, "fflush");
	next_stdout = (FILE *const *)torsh_symbol(RTLD_NEXT, "stdout");
	next_vprintf = (int (*)(const char *, va_list))torsh_symbol(RTLD_NEXT, "vprintf");
	return next_vprintf && next_fflush && next_stdout;
}

int torsh_dnnl_verbose_find(const char *name, bool is_torch_cpu)
{
	if (*name != '_' && (!is_torch_cpu || (*name != 'p' && *name != 'f')))
		return -1;
	for (int i = 0; i < (int)(sizeof(wrappers) / sizeof(*wrappers)); i++)
		if (!strcmp(name, wrappers[i].name) &&
		    (is_torch_cpu || wrappers[i].wrapper == (void *)set))
			return next_vprintf || prepare() ? i : -1;
	return -1;
}

void *torsh_dnnl_verbose_wrapper(int i)
{
	return wrappers[i].wrapper;
}

void torsh_dnnl_verbose_found(void)
{
	atomic_store_explicit(&is_waiting, next_vprintf != NULL, memory_order_relaxed);
}

void torsh_dnnl_verbose_start(void)
{
	if (!atomic_exchange_explicit(&is_waiting, false, memory_order_relaxed))
		return;
	if (is_set_by_user("ONEDNN_VERBOSE") || is_set_by_user("DNNL_VERBOSE"))
		atomic_store_explicit(&is_printed, true, memory_order_relaxed);
	else
		set_next(1);
}
