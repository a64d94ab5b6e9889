# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# make install and uninstall, the Python wheel and the Debian package; included by the Makefile.

PACKAGE := $(BUILD)/package
DIST ?= dist
# The folder of the installed command and writer: the wheel has its own.
BINARIES ?= $(BUILD)
INSTALLED := "$(DESTDIR)$(PREFIX)"
PYTHON_MODULES := $(call files_below,tools/python,.py .pyi .typed .md) $(wildcard tools/python/torsh/assistant/plugin/.claude-plugin/*.json)

# MODE:SOURCE:PLACE of all installed files; places are below PREFIX.
INSTALLS = 755:$(BINARIES)/torsh:bin/torsh \
	755:$(BINARIES)/torsh-writer:lib/torsh/torsh-writer \
	644:$(AGENT):lib/torsh/libtorshagent.so \
	644:tools/memory/leaks/rules/default.suppressions:lib/torsh/default.suppressions \
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

# ---- programs without the shared libraries of the other builds -----------------------------------------------------

STATIC := $(PACKAGE)/static
STATIC_LIBRARIES := libprotobuf-c libzstd libxxhash libdw libelf libz libevent_extra libevent_core libncursesw libtinfo liblzma libbz2 libstdc++
STATIC_BINARIES := $(patsubst $(BUILD)/%,$(PACKAGE)/bin/%,$(TOOL_BINARIES))

$(STATIC)/words: tools/package/archives shim/libc/glibc.def tools/package/package.mk
	@$< $(STATIC) '$(CC)' $(ARCH) $(STATIC_LIBRARIES)

# A library without an archive is next to the agent: found from PREFIX/bin, and from the wheel before it is installed.
$(STATIC_BINARIES): $(PACKAGE)/bin/%: $(BUILD)/tool/tools/%.o $(TOOL_LIB) $(STATIC)/words
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) -s -static-libgcc -o $@ $< $(TOOL_LIB) -Wl,--as-needed -Wl,--start-group @$(STATIC)/words -Wl,--end-group \
		-lm $(TOOL_WRAPS) $(GLIBC_LINK) -Wl,-rpath,'$$ORIGIN/../lib/torsh:$$ORIGIN/../data/lib/torsh'

# ---- the wheel ------------------------------------------------------------------------------------------------------

WHEEL_STAGE := $(PACKAGE)/wheel
stage = +@$(MAKE) --no-print-directory -s -o all install PREFIX=$(2) DESTDIR=$(CURDIR)/$(1) BINARIES=$(3) >/dev/null

# test/check/glibc verifies the tag against the symbols that the files need.
wheel: all package-needs $(STATIC_BINARIES) ## make dist/torsh-VERSION-py3-none-manylinux_2_28_ARCH.whl for pip
	@rm -rf $(WHEEL_STAGE)
	$(call stage,$(WHEEL_STAGE),,$(PACKAGE)/bin)
	@find $(STATIC)/shared -type f -exec install -m 644 {} $(WHEEL_STAGE)/lib/torsh/ \;
	@strip --strip-unneeded $(WHEEL_STAGE)/lib/torsh/libtorshagent.so
	@test/check/glibc 2.28 $(WHEEL_STAGE)/bin/torsh $(WHEEL_STAGE)/lib/torsh/torsh-writer $(WHEEL_STAGE)/lib/torsh/*.so* || \
		{ echo "make the wheel on Debian 11 or 12: this release's libraries need a newer glibc" >&2; exit 1; }
	@$(PYTHON) tools/package/wheel.py $(VERSION) manylinux_2_28_$(ARCH) $(WHEEL_STAGE) $(STATIC)/licences $(DIST)

# ---- the Debian package ---------------------------------------------------------------------------------------------

DEB_STAGE := $(PACKAGE)/deb
deb: all package-needs ## make dist/torsh_VERSION_ARCH.deb for apt
	@rm -rf $(DEB_STAGE)
	$(call stage,$(DEB_STAGE),/usr,$(BUILD))
	@tools/package/deb $(VERSION) $(DEB_STAGE) $(DIST)

package-needs:
	@.ci/deps --check package
$(STATIC)/words: | package-needs

.PHONY: uninstall wheel deb package-needs
