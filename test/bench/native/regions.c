/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ns for a pair of push and pop, or for a mark or value, by torsh.h and by NVTX where its headers
 * are here:
 *
 *	regions PAIRS
 *
 * prints {"what": ns, ...}. Each is measured in rounds that fit into a ring, with a pause after
 * each for the writer; the lowest third of the rounds counts, as the others share the machine with
 * it.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAS_NVTX
static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t event;
#endif

#define N_ROUNDS 60
#define PAIRS_A_ROUND 4000
#define PAUSE_NS 3000000

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void torsh_pair(void)
{
	torsh_range_push("a range of the benchmark");
	torsh_range_pop();
}

static void torsh_one_mark(void)
{
	torsh_mark("a mark of the benchmark");
}

static void torsh_one_value(void)
{
	torsh_scalar("loss", 0.5);
}

#ifdef HAS_NVTX
static void nvtx_pair(void)
{
	nvtxRangePushA("a range of the benchmark");
	nvtxRangePop();
}

static void nvtx_domain_pair(void)
{
	nvtxDomainRangePushEx(domain, &event);
	nvtxDomainRangePop(domain);
}
#endif

static int compare(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) -
	       (*(const double *)a < *(const double *)b);
}

static void measure(const char *what, void (*call)(void), int n_pairs, const char *before)
{
	struct timespec pause = {.tv_nsec = PAUSE_NS};
	double ns[N_ROUNDS];

	for (int round = 0; round < N_ROUNDS; round++) {
		uint64_t start = now_ns();

		for (int i = 0; i < n_pairs; i++)
			call();
		ns[round] = (double)(now_ns() - start) / n_pairs;
		nanosleep(&pause, NULL);
	}
	qsort(ns, N_ROUNDS, sizeof(*ns), compare);
	printf("%s\"%s\": %.1f", before, what, ns[N_ROUNDS / 6]);
}

int main(int argc, char **argv)
{
	int n_pairs = argc > 1 ? atoi(argv[1]) : PAIRS_A_ROUND;

	measure("torsh.h, push and pop", torsh_pair, n_pairs, "{");
	measure("torsh.h, mark", torsh_one_mark, n_pairs, ", ");
	measure("torsh.h, scalar", torsh_one_value, n_pairs, ", ");
#ifdef HAS_NVTX
	measure("NVTX, push and pop", nvtx_pair, n_pairs, ", ");
	domain = nvtxDomainCreateA("benchmark");
	event.version = NVTX_VERSION;
	event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = nvtxDomainRegisterStringA(domain, "a range of the benchmark");
	measure("NVTX, push and pop in a domain, registered string", nvtx_domain_pair, n_pairs,
		", ");
#endif
	puts("}");
	return 0;
}
