/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arguments are read before the call, as the routine itself will read them. In Fortran they are
 * addresses; of an integer without 64 bits only the lower half is read. Lengths of characters come
 * after all arguments.
 */
#include "collectors/blas/blas_arguments.h"

#include <string.h>

#include "collectors/blas/libraries/library_call.h"

#define NO_ADDRESS 4096u /* below it nothing is mapped */

/* Argument i of Fortran, from 1, as it was passed. */
static uint64_t argument(const struct blas_frame *frame, uint32_t i)
{
	return library_argument(frame, frame->slot->name.form == BLAS_IN_FORTRAN ? i - 1 : i);
}

static int64_t integer(const struct blas_frame *frame, uint64_t word)
{
	return frame->slot->name.is_wide ? (int64_t)word : (int32_t)word;
}

/* Element i of the integers at an address. */
static int64_t integer_at(const struct blas_frame *frame, uint64_t address, uint64_t i)
{
	int64_t wide;
	int32_t narrow;

	if (address < NO_ADDRESS)
		return -1;
	if (frame->slot->name.is_wide) {
		memcpy(&wide, (const int64_t *)address + i, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, (const int32_t *)address + i, sizeof(narrow));
	return narrow;
}

/* Argument i, an integer; of a batch with groups the first one's. */
static int64_t integer_of(const struct blas_frame *frame, uint32_t i)
{
	const struct blas_name *name = &frame->slot->name;
	uint64_t word = argument(frame, i);

	return name->form == BLAS_IN_FORTRAN || name->routine->at.groups
		       ? integer_at(frame, word, 0)
		       : integer(frame, word);
}

/* A size and 1; 0: there is none. */
static uint64_t size_of(const struct blas_frame *frame, uint32_t i)
{
	int64_t size = i ? integer_of(frame, i) : -1;

	return size < 0 ? 0 : (uint64_t)size + 1;
}

static char to_upper(uint64_t c)
{
	return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

/* CBLAS has numbers in place of letters. */
static char letter_of_number(uint64_t number)
{
	static const char transposed[] = "NTCR", triangle[] = "UL", diagonal[] = "NU",
			  side[] = "LR";

	switch (number / 10) {
	case 11:
		return number >= 111 && number <= 114 ? transposed[number - 111] : '?';
	case 12:
		return number <= 122 && number > 120 ? triangle[number - 121] : '?';
	case 13:
		return number <= 132 && number > 130 ? diagonal[number - 131] : '?';
	case 14:
		return number <= 142 && number > 140 ? side[number - 141] : '?';
	default:
		return '?';
	}
}

/*
 * cuBLAS counts from 0: what a letter is follows from the routine, in whose order a side comes
 * first and a triangle before what is transposed.
 */
static char letter_in_cublas(const char *routine, uint32_t at, uint64_t number)
{
	static const char side[] = "LR", triangle[] = "LU", transposed[] = "NTC", diagonal[] = "NU";
	bool has_side = !strncmp(routine + 2, "mm", 2) || !strcmp(routine, "trsm");
	bool has_triangle = routine[0] != 'g';

	if (has_triangle && has_side && at == 1)
		return number < 2 ? side[number] : '?';
	if (has_triangle && at == 1u + has_side)
		return number < 2 ? triangle[number] : '?';
	if (at == 4)
		return number < 2 ? diagonal[number] : '?';
	return number < 3 ? transposed[number] : '?';
}

static char letter(const struct blas_frame *frame, uint32_t i)
{
	const struct blas_name *name = &frame->slot->name;
	uint64_t word = argument(frame, i);
	char c;

	if (name->form == BLAS_IN_CBLAS && name->routine->at.groups)
		word = (uint64_t)integer_at(frame, word, 0);
	if (name->form == BLAS_IN_CBLAS)
		return letter_of_number((uint32_t)word);
	if (name->form == BLAS_IN_CUBLAS)
		return letter_in_cublas(name->routine->name, i, (uint32_t)word);
	if (name->form == BLAS_IN_LAPACKE)
		c = to_upper((uint8_t)word);
	else
		c = word < NO_ADDRESS ? '?' : to_upper(*(const uint8_t *)word);
	return c > ' ' && c <= 'Z' ? c : '?';
}

static void read_letters(struct blas_frame *frame)
{
	const uint8_t *at = frame->slot->name.routine->at.letters;

	frame->letters = 0;
	for (uint32_t i = 0; i < BLAS_LETTERS && at[i]; i++)
		frame->letters |= (uint32_t)(uint8_t)letter(frame, at[i]) << 8 * i;
}

/* CBLAS passes real factors in other registers, so that later arguments move up. */
static uint32_t batch_position(const struct blas_frame *frame)
{
	const struct blas_name *name = &frame->slot->name;
	bool is_real = name->type == 's' || name->type == 'd';

	return name->routine->at.batch -
	       (name->form == BLAS_IN_CBLAS && is_real ? name->routine->at.scalars : 0u);
}

static bool is_same_in(const struct blas_frame *frame, uint32_t position, uint64_t n_groups)
{
	uint64_t address = argument(frame, position);

	for (uint64_t i = 1; i < n_groups; i++)
		if (integer_at(frame, address, i) != integer_at(frame, address, 0))
			return false;
	return true;
}

/* Groups of products: their sizes count if all have the same. */
static void read_groups(struct blas_frame *frame)
{
	const struct blas_layout *at = &frame->slot->name.routine->at;
	uint64_t word = argument(frame, at->groups), sizes = argument(frame, at->batch);
	int64_t n = frame->slot->name.form == BLAS_IN_FORTRAN ? integer_at(frame, word, 0)
							      : integer(frame, word);

	frame->batch = 1;
	for (int64_t i = 0; i < n; i++) {
		int64_t size = integer_at(frame, sizes, (uint64_t)i);

		frame->batch += size > 0 ? (uint64_t)size : 0;
	}
	if (n < 1 || !is_same_in(frame, at->m, (uint64_t)n) ||
	    !is_same_in(frame, at->n, (uint64_t)n) || !is_same_in(frame, at->k, (uint64_t)n))
		frame->m = frame->n = frame->k = 0;
}

bool torsh_blas_arguments_read(struct blas_frame *frame)
{
	const struct blas_name *name = &frame->slot->name;
	const struct blas_layout *at = &name->routine->at;

	if (at->work && (name->form == BLAS_IN_FORTRAN || name->is_work) &&
	    integer_of(frame, at->work) == -1)
		return false;
	frame->m = size_of(frame, at->m);
	frame->n = size_of(frame, at->n);
	frame->k = size_of(frame, at->k);
	frame->batch = 0;
	if (at->groups)
		read_groups(frame);
	else if (at->batch)
		frame->batch = size_of(frame, batch_position(frame));
	read_letters(frame);
	return true;
}

uint32_t torsh_blas_type(const struct blas_frame *frame)
{
	const struct blas_name *name = &frame->slot->name;
	uint8_t at = name->routine->at.type;

	return at ? torsh_library_cuda_type((uint32_t)argument(frame, at)) : (uint8_t)name->type;
}
