# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The manual pages and the shell completions, made from their sources here, the commands' --help and the .def tables;
# included by the Makefile.

MAN := $(BUILD)/man
GENERATE := tools/man/generate
# The pages of the commands, of those for ranks and for sessions, and of topics.
MAN_PAGES := $(addprefix $(MAN)/,$(notdir $(wildcard tools/man/*.1 tools/man/ranks/*.1 tools/man/session/*.1 tools/man/topics/*.[57])))
COMPLETIONS := $(addprefix $(BUILD)/completions/,bash zsh fish)

man: $(MAN_PAGES) $(COMPLETIONS) ## build the manual pages and the shell completions into build/man and build/completions

$(MAN)/tables: $(GENERATE)/tables $(BUILD)/torsh agent/process/variables.def agent/wire/formats.def
	@mkdir -p $(@D)
	@$< $(BUILD)/torsh $(CC) >$@

make_page = $(call say,man,$@)LC_ALL=C awk -v version=$(VERSION) -f $(GENERATE)/page.awk $(MAN)/tables $< >$@
$(MAN)/%: tools/man/% $(MAN)/tables $(GENERATE)/page.awk
	$(make_page)
$(MAN)/%: tools/man/ranks/% $(MAN)/tables $(GENERATE)/page.awk
	$(make_page)
$(MAN)/%: tools/man/session/% $(MAN)/tables $(GENERATE)/page.awk
	$(make_page)
$(MAN)/%: tools/man/topics/% $(MAN)/tables $(GENERATE)/page.awk
	$(make_page)

$(BUILD)/completions/%: $(MAN)/tables $(GENERATE)/completions.awk
	@mkdir -p $(@D)
	@LC_ALL=C awk -v shell=$* -f $(GENERATE)/completions.awk $(MAN)/tables >$@

man-check: man ## every manual page renders without a warning, and the completions are correct shell
	@$(GENERATE)/check $(MAN) $(BUILD)/completions
