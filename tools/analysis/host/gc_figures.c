/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/host/gc_figures.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/analysis/rules.h"
#include "tools/base/die.h"
#include "tools/base/size.h"

bool torsh_gc_is_recorded(const struct metrics_process *of)
{
	return torsh_process_attributes_find(&of->of->facts, "python_gc");
}

double torsh_gc_whole_ns(const struct metrics_process *of, const char **reason)
{
	const struct time_scope *scope = &of->scope;

	if (!torsh_gc_is_recorded(of))
		*reason = "no runs of Python's garbage collector were recorded";
	else if (scope->is_of_steps && !scope->steady_ns)
		*reason = "there is no whole step after the first";
	else if (!scope->is_of_steps && torsh_run_seconds(of) <= 0)
		*reason = "it is not known how long the process ran";
	else
		return scope->is_of_steps ? (double)scope->steady_ns : torsh_run_seconds(of) * 1e9;
	return 0;
}

double torsh_gc_share(const struct metrics_process *of)
{
	const char *reason;

	return torsh_percent((double)torsh_gc_ns(&of->gc.steady), torsh_gc_whole_ns(of, &reason));
}

const char *torsh_gc_share_of(const struct metrics_process *of)
{
	return of->scope.is_of_steps ? "the whole steps after the first" : "the run";
}

char *torsh_gc_sentence(const struct metrics_process *of)
{
	const struct gc_sums *sums = &of->gc.steady;
	char n[SIZE_TEXT_BYTES], all[SIZE_TEXT_BYTES], longest[SIZE_TEXT_BYTES],
		share[SIZE_TEXT_BYTES], *text;

	if (asprintf(&text, "%s took %s, %s of %s, the longest %s (generation %" PRIu32 ")",
		     torsh_size_counted(torsh_gc_runs(sums), "run", n),
		     torsh_size_duration(torsh_gc_ns(sums), all),
		     torsh_size_percent(torsh_gc_share(of), 100, share), torsh_gc_share_of(of),
		     torsh_size_duration(sums->longest_ns, longest), sums->longest_generation) < 0)
		torsh_die("out of memory");
	return text;
}

void torsh_gc_json(struct json_writer *json, const struct metrics_process *of)
{
	const struct gc_sums *sums = of ? &of->gc.all : NULL;
	const char *reason;

	if (!of || !torsh_gc_is_recorded(of)) {
		torsh_json_put_null(json, "python_gc");
		return;
	}
	torsh_json_begin_object(json, "python_gc");
	torsh_json_begin_array(json, "generations");
	for (size_t i = 0; i < GC_GENERATIONS; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "runs", sums->n[i]);
		torsh_json_put_u64(json, "ns", sums->ns[i]);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "collected", sums->collected);
	torsh_json_put_u64(json, "uncollectable", sums->uncollectable);
	torsh_json_put_u64(json, "longest_ns", sums->longest_ns);
	torsh_json_put_u64(json, "longest_generation", sums->longest_generation);
	if (torsh_gc_whole_ns(of, &reason) > 0)
		torsh_json_put_double(json, "share_pct", torsh_gc_share(of));
	else
		torsh_json_put_null(json, "share_pct");
	torsh_json_put_text(json, "share_of", torsh_gc_share_of(of));
	torsh_json_end_object(json);
}
