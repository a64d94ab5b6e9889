/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The oracle's program: runs random traces of heap calls and writes down what really happened, so
 * that reports can be compared with it byte for byte. See test/oracle/traces.py.
 *
 *	trace TRUTH SEED N_TRACES serial|free here|forked
 *
 * serial: the threads of a trace take turns by handing over a lock, so that the order of all calls,
 * and with it the peak, is defined. free: they run at will and pass blocks through shared slots;
 * only totals are defined. here: one trace, in this process. forked: each trace in a child of its
 * own.
 *
 * Nothing here allocates beside the trace itself: bookkeeping is static, output is by write(2),
 * threads exist before the first call, and _exit ends the process before libraries free anything.
 * So what the C library holds does not change from the first call to the last, and can be
 * distinguished from the blocks of the trace by the stack: each of those goes through trace_step,
 * `depth` times through descend, and through one of the at_... functions.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 16
#define SLOTS 256
#define DEPTHS 24
#define CALLS_MAX 1200

enum site {
	AT_MALLOC,
	AT_CALLOC,
	AT_REALLOC,
	AT_REALLOCARRAY,
	AT_POSIX_MEMALIGN,
	AT_ALIGNED_ALLOC,
	AT_MEMALIGN,
	AT_STRDUP,
	N_SITES
};

static const char *const site_names[N_SITES] = {
	"at_malloc",	     "at_calloc",	 "at_realloc",	"at_reallocarray",
	"at_posix_memalign", "at_aligned_alloc", "at_memalign", "at_strdup",
};

struct share {
	int64_t blocks, bytes;
};

struct block {
	char *address;
	size_t size_bytes;
	unsigned key; /* site * DEPTHS + depth */
};

/*
 * What happened. In free mode each thread has one, added up at the end; there the peak means
 * nothing.
 */
struct truth {
	uint64_t allocs, frees, alloc_bytes;
	int64_t live_bytes, peak_bytes;
	struct share live[N_SITES * DEPTHS], at_peak[N_SITES * DEPTHS];
};

struct worker {
	pthread_t thread;
	pthread_cond_t my_turn;
	uint64_t random;
	struct truth truth;
	int number;
};

static struct worker workers[THREADS_MAX];
static struct truth whole;
static struct block slots[SLOTS];
static atomic_flag slot_locks[SLOTS];
/* guards whole, slots, turn, calls_left in serial mode */
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_started;
static int turn, n_workers;
static long calls_left;
static bool is_serial;

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t below(uint64_t *state, uint64_t n)
{
	return next_random(state) % n;
}

static size_t random_size(uint64_t *random)
{
	switch (below(random, 20)) {
	case 0:
		return 0;
	case 1:
		return below(random, 1 << 20);
	case 2:
	case 3:
	case 4:
		return below(random, 1 << 14);
	default:
		return below(random, 300);
	}
}

static void count_block(struct truth *truth, const struct block *block, int sign)
{
	truth->live_bytes += sign * (int64_t)block->size_bytes;
	truth->live[block->key].bytes += sign * (int64_t)block->size_bytes;
	truth->live[block->key].blocks += sign;
}

static void note_peak(struct truth *truth)
{
	if (truth->live_bytes <= truth->peak_bytes)
		return;
	truth->peak_bytes = truth->live_bytes;
	memcpy(truth->at_peak, truth->live, sizeof(truth->live));
}

static void note_alloc(struct truth *truth, const struct block *block)
{
	truth->allocs++;
	truth->alloc_bytes += block->size_bytes;
	count_block(truth, block, 1);
	note_peak(truth);
}

static void note_free(struct truth *truth, const struct block *block)
{
	truth->frees++;
	count_block(truth, block, -1);
}

/* ---- the calls, each in a function of its own ------------------------------------------------ */

struct request {
	struct block *block; /* realloc's: the old block */
	enum site site;
	size_t size_bytes;
	size_t alignment;
	void *result;
};

static char text[1 << 20];

static void at_malloc(struct request *request)
{
	request->result = malloc(request->size_bytes);
}

static void at_calloc(struct request *request)
{
	request->result = calloc(1, request->size_bytes);
}

static void at_realloc(struct request *request)
{
	request->result = realloc(request->block->address, request->size_bytes);
}

static void at_reallocarray(struct request *request)
{
	request->result = reallocarray(request->block->address, 1, request->size_bytes);
}

static void at_posix_memalign(struct request *request)
{
	if (posix_memalign(&request->result, request->alignment, request->size_bytes))
		request->result = NULL;
}

static void at_aligned_alloc(struct request *request)
{
	request->result = aligned_alloc(request->alignment, request->size_bytes);
}

static void at_memalign(struct request *request)
{
	request->result = memalign(request->alignment, request->size_bytes);
}

static void at_strdup(struct request *request)
{
	request->result = strdup(text + sizeof(text) - request->size_bytes);
}

static void descend(struct request *request, unsigned depth)
{
	static void (*const calls[N_SITES])(struct request *) = {
		at_malloc,	   at_calloc,	     at_realloc,  at_reallocarray,
		at_posix_memalign, at_aligned_alloc, at_memalign, at_strdup,
	};

	if (depth)
		descend(request, depth - 1);
	else
		calls[request->site](request);
}

/* ---- one step of a trace --------------------------------------------------------------------- */

static void allocate(struct worker *worker, struct truth *truth, struct block *block)
{
	struct request request = {.block = block, .site = below(&worker->random, N_SITES)};
	unsigned depth = (unsigned)below(&worker->random, DEPTHS);

	request.size_bytes = random_size(&worker->random);
	request.alignment = (size_t)16 << below(&worker->random, 8);
	if (request.site == AT_STRDUP && !request.size_bytes)
		request.size_bytes = 1;
	descend(&request, depth);
	if (!request.result)
		abort();
	*block = (struct block){request.result, request.size_bytes, request.site * DEPTHS + depth};
	if (request.size_bytes && request.site != AT_STRDUP)
		block->address[request.size_bytes - 1] = 1;
	note_alloc(truth, block);
}

static void release(struct truth *truth, struct block *block)
{
	note_free(truth, block);
	free(block->address);
	*block = (struct block){0};
}

/* The old block is live until the new one replaces it: no moment has both, or neither. */
static void resize(struct worker *worker, struct truth *truth, struct block *block)
{
	struct request request = {.block = block, .site = AT_REALLOC + below(&worker->random, 2)};
	unsigned depth = (unsigned)below(&worker->random, DEPTHS);

	request.size_bytes = random_size(&worker->random) + 1;
	descend(&request, depth);
	if (!request.result)
		abort();
	note_free(truth, block);
	*block = (struct block){request.result, request.size_bytes, request.site * DEPTHS + depth};
	note_alloc(truth, block);
}

/* A resize that can't be done leaves the block as it was; one to nothing frees it. */
static void resize_oddly(struct worker *worker, struct truth *truth, struct block *block)
{
	struct request request = {.block = block, .site = AT_REALLOC, .size_bytes = PTRDIFF_MAX};

	if (below(&worker->random, 2))
		request.size_bytes = 0;
	descend(&request, (unsigned)below(&worker->random, DEPTHS));
	if (request.result)
		abort();
	if (request.size_bytes)
		return;
	note_free(truth, block);
	*block = (struct block){0};
}

/* Calls after which nothing is different. */
static void call_in_vain(struct worker *worker)
{
	volatile size_t many = SIZE_MAX / 2;
	void *result = NULL;

	switch (below(&worker->random, 3)) {
	case 0:
		free(result);
		break;
	case 1:
		result = malloc(many);
		break;
	case 2:
		result = calloc(many, 3);
		break;
	}
	if (result)
		abort();
}

static void trace_step(struct worker *worker, struct truth *truth, struct block *block)
{
	uint64_t choice = below(&worker->random, 100);

	if (choice < 3)
		call_in_vain(worker);
	else if (!block->address)
		allocate(worker, truth, block);
	else if (choice < 25)
		resize(worker, truth, block);
	else if (choice < 28)
		resize_oddly(worker, truth, block);
	else
		release(truth, block);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void run_serially(struct worker *worker)
{
	pthread_mutex_lock(&turn_lock);
	while (calls_left > 0) {
		if (turn != worker->number) {
			pthread_cond_wait(&worker->my_turn, &turn_lock);
			continue;
		}
		for (uint64_t n = 1 + below(&worker->random, 12); n; n--) {
			trace_step(worker, &whole, &slots[below(&worker->random, SLOTS)]);
			calls_left--;
		}
		turn = (int)below(&worker->random, (uint64_t)n_workers);
		pthread_cond_signal(&workers[turn].my_turn);
	}
	for (int i = 0; i < n_workers; i++)
		pthread_cond_signal(&workers[i].my_turn);
	pthread_mutex_unlock(&turn_lock);
}

static void run_freely(struct worker *worker)
{
	for (long n = calls_left / n_workers; n > 0; n--) {
		uint64_t i = below(&worker->random, SLOTS);

		if (atomic_flag_test_and_set_explicit(&slot_locks[i], memory_order_acquire))
			continue;
		trace_step(worker, &worker->truth, &slots[i]);
		atomic_flag_clear_explicit(&slot_locks[i], memory_order_release);
	}
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	pthread_barrier_wait(&all_started);
	if (is_serial)
		run_serially(worker);
	else
		run_freely(worker);
	/* Nobody ends before all are done: a thread's end frees what the C library holds for it. */
	pthread_barrier_wait(&all_started);
	if (worker->number)
		for (;;)
			pause();
	return NULL;
}

static void add_truth(struct truth *sum, const struct truth *part)
{
	sum->allocs += part->allocs;
	sum->frees += part->frees;
	sum->alloc_bytes += part->alloc_bytes;
	sum->live_bytes += part->live_bytes;
	for (unsigned key = 0; key < N_SITES * DEPTHS; key++) {
		sum->live[key].blocks += part->live[key].blocks;
		sum->live[key].bytes += part->live[key].bytes;
	}
}

static void run_trace(uint64_t seed)
{
	uint64_t random = seed;

	n_workers = 1 + (int)below(&random, below(&random, 2) ? THREADS_MAX : 3);
	calls_left = 1 + (long)below(&random, CALLS_MAX);
	pthread_barrier_init(&all_started, NULL, (unsigned)n_workers);
	for (int i = 0; i < n_workers; i++) {
		workers[i].number = i;
		workers[i].random = next_random(&random);
		pthread_cond_init(&workers[i].my_turn, NULL);
		if (i && pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			abort();
	}
	work(&workers[0]);
	for (int i = 0; i < n_workers && !is_serial; i++)
		add_truth(&whole, &workers[i].truth);
}

/* ---- what is written down -------------------------------------------------------------------- */

static char line[256 << 10];
static size_t n_line;

static void put_shares(const char *name, const struct share *shares)
{
	const char *comma = "";

	n_line += (size_t)snprintf(line + n_line, sizeof(line) - n_line, ",\"%s\":[", name);
	for (unsigned key = 0; key < N_SITES * DEPTHS; key++) {
		if (!shares[key].blocks)
			continue;
		n_line += (size_t)snprintf(
			line + n_line, sizeof(line) - n_line, "%s[\"%s\",%u,%lld,%lld]", comma,
			site_names[key / DEPTHS], key % DEPTHS, (long long)shares[key].blocks,
			(long long)shares[key].bytes);
		comma = ",";
	}
	n_line += (size_t)snprintf(line + n_line, sizeof(line) - n_line, "]");
}

static void write_truth(const char *path, uint64_t seed)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	n_line = (size_t)snprintf(
		line, sizeof(line),
		"{\"pid\":%d,\"seed\":%llu,\"threads\":%d,\"allocs\":%llu,\"frees\":%llu,"
		"\"alloc_bytes\":%llu,\"live_bytes\":%lld,\"peak_bytes\":%lld",
		getpid(), (unsigned long long)seed, n_workers, (unsigned long long)whole.allocs,
		(unsigned long long)whole.frees, (unsigned long long)whole.alloc_bytes,
		(long long)whole.live_bytes, (long long)whole.peak_bytes);
	put_shares("live", whole.live);
	if (is_serial)
		put_shares("peak", whole.at_peak);
	n_line += (size_t)snprintf(line + n_line, sizeof(line) - n_line, "}\n");
	if (fd < 0 || write(fd, line, n_line) != (ssize_t)n_line)
		abort();
}

int main(int argc, char **argv)
{
	uint64_t seed, n_traces;

	if (argc != 6)
		return 2;
	seed = strtoull(argv[2], NULL, 10);
	n_traces = strtoull(argv[3], NULL, 10);
	is_serial = !strcmp(argv[4], "serial");
	memset(text, 't', sizeof(text) - 1);
	if (!strcmp(argv[5], "here")) {
		run_trace(seed);
		write_truth(argv[1], seed);
		_exit(0);
	}
	for (uint64_t i = 0; i < n_traces; i++) {
		int status = 0;
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child) {
			run_trace(seed + i);
			write_truth(argv[1], seed + i);
			_exit(0);
		}
		if (waitpid(child, &status, 0) != child || status)
			return 1;
	}
	return 0;
}
