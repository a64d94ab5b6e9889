# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The page of the HTML export, assembled from its parts and embedded into the tools; included by the Makefile.

HTML := tools/export/html
HTML_PAGE := $(GEN)/html
# Modules before those that import them: they become one script.
HTML_MODULES := $(addprefix $(HTML)/page/,$(addsuffix .js,served/source format dom theme served/served frames tree icicle table chart sites moments memory/rise memory findings steps perfetto timeline data time processor devices ranks memory/census memory/rss overview recorded main))
HTML_PARTS := $(HTML)/page/page.html $(HTML)/page/page.css $(HTML_MODULES) $(wildcard $(HTML)/vendor/*)

# The page of torsh diff has modules of its own.
HTML_DIFF_MODULES := $(addprefix $(HTML)/page/,$(addsuffix .js,format dom theme frames tree icicle table diff/diff))
HTML_PARTS += $(HTML_DIFF_MODULES)

# And that of torsh ranks.
HTML_JOB_MODULES := $(addprefix $(HTML)/page/,$(addsuffix .js,format dom theme table job/job))
HTML_PARTS += $(HTML_JOB_MODULES)

$(HTML_PAGE)/head $(HTML_PAGE)/tail &: $(HTML)/assemble $(HTML_PARTS)
	@mkdir -p $(@D)
	@$(HTML)/assemble $(HTML) $(HTML_PAGE) $(HTML_MODULES)

$(HTML_PAGE)/diff/head $(HTML_PAGE)/diff/tail &: $(HTML)/assemble $(HTML_PARTS)
	@mkdir -p $(@D)
	@$(HTML)/assemble $(HTML) $(HTML_PAGE)/diff $(HTML_DIFF_MODULES)

$(HTML_PAGE)/job/head $(HTML_PAGE)/job/tail &: $(HTML)/assemble $(HTML_PARTS)
	@mkdir -p $(@D)
	@$(HTML)/assemble $(HTML) $(HTML_PAGE)/job $(HTML_JOB_MODULES)

$(GEN)/html_page.o: $(HTML)/html_page.S $(foreach part,head tail,$(addprefix $(HTML_PAGE)/,$(part) diff/$(part) job/$(part)))
	$(call say,as,$<)$(CC) -Wa,-I,$(HTML_PAGE) -c -o $@ $<
