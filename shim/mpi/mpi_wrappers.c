/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A wrapper for each recorded function of MPI in each of its forms. It passes its arguments on as
 * it got them, and tells collectors/mpi what happens. The next definition is another tool's, if one
 * has wrappers of its own, or the library's.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/hooks.h"
#include "shim/mpi/mpi.h"

static void *_Atomic next[N_MPI_FORMS][N_MPI_CALLS];

typedef uintptr_t word;

/* By number of arguments: parameters, their names, the elements of an array of them. */
#define PARAMETERS_0 void
#define PARAMETERS_1 word a1
#define PARAMETERS_2 PARAMETERS_1, word a2
#define PARAMETERS_3 PARAMETERS_2, word a3
#define PARAMETERS_4 PARAMETERS_3, word a4
#define PARAMETERS_5 PARAMETERS_4, word a5
#define PARAMETERS_6 PARAMETERS_5, word a6
#define PARAMETERS_7 PARAMETERS_6, word a7
#define PARAMETERS_8 PARAMETERS_7, word a8
#define PARAMETERS_9 PARAMETERS_8, word a9
#define PARAMETERS_10 PARAMETERS_9, word a10
#define PARAMETERS_11 PARAMETERS_10, word a11
#define PARAMETERS_12 PARAMETERS_11, word a12
#define PARAMETERS_13 PARAMETERS_12, word a13
#define PARAMETERS_14 PARAMETERS_13, word a14
#define PARAMETERS_15 PARAMETERS_14, word a15
#define NAMES_0 0 /* no array is empty */
#define NAMES_1 a1
#define NAMES_2 NAMES_1, a2
#define NAMES_3 NAMES_2, a3
#define NAMES_4 NAMES_3, a4
#define NAMES_5 NAMES_4, a5
#define NAMES_6 NAMES_5, a6
#define NAMES_7 NAMES_6, a7
#define NAMES_8 NAMES_7, a8
#define NAMES_9 NAMES_8, a9
#define NAMES_10 NAMES_9, a10
#define NAMES_11 NAMES_10, a11
#define NAMES_12 NAMES_11, a12
#define NAMES_13 NAMES_12, a13
#define NAMES_14 NAMES_13, a14
#define NAMES_15 NAMES_14, a15
#define PASSED_0
#define PASSED_1 at[0]
#define PASSED_2 PASSED_1, at[1]
#define PASSED_3 PASSED_2, at[2]
#define PASSED_4 PASSED_3, at[3]
#define PASSED_5 PASSED_4, at[4]
#define PASSED_6 PASSED_5, at[5]
#define PASSED_7 PASSED_6, at[6]
#define PASSED_8 PASSED_7, at[7]
#define PASSED_9 PASSED_8, at[8]
#define PASSED_10 PASSED_9, at[9]
#define PASSED_11 PASSED_10, at[10]
#define PASSED_12 PASSED_11, at[11]
#define PASSED_13 PASSED_12, at[12]
#define PASSED_14 PASSED_13, at[13]
#define PASSED_15 PASSED_14, at[14]
/* Fortran's functions have one more, and after it the length of a text, if there is one. */
#define WITH_ERROR_0 2
#define WITH_ERROR_1 3
#define WITH_ERROR_2 4
#define WITH_ERROR_3 5
#define WITH_ERROR_4 6
#define WITH_ERROR_5 7
#define WITH_ERROR_6 8
#define WITH_ERROR_7 9
#define WITH_ERROR_8 10
#define WITH_ERROR_9 11
#define WITH_ERROR_10 12
#define WITH_ERROR_11 13
#define WITH_ERROR_12 14
#define WITH_ERROR_13 15

/* NAMES_n with a comma; nothing for 0. */
#define GIVEN_0
#define GIVEN_1 NAMES_1,
#define GIVEN_2 NAMES_2,
#define GIVEN_3 NAMES_3,
#define GIVEN_4 NAMES_4,
#define GIVEN_5 NAMES_5,
#define GIVEN_6 NAMES_6,
#define GIVEN_7 NAMES_7,
#define GIVEN_8 NAMES_8,
#define GIVEN_9 NAMES_9,
#define GIVEN_10 NAMES_10,
#define GIVEN_11 NAMES_11,
#define GIVEN_12 NAMES_12,
#define GIVEN_13 NAMES_13,
#define GIVEN_14 NAMES_14,
#define GIVEN_15 NAMES_15,
/* Likewise PARAMETERS_n. */
#define TAKEN_0
#define TAKEN_1 PARAMETERS_1,
#define TAKEN_2 PARAMETERS_2,
#define TAKEN_3 PARAMETERS_3,
#define TAKEN_4 PARAMETERS_4,
#define TAKEN_5 PARAMETERS_5,
#define TAKEN_6 PARAMETERS_6,
#define TAKEN_7 PARAMETERS_7,
#define TAKEN_8 PARAMETERS_8,
#define TAKEN_9 PARAMETERS_9,
#define TAKEN_10 PARAMETERS_10,
#define TAKEN_11 PARAMETERS_11,
#define TAKEN_12 PARAMETERS_12,
#define TAKEN_13 PARAMETERS_13,
#define TAKEN_14 PARAMETERS_14,
#define TAKEN_15 PARAMETERS_15,

/*
 * What the wrappers with n parameters do: there are a thousand of these, each as small as can be.
 * what: the form, the number, and how many arguments the function has in C.
 */
#define WHAT(form, number, n_in_c) \
	((uint32_t)(form) | (uint32_t)(number) << 8 | (uint32_t)(n_in_c) << 24)
#define RELAY(n_)                                                                                  \
	static __attribute__((noinline)) word relay_##n_(TAKEN_##n_ uint32_t what)                 \
	{                                                                                          \
		const uint32_t form = what & 0xff, number = what >> 8 & 0xffff;                    \
		word at[n_ + 2] = {NAMES_##n_}, result;                                            \
		word (*real)(PARAMETERS_##n_);                                                     \
		struct mpi_hook hook;                                                              \
		const struct mpi_arguments arguments = {.form = form, .n = what >> 24, .at = at};  \
                                                                                                   \
		*(void **)&real = atomic_load_explicit(&next[form][number], memory_order_relaxed); \
		torsh_mpi_begins(&hook, (int)number, &arguments);                                  \
		result = real(PASSED_##n_);                                                        \
		torsh_mpi_ends(&hook, (int)number, &arguments, result);                            \
		return result;                                                                     \
	}
RELAY(0)
RELAY(1)
RELAY(2)
RELAY(3)
RELAY(4)
RELAY(5)
RELAY(6)
RELAY(7)
RELAY(8)
RELAY(9)
RELAY(10)
RELAY(11)
RELAY(12)
RELAY(13)
RELAY(14)
RELAY(15)

#define WRAP_COUNTED(form, name, n_in_c, n)                                      \
	static word wrap_##form##_##name(PARAMETERS_##n)                         \
	{                                                                        \
		return relay_##n(GIVEN_##n WHAT(form, MPI_CALL_##name, n_in_c)); \
	}
#define WRAP_EXPANDED(form, name, n_in_c, n) WRAP_COUNTED(form, name, n_in_c, n)
#define CALL(name, n, role, ...)                                    \
	WRAP_EXPANDED(MPI_IN_C, name, n, n)                         \
	WRAP_EXPANDED(MPI_IN_C_LARGE, name, n, n)                   \
	WRAP_EXPANDED(MPI_IN_FORTRAN, name, n, WITH_ERROR_##n)      \
	WRAP_EXPANDED(MPI_IN_FORTRAN_2008, name, n, WITH_ERROR_##n) \
	WRAP_EXPANDED(MPI_IN_FORTRAN_2008_TS, name, n, WITH_ERROR_##n)
#include "shim/mpi/mpi.def"

static void *const wrappers[N_MPI_CALLS][N_MPI_FORMS] = {
#define CALL(name, ...)                                                                \
	[MPI_CALL_##name] = {                                                          \
		[MPI_IN_C] = (void *)wrap_MPI_IN_C_##name,                             \
		[MPI_IN_C_LARGE] = (void *)wrap_MPI_IN_C_LARGE_##name,                 \
		[MPI_IN_FORTRAN] = (void *)wrap_MPI_IN_FORTRAN_##name,                 \
		[MPI_IN_FORTRAN_2008] = (void *)wrap_MPI_IN_FORTRAN_2008_##name,       \
		[MPI_IN_FORTRAN_2008_TS] = (void *)wrap_MPI_IN_FORTRAN_2008_TS_##name, \
	},
#include "shim/mpi/mpi.def"
};

void *torsh_mpi_wrapper(int number, enum mpi_form form, void *_Atomic **place)
{
	*place = &next[form][number];
	return wrappers[number][form];
}
