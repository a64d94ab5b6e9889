# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Builds everything into build/. `make help` lists the targets.

VERSION := 0.1.0
BUILD ?= build
PREFIX ?= /usr/local
PYTHON ?= python3
# For `make BUILD=build/asan SANITIZE=address,undefined test-tools`: the tools and the unit tests, never the agent.
SANITIZE ?=
FUZZ_SECONDS ?= 60
PYTHONS ?= 3.14 3.15
T ?=
NEEDS ?=
ALSO ?=
TORCH ?=
J ?= 2

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
.PHONY: all agent tools help needs deps deps-test deps-bench unit test check demo bench lint layering exports fuzz \
	test-tools test-programs man man-check install clean FORCE

# STRICT=1 makes warnings errors, for CI and for development: other compilers have other warnings.
STRICT ?=
WARNINGS := -Wall -Wextra $(if $(STRICT),-Werror)
SANITIZE_FLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=undefined)
OPTIMISE ?= -g -O2
# What the tools have instead, e.g. -O0.
TOOL_OPTIMISE ?=
COMMON := $(OPTIMISE) $(WARNINGS) -D_GNU_SOURCE -DTORSH_VERSION='"$(VERSION)"' -I. -fno-omit-frame-pointer

# files_below FOLDERS,ENDINGS: the files with these endings, recursively.
files_below = $(sort $(foreach folder,$1,$(foreach ending,$2,$(wildcard \
	$(folder)/*$(ending) $(folder)/*/*$(ending) $(folder)/*/*/*$(ending) $(folder)/*/*/*/*$(ending)))))

# ---- the agent: code that is loaded into the target -----------------------------------------------------------------

ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null || uname -m)))
OTHER_ARCH := $(if $(filter aarch64,$(ARCH)),x86_64,aarch64)
# The result runs on every glibc from 2.28: it links against old versions of symbols (shim/libc/glibc.h), and names the
# libraries that were separate before 2.34 and are empty since.
GLIBC_FLAGS := -include shim/libc/glibc.h
GLIBC_LINK := -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state
TARGET_SOURCES := $(filter-out %_$(OTHER_ARCH).c %_$(OTHER_ARCH).S,$(call files_below,agent collectors shim,.c .S))
TARGET_OBJECTS := $(patsubst %,$(BUILD)/target/%.o,$(basename $(TARGET_SOURCES))) $(BUILD)/target/torch_script.o

# The wrappers are named malloc, calloc and so on: without -fno-builtin the compiler turns one into a call of itself.
# Symbols are hidden by default: exported ones are marked, and listed in EXPORTS_MAP.
TARGET_FLAGS := -std=gnu11 $(COMMON) $(GLIBC_FLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-semantic-interposition \
	-fcf-protection=none -fno-stack-protector -fstack-usage \
	$(addprefix -fno-builtin-,malloc calloc realloc free aligned_alloc posix_memalign memalign strdup strndup)

# Only for fuzzers, which measure their coverage of the target's code.
TARGET_SANITIZE ?=
TARGET_FLAGS += $(if $(TARGET_SANITIZE),-fsanitize=$(TARGET_SANITIZE))

EXPORTS_MAP := shim/exports.map
AGENT := $(BUILD)/libtorshagent.so

# Private jemalloc: the distribution's position-independent archive with a prefix on every public name, so that the
# target can have a jemalloc of its own. The names are read from the archive; another version may have others.
# Imports that would make it read the target's settings, start threads or record itself are redirected to
# shim/allocators/jemalloc.c.
# Its constructor is removed, because it reserves 8 MiB of address space even if jemalloc is never used.
JEMALLOC_ARCHIVE := $(firstword $(wildcard /usr/lib/$(ARCH)-linux-gnu/libjemalloc_pic.a /usr/lib64/libjemalloc_pic.a \
	/usr/lib/libjemalloc_pic.a))
JEMALLOC_PREFIX := torsh_je_
JEMALLOC_IMPORTS := secure_getenv getenv readlink abort pthread_create mmap munmap madvise \
	pthread_atfork pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock
# Its profiler is unused, and would make the target load libgcc_s and libm.
JEMALLOC_UNUSED := _Unwind_Backtrace _Unwind_GetIP exp log round
ifneq ($(JEMALLOC_ARCHIVE),)
JEMALLOC := $(BUILD)/jemalloc/libtorshjemalloc.a
# Its largest variable, the root of its radix tree, and the size: of jemalloc 5.3 or 5.2.
JEMALLOC_MAP := $(shell nm -S $(JEMALLOC_ARCHIVE) 2>/dev/null | \
	awk '$$4 ~ /^je_(arena_emap_global|extents_rtree)$$/ { print $$4, "0x" $$2 }')
TARGET_FLAGS += $(if $(JEMALLOC_MAP),$(addprefix -DTORSH_JEMALLOC_MAP,=$(word 1,$(JEMALLOC_MAP)) _BYTES=$(word 2,$(JEMALLOC_MAP))))
JEMALLOC_LINK := $(JEMALLOC_UNUSED:%=-Wl,--defsym=$(JEMALLOC_PREFIX)%=$(JEMALLOC_PREFIX)abort) -lm
else
TARGET_FLAGS += -DTORSH_WITHOUT_JEMALLOC
endif

# ---- the tools: writer, reports, command --------------------------------------------------------------------------

GEN := $(BUILD)/gen
PROTO := $(call files_below,tools,.proto)
GEN_SOURCES := $(patsubst %.proto,$(GEN)/%.pb-c.c,$(PROTO))
GEN_HEADERS := $(GEN_SOURCES:.c=.h)
GEN_INCLUDE := $(addprefix -I,$(GEN) $(patsubst %/,%,$(sort $(dir $(GEN_SOURCES)))))
GEN_OBJECTS := $(GEN_SOURCES:.c=.o) $(GEN)/default_suppressions.o $(GEN)/html_page.o
TOOL_MAINS := tools/torsh.c tools/torsh-writer.c
# Built where an MPI is: its compiler knows the rest.
MPICC := $(shell command -v mpicc 2>/dev/null)
MPI_MAIN := tools/torsh-mpi.c
MPI_BINARY := $(if $(MPICC),$(BUILD)/torsh-mpi)
TOOL_SOURCES := $(filter-out $(TOOL_MAINS) $(MPI_MAIN),$(call files_below,tools agent/wire,.c))
TOOL_OBJECTS := $(patsubst %.c,$(BUILD)/tool/%.o,$(TOOL_SOURCES))
TOOL_LIB := $(BUILD)/libtorshtools.a
TOOL_BINARIES := $(patsubst tools/%.c,$(BUILD)/%,$(wildcard $(TOOL_MAINS)))

TOOL_MODULES := libprotobuf-c libzstd libxxhash libdw libelf zlib ncursesw libevent_extra libevent_core
# Two fields that were stored one by one and are loaded as a pair wait for both stores: with such loads an event took the
# writer a fifth longer.
TOOL_FLAGS := -std=c11 $(COMMON) -fno-tree-slp-vectorize $(TOOL_OPTIMISE) $(GLIBC_FLAGS) -DTORSH_TOOL $(GEN_INCLUDE) $(SANITIZE_FLAGS)
TOOL_CFLAGS = $(TOOL_FLAGS) $(shell pkg-config --cflags $(TOOL_MODULES))
# Not every tool needs all of them: the writer has no user interface.
TOOL_LIBS = -Wl,--as-needed $(shell pkg-config --libs $(TOOL_MODULES)) -lstdc++ -lm $(GLIBC_LINK) $(TOOL_WRAPS)
TOOL_WRAPS = $(addprefix -Wl$(comma)--wrap=,stat fstat lstat __libc_start_main arc4random arc4random_buf)

# Commands are abbreviated; V=1 shows them in full.
say = $(if $(V),,@printf '  %-9s %s\n' $(1) $(2); )

# ---- rules --------------------------------------------------------------------------------------------------------

all: agent tools man ## build the agent, the writer, the torsh command and its manual (the default)
agent: $(AGENT)
tools: $(TOOL_BINARIES) $(TOOL_LIB) $(MPI_BINARY)

# Names the missing packages before the compiler fails.
needs:
	@.ci/deps --check build

# Rewritten if the compiler, its flags or what is compiled for size change, which rebuilds everything.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(CC) $(TARGET_FLAGS) | -Os $(SMALL) $(SMALL_FILES) | $(TOOL_FLAGS))' | cmp -s - $@ || \
		printf '%s\n' '$(subst ','\'',$(CC) $(TARGET_FLAGS) | -Os $(SMALL) $(SMALL_FILES) | $(TOOL_FLAGS))' >$@

# What is mapped counts as locked in a program that locks its memory: what runs rarely, or beside slow calls, is compiled for
# size.
SMALL := agent/launch agent/modules agent/process agent/session collectors/blas/libraries collectors/cuda/counters \
	collectors/device collectors/mpi collectors/nccl collectors/perf collectors/process collectors/ranges/nvtx \
	collectors/tasks shim/blas shim/cuda shim/loader shim/mpi shim/nccl shim/perf
SMALL_FILES := agent/wire/executable agent/producer/channel agent/producer/lifecycle agent/producer/producers \
	collectors/cuda/cuda collectors/cuda/cupti/cuda_clock collectors/waits/wait_events collectors/waits/wakes \
	$(addprefix shim/cpython/cpython_,api gc greenlets memory objects tasks) \
	shim/libc/loop_sockets shim/libc/next shim/libc/process_entries shim/torch/torch_search \
	$(addprefix shim/waits/wait_,objects python wrappers) \
	$(addprefix collectors/ranges/,http_requests injection itt_events itt_handles itt_values nvtx_events nvtx_payload \
		session_calls)
$(addprefix $(BUILD)/target/,$(addsuffix /%.o,$(SMALL)) $(addsuffix .o,$(SMALL_FILES))): FOR_SIZE := -Os

$(BUILD)/target/%.o: %.c $(BUILD)/flags | needs
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TARGET_FLAGS) $(FOR_SIZE) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/target/%.o: %.S $(BUILD)/flags | needs
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TARGET_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tool/%.o: %.c $(BUILD)/flags | needs $(GEN_HEADERS)
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TOOL_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(GEN)/%.pb-c.c $(GEN)/%.pb-c.h: %.proto | needs
	@mkdir -p $(GEN)
	$(call say,protoc-c,$<)protoc-c --c_out=$(GEN) $<

# A C string of that name with a file's text.
define as_string
	@mkdir -p $(@D)
	@{ echo 'extern const char $(1)[];'; echo 'const char $(1)[] ='; \
		sed 's/["\\]/\\&/g; s/.*/"&\\n"/' $<; echo ';'; } >$@
endef
$(GEN)/default_suppressions.c: tools/memory/leaks/rules/default.suppressions
	$(call as_string,torsh_default_suppressions)
$(GEN)/torch_script.c: collectors/torch/torch_script.py
	$(call as_string,torsh_torch_script)

$(BUILD)/target/torch_script.o: $(GEN)/torch_script.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TARGET_FLAGS) $(CFLAGS) -c -o $@ $<

.SECONDARY: $(GEN_SOURCES) $(GEN_HEADERS)

$(GEN)/%.o: $(GEN)/%.c $(BUILD)/flags
	$(call say,cc,$<)$(CC) -std=c11 $(OPTIMISE) -I$(GEN) $(SANITIZE_FLAGS) -c -o $@ $<

$(BUILD)/jemalloc/libtorshjemalloc.a: $(JEMALLOC_ARCHIVE) shim/libc/glibc.def Makefile | needs
	@rm -rf $(@D) && mkdir -p $(@D)
	@nm -g --defined-only $< 2>/dev/null | awk 'NF == 3 { print $$3 }' | sort -u | \
		grep -vE '^(je_|_Z|DW\.ref\.)' | sed 's/.*/& $(JEMALLOC_PREFIX)&/' >$(@D)/names
	@nm -u $< 2>/dev/null | awk 'NF == 2 { print $$2 }' | sort -u | \
		grep -xF $(addprefix -e ,$(JEMALLOC_IMPORTS) $(JEMALLOC_UNUSED)) | sed 's/\(secure_\)*\(.*\)/& $(JEMALLOC_PREFIX)\2/' >>$(@D)/names
	@sed -n 's/^VERSIONED(\(.*\), \(.*\))/\1 \1@GLIBC_$(if $(filter aarch64,$(ARCH)),2.17,\2)/p' shim/libc/glibc.def | \
		grep -vE '^($(subst $() ,|,$(strip $(JEMALLOC_IMPORTS) $(JEMALLOC_UNUSED)))) ' >>$(@D)/names
	@cp $< $(@D)/archive.a
	@ar t $(@D)/archive.a | grep cpp | xargs -r ar d $(@D)/archive.a
	$(call say,objcopy,$@)objcopy --redefine-syms=$(@D)/names \
		--remove-section=.init_array --remove-section=.rela.init_array $(@D)/archive.a $@
	@rm $(@D)/archive.a

$(AGENT): $(TARGET_OBJECTS) $(JEMALLOC) $(wildcard $(EXPORTS_MAP))
	$(call say,link,$@)$(CC) -shared -o $@ $(TARGET_OBJECTS) $(JEMALLOC) -Wl,-soname,libtorshagent.so -Wl,-z,now -Wl,-z,defs \
		-Wl,-z,nodelete -Wl,--exclude-libs,ALL -Wl,--as-needed \
		$(if $(wildcard $(EXPORTS_MAP)),-Wl$(comma)--version-script=$(EXPORTS_MAP)) $(JEMALLOC_LINK) \
		$(GLIBC_LINK)
	@$(if $(JEMALLOC),,echo "note: no libjemalloc_pic.a here: the agent was built without its private jemalloc" >&2)
comma := ,

$(TOOL_LIB): $(TOOL_OBJECTS) $(GEN_OBJECTS)
	@rm -f $@
	$(call say,ar,$@)ar rcs $@ $^

$(TOOL_BINARIES): $(BUILD)/%: $(BUILD)/tool/tools/%.o $(TOOL_LIB)
	$(call say,link,$@)$(CC) $(SANITIZE_FLAGS) -o $@ $< $(TOOL_LIB) $(TOOL_LIBS)

$(BUILD)/torsh-mpi: $(MPI_MAIN) $(TOOL_LIB) $(BUILD)/flags
	$(call say,mpicc,$<)$(MPICC) $(TOOL_CFLAGS) $(CFLAGS) -o $@ $< $(TOOL_LIB) $(TOOL_LIBS)

include tools/export/html/html.mk
include tools/man/man.mk
include tools/package/package.mk
include test/test.mk

# ---- packages -----------------------------------------------------------------------------------------------------

deps: ## install the Debian or Ubuntu packages that building and testing need and that are missing
	.ci/deps build test

deps-bench:
	.ci/deps build bench

# ---- the rest -----------------------------------------------------------------------------------------------------

clean: ## remove what was built; the environments build/*venv* stay
	@if [ -d $(BUILD) ]; then \
		find $(BUILD) -mindepth 1 -maxdepth 1 ! -name '*venv*' -exec rm -rf {} +; fi

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@echo "Variables: CC, BUILD, PREFIX, DESTDIR, DIST, T=name of a test, J=tests at a time, NEEDS, TORCH, FUZZ_SECONDS, SANITIZE, PYTHON, STRICT=1, V=1."

-include $(TARGET_OBJECTS:.o=.d) $(TOOL_OBJECTS:.o=.d) $(TOOL_BINARIES:$(BUILD)/%=$(BUILD)/tool/tools/%.d)
