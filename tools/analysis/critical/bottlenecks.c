/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/critical/bottlenecks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/size.h"

static const struct {
	const char *name, *text, *next;
	double limit_pct;
} words[N_BOTTLENECKS] = {
#define BOTTLENECK(NAME, called, limit, words, command) \
	[BOTTLENECK_##NAME] = {.name = #called, .text = words, .next = command, .limit_pct = limit},
#include "tools/analysis/critical/bottlenecks.def"
#undef BOTTLENECK
};

const char *torsh_critical_what(const struct critical_row *row, struct symbols *symbols)
{
	if (!row->name)
		return torsh_critical_kind_texts[row->kind];
	return row->kind == CRITICAL_KERNELS && symbols ? torsh_symbols_demangle(symbols, row->name)
							: row->name;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

char *torsh_critical_lane_text(const struct critical *critical, size_t lane)
{
	const struct critical_lane *of = &critical->lanes[lane];
	const struct recorded_thread *thread = &critical->process->threads[of->thread];

	if (of->is_device)
		return torsh_need_text("stream %" PRIu32 " of device %" PRIu32, of->stream,
				       of->device);
	if (!thread->is_known)
		return torsh_need_text("an unknown thread");
	if (!thread->name || !*thread->name)
		return torsh_need_text("thread %" PRIu32, thread->tid);
	return torsh_need_text("thread %s (%" PRIu32 ")", thread->name, thread->tid);
}

size_t torsh_critical_chain(const struct critical *critical)
{
	size_t most = 0;

	for (size_t i = 1; i < critical->n_lanes; i++)
		most = critical->lanes[i].ns > critical->lanes[most].ns ? i : most;
	return most;
}

size_t torsh_critical_notes(const struct critical *critical, char *notes[CRITICAL_NOTES])
{
	char text[SIZE_TEXT_BYTES];
	size_t n = 0;

	if (critical->n_steps < critical->n_all)
		notes[n++] = torsh_need_text("%zu of %s were looked at", critical->n_steps,
					     torsh_size_counted(critical->n_all, "step", text));
	if (!critical->has_waits)
		notes[n++] = torsh_need_text("waits of threads were not recorded: "
					     "TORSH_PROFILER_ACTIVITIES does not name waits");
	if (critical->n_guessed)
		notes[n++] = torsh_need_text("no event says what ended %s: taken from times",
					     torsh_size_counted(critical->n_guessed, "wait", text));
	if (critical->n_contradicting)
		notes[n++] = torsh_need_text(
			"%s contradict the recorded times and were left out",
			torsh_size_counted(critical->n_contradicting, "dependency", text));
	return n;
}

/* ---- what stands out ------------------------------------------------------------------------- */

static double percent(const struct critical *critical, uint64_t ns)
{
	return critical->steps_ns ? 100 * (double)ns / (double)critical->steps_ns : 0;
}

/* Returns "12 ms of a step's 20 ms, without it a step takes 9 ms", which the caller frees. */
static char *evidence_text(const struct critical *critical, const char *subject, uint64_t ns,
			   uint64_t gain_ns)
{
	char part[SIZE_TEXT_BYTES], whole[SIZE_TEXT_BYTES], rest[SIZE_TEXT_BYTES];
	uint64_t n = critical->n_steps;

	return torsh_need_text(
		"%s%s%s of a step's %s; without it a step takes %s", subject ? subject : "",
		subject ? ": " : "", torsh_size_duration(ns / n, part),
		torsh_size_duration(critical->steps_ns / n, whole),
		torsh_size_duration(
			critical->steps_ns > gain_ns ? (critical->steps_ns - gain_ns) / n : 0,
			rest));
}

static void add(struct bottlenecks *to, const struct critical *critical, enum bottleneck_kind kind,
		const char *subject, uint64_t ns, const struct critical_gain *gain)
{
	uint64_t gain_ns = gain->ns < ns ? gain->ns : ns;
	size_t at = to->n;

	if (!ns || percent(critical, ns) < words[kind].limit_pct)
		return;
	for (; at && to->items[at - 1].ns < ns; at--)
		to->items[at] = to->items[at - 1];
	to->n++;
	to->items[at] = (struct bottleneck){
		.kind = kind,
		.name = words[kind].name,
		.text = words[kind].text,
		.next = kind == BOTTLENECK_DATA && !critical->has_waits ? "torsh steps"
									: words[kind].next,
		.share_pct = percent(critical, ns),
		.ns = ns,
		.gain_ns = gain_ns,
		.evidence = evidence_text(critical, subject, ns, gain_ns),
	};
}

/* What each waits for, whether it uses devices or not. */
static void add_waits(struct bottlenecks *to, const struct critical *critical)
{
	static const struct {
		enum bottleneck_kind kind;
		enum critical_kind of;
	} plain[] = {{BOTTLENECK_DATA, CRITICAL_DATA},
		     {BOTTLENECK_GC, CRITICAL_GC},
		     {BOTTLENECK_GIL, CRITICAL_GIL},
		     {BOTTLENECK_LOCKS, CRITICAL_LOCKS},
		     {BOTTLENECK_IO, CRITICAL_IO},
		     {BOTTLENECK_SLEEP, CRITICAL_SLEEP},
		     {BOTTLENECK_COLLECTIVES, CRITICAL_COLLECTIVES}};

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		add(to, critical, plain[i].kind, NULL, critical->kind_ns[plain[i].of],
		    &critical->gains[plain[i].of]);
}

static void add_host(struct bottlenecks *to, const struct critical *critical)
{
	add(to, critical, BOTTLENECK_PYTHON, NULL, critical->kind_ns[CRITICAL_PYTHON],
	    &critical->gains[CRITICAL_PYTHON]);
	add(to, critical, BOTTLENECK_GAPS, NULL, critical->kind_ns[CRITICAL_GAPS],
	    &critical->gains[CRITICAL_GAPS]);
	add(to, critical, BOTTLENECK_OPERATOR, critical->operator_name, critical->operator_ns,
	    &critical->without_operator);
}

static void add_devices(struct bottlenecks *to, const struct critical *critical,
			struct symbols *symbols)
{
	const uint64_t *ns = critical->kind_ns;
	const struct critical_row *largest = NULL;

	for (size_t i = critical->n_rows; i--;) {
		if (critical->rows[i].kind == CRITICAL_KERNELS)
			largest = &critical->rows[i];
	}

	add(to, critical, BOTTLENECK_LAUNCHES, NULL,
	    ns[CRITICAL_OPERATORS] + ns[CRITICAL_PYTHON] + ns[CRITICAL_GAPS] + ns[CRITICAL_LATENCY],
	    &critical->without_host);
	if (largest)
		add(to, critical, BOTTLENECK_KERNELS, torsh_critical_what(largest, symbols),
		    ns[CRITICAL_KERNELS], &critical->gains[CRITICAL_KERNELS]);
	add(to, critical, BOTTLENECK_COPIES, NULL, ns[CRITICAL_COPIES],
	    &critical->gains[CRITICAL_COPIES]);
	add(to, critical, BOTTLENECK_SYNCHRONISATION, NULL, critical->without_sync.ns,
	    &critical->without_sync);
}

void torsh_bottlenecks_find(struct bottlenecks *bottlenecks, const struct critical *critical,
			    struct symbols *symbols)
{
	*bottlenecks = (struct bottlenecks){.n = 0};
	if (critical->reason || !critical->n_steps)
		return;
	add_waits(bottlenecks, critical);
	if (critical->has_devices)
		add_devices(bottlenecks, critical, symbols);
	else
		add_host(bottlenecks, critical);
}

void torsh_bottlenecks_free(struct bottlenecks *bottlenecks)
{
	for (size_t i = 0; i < bottlenecks->n; i++)
		free(bottlenecks->items[i].evidence);
	bottlenecks->n = 0;
}
