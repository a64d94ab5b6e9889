/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The recorded routines of BLAS and LAPACK, and the names that they have. */
#include <string.h>

#include "shim/blas/blas.h"

static const struct blas_routine routines[] = {
#define ROUTINE(name_, types_, n, ...) \
	{.name = #name_, .types = types_, .n_arguments = n, .at = {__VA_ARGS__}},
#include "shim/blas/blas.def"
};

/* The end of a name: "_64_", "64_" and so on mean that integers have 64 bits. */
static bool read_suffix(const char *rest, struct blas_name *name)
{
	name->is_plain = name->form == BLAS_IN_FORTRAN && !*rest;
	if (name->form == BLAS_IN_LAPACKE && !strncmp(rest, "_work", 5)) {
		name->is_work = true;
		rest += 5;
	}
	if (!*rest)
		return true;
	if (name->form == BLAS_IN_FORTRAN && (!strcmp(rest, "_") || !strcmp(rest, "__")))
		return true;
	rest += *rest == '_';
	name->is_wide = !strcmp(rest, "64_") || !strcmp(rest, "64");
	return name->is_wide;
}

/* Products whose type is an argument. */
static bool read_cublas_ex(const char *text, struct blas_name *name)
{
#define GEMM_EX(at_batch)         \
	.n_arguments = 22,        \
	.at = {.letters = {1, 2}, \
	       .m = 3,            \
	       .n = 4,            \
	       .k = 5,            \
	       .type = 8,         \
	       .batch = at_batch }
	static const struct blas_routine known[] = {
		{.name = "gemmEx", GEMM_EX(0)},
		{.name = "gemmStridedBatchedEx", GEMM_EX(20)},
		{.name = "gemmBatchedEx", GEMM_EX(17)},
	};
#undef GEMM_EX

	for (size_t i = 0; *text == 'G' && i < sizeof(known) / sizeof(*known); i++) {
		const char *rest = torsh_text_after(text + 1, known[i].name + 1);

		if (!rest || (*rest && strcmp(rest, "_64")))
			continue;
		name->form = BLAS_IN_CUBLAS;
		name->is_wide = *rest;
		name->routine = &known[i];
		return true;
	}
	return false;
}

/* cuBLAS: the routines on matrices, with "_v2", and with "_64" for integers of 64 bits. */
static bool read_cublas(const char *text, struct blas_name *name)
{
	static const struct {
		const char *name, *routine;
	} known[] = {
		{"gemmStridedBatched", "gemm_batch_strided"},
		{"gemm_v2", "gemm"},
		{"gemm3m", "gemm3m"},
		{"symm_v2", "symm"},
		{"hemm_v2", "hemm"},
		{"syrk_v2", "syrk"},
		{"herk_v2", "herk"},
		{"syr2k_v2", "syr2k"},
		{"her2k_v2", "her2k"},
		{"trsm_v2", "trsm"},
		{"gemv_v2", "gemv"},
	};
	static const char types[] = "SDCZ";
	const char *at = *text ? strchr(types, *text) : NULL, *rest;

	if (!at)
		return read_cublas_ex(text, name);
	name->form = BLAS_IN_CUBLAS;
	name->type = "sdcz"[at - types];
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		rest = torsh_text_after(text + 1, known[i].name);
		if (!rest || (*rest && strcmp(rest, "_64")))
			continue;
		name->is_wide = *rest;
		for (size_t k = 0; k < sizeof(routines) / sizeof(*routines); k++)
			if (!strcmp(routines[k].name, known[i].routine))
				name->routine = &routines[k];
		return true;
	}
	return false;
}

static bool read_routine(const char *text, struct blas_name *name)
{
	name->type = *text++;
	for (size_t i = 0; i < sizeof(routines) / sizeof(*routines); i++) {
		const char *rest = torsh_text_after(text, routines[i].name);

		name->is_wide = name->is_work = name->is_plain = false;
		if (rest && strchr(routines[i].types, name->type) && read_suffix(rest, name)) {
			name->routine = &routines[i];
			return true;
		}
	}
	return false;
}

bool torsh_blas_name(const char *text, struct blas_name *name)
{
	const char *rest = text[0] == 's' ? torsh_text_after(text, "scipy_") : NULL, *routine;

	*name = (struct blas_name){.form = BLAS_IN_FORTRAN};
	if (torsh_library_name(text, name))
		return true;
	rest = rest ? rest : text;
	if (*rest == 'c' && (routine = torsh_text_after(rest, "cublas")))
		return read_cublas(routine, name);
	if (*rest == 'c' && (routine = torsh_text_after(rest, "cblas_")))
		name->form = BLAS_IN_CBLAS;
	else if (*rest == 'L' && (routine = torsh_text_after(rest, "LAPACKE_")))
		name->form = BLAS_IN_LAPACKE;
	else
		routine = rest;
	if (*routine != 's' && *routine != 'd' && *routine != 'c' && *routine != 'z')
		return false;
	return read_routine(routine, name);
}
