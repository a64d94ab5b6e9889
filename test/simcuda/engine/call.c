/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Entry and exit of calls, and the faults that are injected into them:
 * SIMCUDA_FAULTS="NAME=CODE[@N[+]],...".
 */
#include "test/simcuda/engine/call.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/engine/log/trace.h"
#include "test/simcuda/engine/queue.h"

enum { MAX_FAULTS = 64, UNKNOWN = 0, HEALTHY, FAULTY };

static struct fault {
	char name[96]; /* a pattern as of the shell */
	int code;
	uint64_t at; /* the call from which it fails, counted from 1 for each function */
	bool is_lasting;
} faults[MAX_FAULTS];
static int n_faults;
static _Atomic uint64_t last_correlation;
static _Atomic(struct sim_api *) apis_seen;
static _Thread_local struct sim_call *current;
static _Thread_local uint32_t thread_id;

static void read_fault(char *text)
{
	struct fault *fault = &faults[n_faults];
	char plus = 0;
	unsigned long at = 1;
	int n = sscanf(text, "%95[^=]=%i@%lu%c", fault->name, &fault->code, &at, &plus);

	if (n < 2 || n_faults == MAX_FAULTS - 1) {
		fprintf(stderr,
			"simcuda: SIMCUDA_FAULTS: %s is not NAME=CODE, NAME=CODE@N or NAME=CODE@N+\n",
			text);
		_exit(2);
	}
	fault->at = at;
	fault->is_lasting = n == 2 || plus == '+';
	n_faults++;
}

static void forget_thread(void)
{
	thread_id = 0;
}

static void begin(void)
{
	const char *text = sim_config()->faults;
	char *copy = text ? strdup(text) : NULL, *rest = copy;

	for (char *one; rest && (one = strsep(&rest, ","));)
		if (*one)
			read_fault(one);
	free(copy);
	pthread_atfork(NULL, NULL, forget_thread);
}

static void see_api(struct sim_api *api)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int state = HEALTHY, unknown = UNKNOWN;

	pthread_once(&once, begin);
	for (int i = 0; i < n_faults; i++)
		if (!fnmatch(faults[i].name, api->name, 0))
			state = FAULTY;
	if (!atomic_compare_exchange_strong(&api->fault_state, &unknown, state))
		return;
	struct sim_api *head = atomic_load(&apis_seen);
	do
		api->next = head;
	while (!atomic_compare_exchange_weak(&apis_seen, &head, api));
}

bool sim_fault_is_due(struct sim_api *api, int *code)
{
	if (atomic_load_explicit(&api->fault_state, memory_order_relaxed) == UNKNOWN)
		see_api(api);
	uint64_t n = atomic_fetch_add_explicit(&api->n_calls, 1, memory_order_relaxed) + 1;
	if (atomic_load_explicit(&api->fault_state, memory_order_relaxed) == HEALTHY)
		return false;
	for (int i = 0; i < n_faults; i++) {
		if (fnmatch(faults[i].name, api->name, 0) || n < faults[i].at)
			continue;
		if (n == faults[i].at || faults[i].is_lasting) {
			*code = faults[i].code;
			return true;
		}
	}
	return false;
}

bool sim_call_enter(struct sim_call *call)
{
	const struct sim_tracer *tracer = sim_tracer();

	call->outer = current;
	if (call->outer && call->outer->is_per_thread)
		call->is_per_thread = true;
	bool is_shared = call->outer && sim_config()->shares_correlation;
	call->correlation =
		is_shared ? call->outer->correlation : atomic_fetch_add(&last_correlation, 1) + 1;
	current = call;
	if (!call->outer)
		sim_clock_spend(sim_config()->call_ns);
	if (sim_config()->logs_calls)
		call->begin_ns = sim_now();
	if (tracer && tracer->call_begins) {
		call->is_traced = true;
		tracer->call_begins(call);
	}
	return !sim_fault_is_due(call->api, &call->result);
}

int sim_call_exit(struct sim_call *call)
{
	const struct sim_tracer *tracer = sim_tracer();

	if (call->is_traced && tracer && tracer->call_ends)
		tracer->call_ends(call);
	current = call->outer;
	if (sim_config()->logs_calls && sim_log_is_on())
		sim_log("{\"kind\":\"call\",\"name\":\"%s\",\"domain\":%d,\"cbid\":%u,\"thread\":%u,\"correlation\":%lu,"
			"\"start\":%lu,\"end\":%lu,\"result\":%d}",
			call->api->name, call->api->domain, call->api->cbid, sim_thread_id(),
			call->correlation, call->begin_ns, sim_now(), call->result);
	return call->result;
}

struct sim_call *sim_call_current(void)
{
	return current;
}

uint64_t sim_call_correlation(void)
{
	const struct sim_call *call = current;

	while (call && call->outer)
		call = call->outer;
	return call ? call->correlation : 0;
}

int sim_call_unsupported(struct sim_api *api)
{
	if (atomic_fetch_add(&api->n_unsupported, 1) == 0 && sim_log_is_on())
		sim_log("{\"kind\":\"unsupported\",\"name\":\"%s\"}", api->name);
	return api->unsupported;
}

/* What has ended by the exit is in the log, even without a query. */
__attribute__((destructor(101))) static void log_counts(void)
{
	if (!sim_log_is_on())
		return;
	if (!pthread_mutex_trylock(&sim_the_lock)) {
		sim_run();
		sim_unlock();
	}
	for (struct sim_api *api = atomic_load(&apis_seen); api; api = api->next)
		sim_log("{\"kind\":\"calls\",\"name\":\"%s\",\"calls\":%lu,\"unsupported\":%lu}",
			api->name, atomic_load(&api->n_calls), atomic_load(&api->n_unsupported));
	sim_log_flush();
}

uint32_t sim_thread_id(void)
{
	if (!thread_id)
		thread_id = (uint32_t)syscall(SYS_gettid);
	return thread_id;
}
