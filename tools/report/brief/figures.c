/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The figures of a run that hypotheses are about. */
#include "tools/report/brief/brief.h"

const enum change_unit torsh_brief_figure_units[N_FIGURES] = {
#define FIGURE(NAME, name, unit, text) [FIGURE_##NAME] = CHANGE_##unit,
#include "tools/report/brief/figures.def"
#undef FIGURE
};

const char *const torsh_brief_figure_words[N_FIGURES] = {
#define FIGURE(NAME, name, unit, text) [FIGURE_##NAME] = text,
#include "tools/report/brief/figures.def"
#undef FIGURE
};

const char *const torsh_brief_figure_names[N_FIGURES] = {
#define FIGURE(NAME, name, ...) [FIGURE_##NAME] = #name,
#include "tools/report/brief/figures.def"
#undef FIGURE
};

uint64_t torsh_brief_steady_steps(const struct brief *brief)
{
	const struct metrics_process *of = torsh_overview_metrics(brief->overview, brief->main);

	return of && of->scope.is_of_steps ? of->scope.n_whole - of->scope.first_steady : 0;
}

static bool find_steps_time(const struct brief *brief, uint64_t parts, uint64_t *value)
{
	const struct metrics_process *of = torsh_overview_metrics(brief->overview, brief->main);

	if (!torsh_brief_steady_steps(brief))
		return false;
	*value = of->scope.steady_ns / parts;
	return true;
}

bool torsh_brief_figure(const struct brief *brief, enum brief_figure figure, uint64_t *value)
{
	const struct overview *overview = brief->overview;

	switch (figure) {
	case FIGURE_STEP_TIME:
		return find_steps_time(brief, torsh_brief_steady_steps(brief), value);
	case FIGURE_STEPS_TIME:
		return find_steps_time(brief, 1, value);
	case FIGURE_RUN_TIME:
		*value = torsh_brief_run_ns(brief);
		return *value;
	case FIGURE_PEAK:
		*value = overview->highest.bytes;
		return overview->highest.is_known;
	case FIGURE_LEAKED:
		*value = overview->leaks.bytes;
		return overview->highest.is_known;
	case FIGURE_GROWTH:
		*value = (uint64_t)(torsh_growth_bytes(&brief->growth) + 0.5);
		return brief->growth.is_enough && brief->growth.over == GROWTH_OVER_STEPS;
	case N_FIGURES:
		break;
	}
	return false;
}
