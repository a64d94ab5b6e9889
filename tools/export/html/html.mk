# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The page of the HTML export, put together from its parts and embedded into the tools; included by the Makefile.

HTML := tools/export/html
HTML_PAGE := $(GEN)/html
# Modules before those that import them: they become one script.
HTML_MODULES := $(addprefix $(HTML)/page/,$(addsuffix .js,source format dom served frames tree icicle table chart sites moments memory findings steps perfetto timeline data time devices ranks overview recorded main))
HTML_PARTS := $(HTML)/page/page.html $(HTML)/page/page.css $(HTML_MODULES) $(wildcard $(HTML)/vendor/*)

$(HTML_PAGE)/head $(HTML_PAGE)/tail &: $(HTML)/assemble $(HTML_PARTS)
	@mkdir -p $(@D)
	@$(HTML)/assemble $(HTML) $(HTML_PAGE) $(HTML_MODULES)

$(GEN)/html_page.o: $(HTML)/html_page.S $(HTML_PAGE)/head $(HTML_PAGE)/tail
	$(call say,as,$<)$(CC) -Wa,-I,$(HTML_PAGE) -c -o $@ $<
