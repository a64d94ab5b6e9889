/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/library_flops.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "tools/ops/library_shapes.h"
#include "tools/recording/timeline.h"

/* Sums have no fractions, but their terms have sixths: six times all counts. */
struct counts {
	__int128 multiplications, additions;
};

struct sizes {
	__int128 m, n, k;
	bool is_left; /* the first letter is L: the square matrix has m rows */
};

typedef struct counts formula(const struct sizes *s);

static struct counts sixfold(__int128 multiplications, __int128 additions)
{
	return (struct counts){6 * multiplications, 6 * additions};
}

static struct counts sum(struct counts a, struct counts b)
{
	return (struct counts){a.multiplications + b.multiplications, a.additions + b.additions};
}

/* ---- BLAS ------------------------------------------------------------------------------------ */

static struct counts gemm(const struct sizes *s)
{
	return sixfold(s->m * s->n * s->k, s->m * s->n * s->k);
}

static struct counts symm(const struct sizes *s)
{
	__int128 n = s->m * s->n * (s->is_left ? s->m : s->n);

	return sixfold(n, n);
}

/* One triangle of a product. */
static struct counts syrk(const struct sizes *s)
{
	__int128 n = s->k * s->n * (s->n + 1) / 2;

	return sixfold(n, n);
}

static struct counts syr2k(const struct sizes *s)
{
	return s->k ? sixfold(s->k * s->n * s->n, s->k * s->n * s->n + s->n) : sixfold(0, 0);
}

static struct counts triangular(__int128 order, __int128 others)
{
	return sixfold(others * order * (order + 1) / 2, others * order * (order - 1) / 2);
}

static struct counts trmm(const struct sizes *s)
{
	return s->is_left ? triangular(s->m, s->n) : triangular(s->n, s->m);
}

static struct counts gemv(const struct sizes *s)
{
	return sixfold(s->m * s->n, s->m * s->n);
}

static struct counts symv(const struct sizes *s)
{
	return sixfold(s->n * s->n, s->n * s->n);
}

static struct counts syr(const struct sizes *s)
{
	__int128 n = s->n * (s->n + 1) / 2;

	return sixfold(n, n);
}

static struct counts syr2(const struct sizes *s)
{
	__int128 n = s->n * (s->n + 1);

	return sixfold(n, n);
}

static struct counts trmv(const struct sizes *s)
{
	return triangular(s->n, 1);
}

/* ---- LAPACK ---------------------------------------------------------------------------------- */

/* rows >= columns */
static struct counts lu_of(__int128 m, __int128 n)
{
	return (struct counts){3 * m * n * n - n * n * n + 3 * m * n - 3 * n * n + 4 * n,
			       3 * m * n * n - n * n * n - 3 * m * n + n};
}

static struct counts getrf(const struct sizes *s)
{
	return s->m >= s->n ? lu_of(s->m, s->n) : lu_of(s->n, s->m);
}

static struct counts getrs(const struct sizes *s)
{
	return sixfold(s->k * s->n * s->n, s->k * s->n * (s->n - 1));
}

static struct counts gesv(const struct sizes *s)
{
	return sum(lu_of(s->n, s->n), getrs(s));
}

static struct counts getri(const struct sizes *s)
{
	__int128 n = s->n;

	return (struct counts){4 * n * n * n + 3 * n * n + 5 * n,
			       4 * n * n * n - 9 * n * n + 5 * n};
}

static struct counts potrf(const struct sizes *s)
{
	__int128 n = s->n;

	return (struct counts){n * n * n + 3 * n * n + 2 * n, n * n * n - n};
}

static struct counts potrs(const struct sizes *s)
{
	return sixfold(s->k * s->n * (s->n + 1), s->k * s->n * (s->n - 1));
}

static struct counts posv(const struct sizes *s)
{
	return sum(potrf(s), potrs(s));
}

static struct counts potri(const struct sizes *s)
{
	__int128 n = s->n;

	return (struct counts){2 * n * n * n + 6 * n * n + 4 * n, 2 * n * n * n - 3 * n * n + n};
}

static struct counts trtrs(const struct sizes *s)
{
	return triangular(s->n, s->k);
}

static struct counts trtri(const struct sizes *s)
{
	__int128 n = s->n;

	return (struct counts){n * n * n + 3 * n * n + 2 * n, n * n * n - 3 * n * n + 2 * n};
}

static struct counts sytrf(const struct sizes *s)
{
	__int128 n = s->n;

	return (struct counts){n * n * n + 3 * n * n + 20 * n, n * n * n - n};
}

static struct counts sysv(const struct sizes *s)
{
	return sum(sytrf(s), potrs(s));
}

static struct counts geqrf(const struct sizes *s)
{
	__int128 m = s->m, n = s->n;

	if (m > n)
		return (struct counts){6 * m * n * n - 2 * n * n * n + 6 * m * n + 3 * n * n +
					       23 * n,
				       6 * m * n * n - 2 * n * n * n + 3 * n * n + 5 * n};
	return (struct counts){6 * n * m * m - 2 * m * m * m + 12 * n * m - 3 * m * m + 23 * m,
			       6 * n * m * m - 2 * m * m * m + 6 * n * m - 3 * m * m + 5 * m};
}

static struct counts gelqf(const struct sizes *s)
{
	__int128 m = s->m, n = s->n;

	if (m > n)
		return (struct counts){
			6 * m * n * n - 2 * n * n * n + 6 * m * n + 3 * n * n + 29 * n,
			6 * m * n * n - 2 * n * n * n + 6 * m * n - 3 * n * n + 5 * n};
	return (struct counts){6 * n * m * m - 2 * m * m * m + 12 * n * m - 3 * m * m + 29 * m,
			       6 * n * m * m - 2 * m * m * m + 3 * m * m + 5 * m};
}

static struct counts ungqr(const struct sizes *s)
{
	__int128 m = s->m, n = s->n, k = s->k;
	__int128 most = 12 * m * n * k - 6 * (m + n) * k * k + 4 * k * k * k;

	return (struct counts){most + 12 * n * k - 6 * k * k - 10 * k,
			       most + 6 * n * k - 6 * m * k + 2 * k};
}

static struct counts unmqr(const struct sizes *s)
{
	__int128 m = s->m, n = s->n, k = s->k;

	if (s->is_left)
		return sixfold(2 * n * m * k - n * k * k + 2 * n * k,
			       2 * n * m * k - n * k * k + n * k);
	return (struct counts){12 * n * m * k - 6 * m * k * k + 6 * m * k + 6 * n * k - 3 * k * k +
				       3 * k,
			       12 * n * m * k - 6 * m * k * k + 6 * m * k};
}

/* ---- transforms ------------------------------------------------------------------------------ */

static struct counts transform(const struct sizes *s, double factor)
{
	double n = (double)s->n, flops = n > 1 ? factor * n * log2(n) : 0;

	/* Rounded before six times is taken: of a batch each counts alike. */
	return sixfold((__int128)(flops + 0.5), 0);
}

static struct counts fft_complex(const struct sizes *s)
{
	return transform(s, 5);
}

static struct counts fft_real(const struct sizes *s)
{
	return transform(s, 2.5);
}

/* ---- routines -------------------------------------------------------------------------------- */

static const struct {
	const char *name; /* without the letter of the type */
	formula *count;
} formulas[] = {
	{"gemm", gemm},	      {"gemm3m", gemm},
	{"gemmt", syrk},      {"gemmtr", syrk},
	{"symm", symm},	      {"hemm", symm},
	{"syrk", syrk},	      {"herk", syrk},
	{"syr2k", syr2k},     {"her2k", syr2k},
	{"trmm", trmm},	      {"trsm", trmm},
	{"gemv", gemv},	      {"ger", gemv},
	{"geru", gemv},	      {"gerc", gemv},
	{"symv", symv},	      {"hemv", symv},
	{"syr", syr},	      {"her", syr},
	{"syr2", syr2},	      {"her2", syr2},
	{"trmv", trmv},	      {"trsv", trmv},
	{"getrf", getrf},     {"getrs", getrs},
	{"gesv", gesv},	      {"getri", getri},
	{"potrf", potrf},     {"potrs", potrs},
	{"posv", posv},	      {"potri", potri},
	{"trtrs", trtrs},     {"trtri", trtri},
	{"sytrf", sytrf},     {"hetrf", sytrf},
	{"sysv", sysv},	      {"hesv", sysv},
	{"geqrf", geqrf},     {"gelqf", gelqf},
	{"orgqr", ungqr},     {"ungqr", ungqr},
	{"ormqr", unmqr},     {"unmqr", unmqr},
	{"gemm_batch", gemm}, {"gemm_batch_strided", gemm},
};

/* Of other libraries, whose routines have no letter. */
static const struct {
	const char *name;
	formula *count;
} others[] = {
	{"fft_c2c", fft_complex},
	{"fft_r2c", fft_real},
	{"fft_c2r", fft_real},
	{"fft_r2r", fft_real},
	{"matmul", gemm},
	{"inner_product", gemm},
	{"convolution", gemm},
	{"deconvolution", gemm},
	{"gemmEx", gemm},
	{"gemmBatchedEx", gemm},
	{"gemmStridedBatchedEx", gemm},
};

static formula *formula_of(const char *routine)
{
	if (!routine || !*routine)
		return NULL;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(others[i].name, routine))
			return others[i].count;
	for (size_t i = 0; i < sizeof(formulas) / sizeof(*formulas); i++)
		if (!strcmp(formulas[i].name, routine + 1))
			return formulas[i].count;
	return NULL;
}

/* Why a call has no formula. */
static const char *reason_of(const char *routine)
{
	static const char *const no_arithmetic[] = {"reorder", "shuffle", "concat", "fft_plan"};

	for (size_t i = 0; i < sizeof(no_arithmetic) / sizeof(*no_arithmetic); i++)
		if (routine && !strcmp(no_arithmetic[i], routine))
			return "it computes nothing of the result";
	if (routine && !strcmp(routine, "graph"))
		return "the library doesn't say what the graph consists of";
	if (routine && !strcmp(routine, "fft"))
		return "its plan was made before the recording, or is one of too many";
	return "its work depends on the data, or isn't known";
}

/* A size that a formula needs is missing. */
static bool lacks(const struct recorded_library_call *call, formula *count)
{
	bool needs_m = count == gemm || count == symm || count == trmm || count == gemv ||
		       count == getrf || count == geqrf || count == gelqf || count == ungqr ||
		       count == unmqr;
	bool needs_k = count == gemm || count == syrk || count == syr2k || count == getrs ||
		       count == gesv || count == potrs || count == posv || count == trtrs ||
		       count == sysv || count == ungqr || count == unmqr;

	return !call->n || (needs_m && !call->m) || (needs_k && !call->k);
}

static __int128 size_of(uint64_t size)
{
	return size ? (__int128)(size - 1) : 0;
}

const char *torsh_library_flops(const struct recorded_library_call *call, uint64_t *flops)
{
	const struct sizes sizes = {.m = size_of(call->m),
				    .n = size_of(call->n),
				    .k = size_of(call->k),
				    .is_left = (call->letters & 0xff) == 'L'};
	bool is_complex = call->type == 'c' || call->type == 'z' || call->type == 'k';
	formula *count = formula_of(call->routine);
	struct counts counts;
	__int128 all;

	*flops = 0;
	if (call->is_rest)
		return "the program used too many different sizes to store them all";
	if (!count)
		return reason_of(call->routine);
	if (lacks(call, count))
		return "its sizes are not valid, or are not the same for the whole batch";
	counts = count(&sizes);
	is_complex = is_complex && count != fft_complex;
	all = is_complex ? 6 * counts.multiplications + 2 * counts.additions
			 : counts.multiplications + counts.additions;
	all = all / 6 * (call->batch ? size_of(call->batch) : 1);
	all = all < 0 ? 0 : all;
	*flops = all > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)all;
	return NULL;
}

struct recorded_library_call torsh_library_call_of(const struct recorded_process *process,
						   const struct event_library_call *event)
{
	struct recorded_library_call call = {
		.name = torsh_timeline_label(process, event->name),
		.routine = torsh_timeline_label(process, event->routine),
		.library = torsh_timeline_label(process, event->library),
		.m = event->m,
		.n = event->n,
		.k = event->k,
		.batch = event->batch,
		.type = event->type,
		.letters = event->letters,
		.shape = torsh_timeline_label(process, event->shape),
		.details = torsh_timeline_label(process, event->details),
		.calls = 1,
		.total_ns = event->duration_ns,
		.min_ns = event->duration_ns,
		.max_ns = event->duration_ns,
	};

	torsh_library_set_sizes(&call);
	return call;
}

const char *torsh_library_type(uint32_t type)
{
	switch (type) {
#define LIBRARY_TYPE(letter, name) \
	case letter:               \
		return name;
#include "agent/wire/library_types.def"
#undef LIBRARY_TYPE
	default:
		return NULL;
	}
}
