# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The manual pages and the shell completions, made from their sources here, the commands' --help and the .def tables;
# included by the Makefile.

MAN := $(BUILD)/man
GENERATE := tools/man/generate
# The pages of the commands, of those for briefs, ranks and sessions, and of topics.
MAN_FOLDERS := tools/man tools/man/briefs tools/man/ranks tools/man/session tools/man/topics
MAN_PAGES := $(addprefix $(MAN)/,$(notdir $(wildcard $(addsuffix /*.[157],$(MAN_FOLDERS)))))
COMPLETIONS := $(addprefix $(BUILD)/completions/,bash zsh fish)

man: $(MAN_PAGES) $(COMPLETIONS) ## build the manual pages and the shell completions into build/man and build/completions

$(MAN)/tables: $(GENERATE)/tables $(BUILD)/torsh agent/process/variables.def agent/wire/formats.def
	@mkdir -p $(@D)
	@$< $(BUILD)/torsh $(CC) >$@

make_page = $(call say,man,$@)LC_ALL=C awk -v version=$(VERSION) -f $(GENERATE)/page.awk $(MAN)/tables $< >$@
define pages_of
$(MAN)/%: $(1)/% $(MAN)/tables $(GENERATE)/page.awk
	$$(make_page)
endef
$(foreach folder,$(MAN_FOLDERS),$(eval $(call pages_of,$(folder))))

$(BUILD)/completions/%: $(MAN)/tables $(GENERATE)/completions.awk
	@mkdir -p $(@D)
	@LC_ALL=C awk -v shell=$* -f $(GENERATE)/completions.awk $(MAN)/tables >$@

man-check: man ## every manual page renders without a warning, and the completions are correct shell
	@$(GENERATE)/check $(MAN) $(BUILD)/completions
