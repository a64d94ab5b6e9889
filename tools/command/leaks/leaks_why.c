/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh leaks --why: who keeps the blocks of one leak. */
#include "tools/base/die.h"
#include "tools/command/leaks/leaks_view.h"
#include "tools/report/sites/holder_report.h"

/* The leak of that number: those that are kept to the end and freed then come last. */
static const struct allocation_site *site_of(const struct leaks_view *view, size_t number)
{
	const struct allocation_sites *found = &view->leaks.found, *held = &view->leaks.held;

	if (number && number <= view->n_shown)
		return &found->items[number - 1];
	if (number > view->n_shown && number - view->n_shown <= view->n_held_shown)
		return &held->items[number - view->n_shown - 1];
	torsh_die("there is no leak number %zu: %zu are shown", number,
		  view->n_shown + view->n_held_shown);
}

void torsh_leaks_why(const struct leaks_view *view, size_t number)
{
	torsh_leaks_why_of(view->options, view->reading, site_of(view, number));
}

void torsh_leaks_why_of(const struct read_options *options, const struct reading *reading,
			const struct allocation_site *site)
{
	struct holder_view view = {.symbols = reading->symbols, .stacks = options->view};

	if (options->is_json)
		torsh_holder_json(&view, site);
	else
		torsh_holder_text(&view, site);
}
