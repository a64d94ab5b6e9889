# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# make install and uninstall; included by the Makefile.

BINARIES := $(BUILD)
INSTALLED := "$(DESTDIR)$(PREFIX)"
PYTHON_MODULES := $(call files_below,tools/python,.py .pyi .typed)

# MODE:SOURCE:PLACE of all that is installed; places are below PREFIX.
INSTALLS = 755:$(BINARIES)/torsh:bin/torsh \
	755:$(BINARIES)/torsh-writer:lib/torsh/torsh-writer \
	644:$(AGENT):lib/torsh/libtorshagent.so \
	644:tools/memory/leaks/default.suppressions:lib/torsh/default.suppressions \
	$(foreach file,$(PYTHON_MODULES),644:$(file):lib/torsh/python/$(file:tools/python/%=%)) \
	644:shim/ranges/torsh.h:include/torsh.h \
	644:$(BUILD)/torsh.pc:share/pkgconfig/torsh.pc \
	$(foreach page,$(MAN_PAGES),644:$(page):share/man/man$(subst .,,$(suffix $(page)))/$(notdir $(page))) \
	644:$(BUILD)/completions/bash:share/bash-completion/completions/torsh \
	644:$(BUILD)/completions/zsh:share/zsh/site-functions/_torsh \
	644:$(BUILD)/completions/fish:share/fish/vendor_completions.d/torsh.fish
# The agent by its bare name: LD_PRELOAD=libtorshagent.so.
INSTALLED_LINK := lib/libtorshagent.so

define newline


endef
install_one = install -D -m $(word 1,$1) $(word 2,$1) $(INSTALLED)/$(word 3,$1)
place_of = $(INSTALLED)/$(word 3,$(subst :, ,$1))

all: $(BUILD)/torsh.pc
$(BUILD)/torsh.pc: tools/package/torsh.pc Makefile
	@mkdir -p $(@D)
	@sed 's/@VERSION@/$(VERSION)/' $< >$@

install: all ## install below PREFIX (DESTDIR is honoured)
	$(foreach entry,$(INSTALLS),$(call install_one,$(subst :, ,$(entry)))$(newline)	)
	ln -sf torsh/libtorshagent.so $(INSTALLED)/$(INSTALLED_LINK)

uninstall: ## remove what make install puts below PREFIX
	rm -f $(INSTALLED)/$(INSTALLED_LINK) $(foreach entry,$(INSTALLS),$(call place_of,$(entry)))
	if [ -d $(INSTALLED)/lib/torsh ]; then find $(INSTALLED)/lib/torsh -depth \( -name '*.pyc' -o -type d -empty \) -delete; fi

.PHONY: uninstall
