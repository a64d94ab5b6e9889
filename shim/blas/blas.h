/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * BLAS and LAPACK as far as the agent has to know them: the names of their routines in Fortran,
 * CBLAS and LAPACKE, with the prefixes and suffixes of the libraries in Python's wheels, and where
 * the arguments are. Several such libraries are in one process as a rule, with the same names or
 * with others.
 *
 * References to a routine lead to a slot: a few instructions of the agent's that stand for one name
 * and one definition of it (shim/blas/blas_entry_x86_64.S), which call shim/blas/blas_dispatch.c.
 */
#ifndef TORSH_SHIM_BLAS_BLAS_H
#define TORSH_SHIM_BLAS_BLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/hooks.h"

/* Positions of arguments in Fortran, from 1; 0: the routine has none. */
struct blas_layout {
	uint8_t m, n, k;
	uint8_t batch; /* the number of products; with groups an array of numbers */
	uint8_t groups; /* how many; m, n, k and letters are arrays then */
	uint8_t work; /* of the work's size: -1 queries it */
	uint8_t scalars; /* before batch that CBLAS passes in other registers, if they are real */
	uint8_t type; /* of the matrices: CUDA's number; 0: the name has the type */
	uint8_t letters
		[BLAS_LETTERS]; /* which side, which triangle, transposed or not, and so on */
};

struct blas_routine {
	const char *name; /* without the letter of its type */
	const char *types;
	uint8_t n_arguments;
	struct blas_layout at;
};

/* In cuBLAS the handle comes first, as the matrices' order in CBLAS, and factors are addresses. */
enum blas_form {
	BLAS_IN_FORTRAN,
	BLAS_IN_CBLAS,
	BLAS_IN_LAPACKE,
	BLAS_IN_CUBLAS,
	/* Other libraries': shim/blas/library_names.c. */
	LIBRARY_FFTW_PLAN,
	LIBRARY_FFTW,
	LIBRARY_FFTW_FORGETS,
	LIBRARY_CUFFT_PLAN,
	LIBRARY_CUFFT,
	LIBRARY_CUFFT_FORGETS,
	LIBRARY_DNNL,
	LIBRARY_CUBLASLT,
	LIBRARY_CUDNN
};

/* How a function that makes a plan is given the sizes: up to three of them one by one, or so. */
enum fft_geometry { FFT_BY_ARRAY, FFT_1D, FFT_2D, FFT_3D, FFT_MANY, FFT_GURU, FFT_GURU_64, FFT_XT };
enum fft_kind { FFT_C2C, FFT_R2C, FFT_C2R, FFT_R2R };

/* What a name means. */
struct blas_name {
	const struct blas_routine *routine; /* NULL: another function's */
	enum blas_form form;
	char type; /* 's', 'd', 'c', 'z' */
	bool is_wide; /* integers have 64 bits */
	bool is_plain; /* in Fortran, without an underscore: MKL has such names, others may too */
	bool is_work; /* of LAPACKE: with the work's arguments */
	/* of a plan */
	enum fft_geometry geometry;
	enum fft_kind kind;
	bool is_split; /* real and imaginary parts are arrays of their own */
	bool is_made; /* the plan itself is an argument, not its address */
};

/* Read a name; returns false for another function's. */
bool torsh_blas_name(const char *text, struct blas_name *name);

/* The same for names of FFTW, oneDNN, cublasLt, cuDNN and cuFFT alone. */
bool torsh_library_name(const char *text, struct blas_name *name);

/* What follows prefix in text; NULL: text begins otherwise. */
static inline const char *torsh_text_after(const char *text, const char *prefix)
{
	for (; *prefix; prefix++, text++)
		if (*text != *prefix)
			return NULL;
	return text;
}

/* ---- slots ----------------------------------------------------------------------------------- */

#define BLAS_SLOTS 2040u
#define BLAS_TEXT_BYTES 56u

#define BLAS_QUERIES 7u

enum { BLAS_LABEL_NAME, BLAS_LABEL_ROUTINE, BLAS_LABEL_LIBRARY, BLAS_LABELS };

/* A name and one definition of it. Filled in before next is, and never removed. */
struct blas_slot {
	void *_Atomic next; /* the definition; NULL: the slot is not in use */
	/* where the loader binds the name at the first call: until then next is its code */
	void **lazy;
	_Atomic bool is_bound; /* with lazy: next is the definition */
	void *entry; /* the slot's own code */
	struct blas_name name;
	/* the collector's labels, valid in the process with this pid; 0: none */
	_Atomic uint32_t labels_pid;
	uint32_t labels[BLAS_LABELS];
	void *_Atomic queries[BLAS_QUERIES]; /* of the same library; NULL: not looked up */
	char text[BLAS_TEXT_BYTES]; /* the name as it is called */
	char library[BLAS_TEXT_BYTES]; /* file name, without its folder; may be cut */
};

extern struct blas_slot *torsh_blas_slots; /* BLAS_SLOTS, mapped by torsh_blas_objects_start */

/*
 * The address that stands for the definition; NULL: there are no more slots. Any thread, but
 * two threads that add the same definition at once get two slots.
 */
void *torsh_blas_slot_add(const char *text, const struct blas_name *name, void *definition);

/* The same for a place that isn't bound yet, with the loader's code to bind it. */
void *torsh_blas_slot_add_lazy(const char *text, const struct blas_name *name, void **place,
			       void *binder);

/* Whether the address is a slot's. */
bool torsh_blas_slot_has(const void *address);

/* Copy a text as a slot has it, cut if it is too long. */
void torsh_blas_slot_copy(char *to, const char *text);

/* Set the slot's library: the file name of the object with this code. */
void torsh_blas_slot_name(struct blas_slot *slot, const void *code);

/*
 * The slot of this number is called. Returns whether torsh_blas_slot_ends has to follow the call of
 * next; otherwise next replaces the call.
 */
bool torsh_blas_slot_begins(struct blas_frame *frame, uint32_t number);

/* next returned. caller: the frame address of the slot's call. */
void torsh_blas_slot_ends(struct blas_frame *frame, const void *caller);

/* ---- objects --------------------------------------------------------------------------------- */

/* Defined in shim/blas/blas_objects.c, as their namesakes of shim/mpi/mpi.h. */
void torsh_blas_objects_start(void);
extern bool torsh_blas_objects_on;
void torsh_blas_objects_recheck(void);

/*
 * What PyTorch's oneDNN prints: shim/blas/dnnl_verbose.c. The number of the wrapper for a reference
 * with this name, -1: none.
 */
int torsh_dnnl_verbose_find(const char *name, bool is_torch_cpu);
void *torsh_dnnl_verbose_wrapper(int i);

/* PyTorch's library is there; it can be called from the next torsh_dnnl_verbose_start on. */
void torsh_dnnl_verbose_found(void);

/* Let it print, if it was found and does not. No library is being loaded by this thread. */
void torsh_dnnl_verbose_start(void);

/* Whether a look-up of this name is the agent's matter, and what it returns instead of found. */
bool torsh_blas_has(const char *name);
void *torsh_blas_instead(const char *name, void *found);

#endif
