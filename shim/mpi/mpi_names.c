/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The recorded functions of MPI, and the names that they have in C and in Fortran. */
#include <string.h>

#include "shim/mpi/mpi.h"

const struct mpi_call torsh_mpi_calls[N_MPI_CALLS] = {
#define CALL(name_, n, role_, ...) \
	[MPI_CALL_##name_] = {     \
		.name = "MPI_" #name_, .n_arguments = n, .role = role_, .at = {__VA_ARGS__}},
#include "shim/mpi/mpi.def"
};

static char to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_upper(const char *text)
{
	for (; *text; text++)
		if (*text >= 'a' && *text <= 'z')
			return false;
	return true;
}

/* What follows known in a Fortran name, which is in lower case, or as a whole in upper case. */
static const char *after_name(const char *name, const char *known)
{
	for (; *known; known++, name++)
		if (to_lower(*name) != to_lower(*known))
			return NULL;
	return name;
}

/* The form of a name after the function's own one; N_MPI_FORMS: it is another function's. */
static enum mpi_form fortran_form(const char *name, const char *rest)
{
	if (!*rest && is_upper(name))
		return MPI_IN_FORTRAN;
	if (name[0] != 'm')
		return N_MPI_FORMS;
	if (!*rest || !strcmp(rest, "_") || !strcmp(rest, "__"))
		return MPI_IN_FORTRAN;
	if (!strcmp(rest, "_f08_"))
		return MPI_IN_FORTRAN_2008;
	return strcmp(rest, "_f08ts_") ? N_MPI_FORMS : MPI_IN_FORTRAN_2008_TS;
}

static enum mpi_form form_of(const char *name, const char *known)
{
	size_t n = strlen(known);
	const char *rest;

	if (!strncmp(name, known, n)) {
		if (!name[n])
			return MPI_IN_C;
		if (!strcmp(name + n, "_c"))
			return MPI_IN_C_LARGE;
	}
	rest = after_name(name, known);
	return rest ? fortran_form(name, rest) : N_MPI_FORMS;
}

int torsh_mpi_number(const char *name, enum mpi_form *form)
{
	if ((name[0] != 'M' && name[0] != 'm') || to_lower(name[1]) != 'p' ||
	    to_lower(name[2]) != 'i' || name[3] != '_')
		return -1;
	for (int i = 0; i < N_MPI_CALLS; i++) {
		*form = form_of(name, torsh_mpi_calls[i].name);
		if (*form != N_MPI_FORMS)
			return i;
	}
	return -1;
}
