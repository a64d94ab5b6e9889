# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The simulated CUDA libraries, built where CUDA's public headers are: those of PyPI's wheels in the environment below
# build/, or a toolkit's. Without them there is nothing to build, and the tests report that. Included by test/test.mk.

CUDA_INCLUDE ?= $(firstword $(dir $(wildcard $(BUILD)/venv/lib/python3*/site-packages/nvidia/cu*/include/cupti.h \
	build/venv/lib/python3*/site-packages/nvidia/cu*/include/cupti.h $(CUDA_HOME)/include/cupti.h $(CUDA_HOME)/extras/CUPTI/include/cupti.h /usr/local/cuda/include/cupti.h)))
NCCL_INCLUDE ?= $(firstword $(dir $(wildcard $(BUILD)/venv/lib/python3*/site-packages/nvidia/nccl/include/nccl.h \
	build/venv/lib/python3*/site-packages/nvidia/nccl/include/nccl.h \
	$(CUDA_INCLUDE)nccl.h /usr/include/nccl.h)))
CUDNN_INCLUDE ?= $(firstword $(dir $(wildcard $(BUILD)/venv/lib/python3*/site-packages/nvidia/cudnn/include/cudnn.h \
	build/venv/lib/python3*/site-packages/nvidia/cudnn/include/cudnn.h \
	$(CUDA_INCLUDE)cudnn.h /usr/include/cudnn.h)))

# Headers of the compiler (crt/), which the wheels of CUDA 13 lack: those of Triton's wheel, which PyTorch brings, unless others
# are there.
CUDA_CRT ?= $(if $(wildcard $(CUDA_INCLUDE)crt/host_defines.h),,$(firstword $(wildcard \
	$(foreach venv,$(BUILD)/venv build/venv,$(venv)/lib/python3*/site-packages/triton/backends/nvidia/include/))))
CUDA_CRT_FLAGS := $(CUDA_CRT:%=-idirafter %)

# Those of CUDA 12, one folder for each of its packages: of a PyTorch of that time (make test TORCH=2.3.1), or by themselves,
# without cuBLAS's (test/python/environment cuda12).
cuda12_include = $(firstword $(dir $(wildcard build/venv-*/lib/python3*/site-packages/nvidia/$(1)/include/$(2) \
	build/cuda12-venv/lib/python3*/site-packages/nvidia/$(1)/include/$(2))))
CUDA12_INCLUDE ?= $(and $(CUDA_INCLUDE),$(call cuda12_include,cuda_cupti,cupti.h),$(call cuda12_include,cuda_runtime,cuda.h) \
	$(call cuda12_include,cuda_cupti,cupti.h))
# What cuBLAS's headers include. A toolkit's, where there is one, has it too.
CCCL12_INCLUDE ?= $(patsubst %/nv/,%/,$(call cuda12_include,cuda_cccl,nv/target))
CUBLAS12_INCLUDE ?= $(if $(CUDA12_INCLUDE),$(call cuda12_include,cublas,cublas_v2.h))
CUDNN12_INCLUDE ?= $(if $(CUBLAS12_INCLUDE),$(call cuda12_include,cudnn,cudnn.h))
CUFFT12_INCLUDE ?= $(if $(CUBLAS12_INCLUDE),$(call cuda12_include,cufft,cufft.h))
NVRTC12_INCLUDE ?= $(if $(CUBLAS12_INCLUDE),$(call cuda12_include,cuda_nvrtc,nvrtc.h))
CUSOLVER12_INCLUDE ?= $(if $(CUBLAS12_INCLUDE),$(call cuda12_include,cusolver,cusolverDn.h) $(call cuda12_include,cusparse,cusparse.h))

SIMCUDA := $(BUILD)/simcuda
SIMCUDA_GEN := $(BUILD)/gen/simcuda
SIMCUDA_LIB := $(SIMCUDA)/lib
simcuda_sources = $(foreach folder,$(1),$(sort $(wildcard test/simcuda/$(folder)/*.c)))
simcuda_objects = $(patsubst %.c,$(SIMCUDA)/%.o,$(call simcuda_sources,$(1)))

# Everything but what needs no header of CUDA's. What has no toolkit's version in its name is made with CUDA_INCLUDE, which
# stands for the driver's; the rest is made for each toolkit, with its headers.
SIMCUDA_FLAGS = -std=gnu11 $(COMMON) $(SANITIZE_FLAGS) -fPIC -fvisibility=hidden -Wno-deprecated-declarations -Wno-unused-parameter \
	$(CUDA_CRT_FLAGS) -MMD -MP
SIMCUDA_INCLUDES := $(CUDA_INCLUDE) $(NCCL_INCLUDE)
SIMCUDA_INCLUDES_13 := $(CUDA_INCLUDE) $(CUDNN_INCLUDE)
SIMCUDA_INCLUDES_12 := $(CUDA12_INCLUDE) $(CUBLAS12_INCLUDE) $(CUDNN12_INCLUDE) $(CUFFT12_INCLUDE) $(CUSOLVER12_INCLUDE) \
	$(NVRTC12_INCLUDE) $(CCCL12_INCLUDE)
SIMCUDA_TOOLKITS := $(if $(CUDA_INCLUDE),13) $(if $(CUDA12_INCLUDE),12)

SIMCUDA_ENGINE := $(call simcuda_objects,engine engine/log engine/memory)
SIMCUDA_MATH_12 := $(if $(CUBLAS12_INCLUDE),libcublas.so.12 libcublasLt.so.12) $(if $(CUDNN12_INCLUDE),libcudnn.so.8) \
	$(if $(CUFFT12_INCLUDE),libcufft.so.11) $(if $(CUSOLVER12_INCLUDE),libcusolver.so.11) \
	$(if $(NVRTC12_INCLUDE),libnvrtc.so.12)
cuda13_has = $(if $(wildcard $(CUDA_INCLUDE)$(1)),$(2))
SIMCUDA_MATH_13 := libcublas.so.13 libcublasLt.so.13 $(call cuda13_has,cufftXt.h,libcufft.so.12) \
	$(call cuda13_has,cusolverDn.h,libcusolver.so.12) $(call cuda13_has,cusparse.h,libcusparse.so.12) \
	$(call cuda13_has,nvrtc.h,libnvrtc.so.13) $(if $(CUDNN_INCLUDE),libcudnn.so.9)
SIMCUDA_LIBRARIES := libcuda.so.1 libnvidia-ml.so.1 libnccl.so.2 libcudart.so.13 libcupti.so.13 $(SIMCUDA_MATH_13) \
	$(if $(CUDA12_INCLUDE),libcudart.so.12 libcupti.so.12) $(SIMCUDA_MATH_12)
SIMCUDA_GENERATORS := $(wildcard test/simcuda/gen/*)

$(SIMCUDA)/test/simcuda/engine/%.o: test/simcuda/engine/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 $(COMMON) $(SANITIZE_FLAGS) -fPIC -MMD -MP -c -o $@ $<

$(SIMCUDA_GEN)/%_api.c $(SIMCUDA_GEN)/%_api.h: $(SIMCUDA_GENERATORS)
	@mkdir -p $(@D)
	$(call say,generate,$@)$(PYTHON) test/simcuda/gen/wrappers.py $* $(SIMCUDA_GEN)/$*_api $(SIMCUDA_INCLUDES)

# The old forms of the driver's functions are declared for it alone.
$(SIMCUDA)/gen/driver_api.o $(call simcuda_objects,driver): SIMCUDA_FLAGS += -D__CUDA_API_VERSION_INTERNAL

$(SIMCUDA)/gen/%.o: $(SIMCUDA_GEN)/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(SIMCUDA_FLAGS) -I$(SIMCUDA_GEN) $(SIMCUDA_INCLUDES:%=-isystem %) -O1 -c -o $@ $<

$(SIMCUDA)/test/simcuda/%.o: test/simcuda/%.c $(BUILD)/flags $(SIMCUDA_GEN)/driver_api.h $(SIMCUDA_GEN)/nccl_api.h
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(SIMCUDA_FLAGS) -I$(SIMCUDA_GEN) $(SIMCUDA_INCLUDES:%=-isystem %) -c -o $@ $<

$(SIMCUDA_LIB)/libsimcuda.so: $(SIMCUDA_ENGINE)
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) -shared $(SANITIZE_FLAGS) -o $@ $^ -Wl,-soname,libsimcuda.so -Wl,-z,defs -pthread

# The vendor's libraries carry their symbols under a version of their name, but for the driver, NVML and NCCL.
$(SIMCUDA)/%.map:
	@mkdir -p $(@D)
	@echo '$* { global: *; };' >$@

# As the vendor's do, each finds its own functions, whatever stands before them. They stay when a program closes them: the
# log has the calls of each at the end.
simcuda_versioned = $(filter-out libcuda.% libnvidia-ml.% libnccl.%,$(1))
define simcuda_link
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) -shared $(SANITIZE_FLAGS) -o $@ $(filter %.o,$^) -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-z,nodelete -Wl,-Bsymbolic -Wl,-rpath,'$$ORIGIN' \
		$(if $(call simcuda_versioned,$(@F)),-Wl$(comma)--version-script=$(SIMCUDA)/$(@F).map) \
		$(filter %.so %.so.1,$^) -ldl -pthread
endef

$(SIMCUDA_LIB)/libcuda.so.1: $(call simcuda_objects,driver) $(SIMCUDA)/gen/driver_api.o $(SIMCUDA_LIB)/libsimcuda.so
	$(simcuda_link)
$(SIMCUDA_LIB)/libnvidia-ml.so.1: $(call simcuda_objects,nvml) $(SIMCUDA_LIB)/libsimcuda.so
	$(simcuda_link)
# As drivers before 2021 have it: without the third form of the lists of processes.
SIMCUDA_OLD_NVML := $(SIMCUDA)/old_nvml/libnvidia-ml.so.1
$(SIMCUDA_OLD_NVML): test/simcuda/nvml/nvml.c $(SIMCUDA_LIB)/libsimcuda.so
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) $(SIMCUDA_FLAGS) -DSIM_NVML_OLD -shared -o $@ $< -Wl,-soname,$(@F) -Wl,-z,nodelete \
		-Wl,-rpath,'$$ORIGIN/../lib' $(SIMCUDA_LIB)/libsimcuda.so
$(SIMCUDA_LIB)/libnccl.so.2: $(call simcuda_objects,nccl blas) $(SIMCUDA)/gen/nccl_api.o $(SIMCUDA_LIB)/libcuda.so.1 \
		$(SIMCUDA_LIB)/libsimcuda.so
	$(simcuda_link)

# libcublasLt.so.13 is made from cublaslt.
simcuda_part = $(subst cublasLt,cublaslt,$(patsubst lib%,%,$(firstword $(subst .so, ,$(1)))))

# The libraries of a toolkit: $(1) is its version.
simcuda_toolkit_objects = $(patsubst %.c,$(SIMCUDA)/$(1)/%.o,$(call simcuda_sources,$(2)))
define simcuda_toolkit
SIMCUDA_HEADERS_$(1) := $$(patsubst %,$$(SIMCUDA_GEN)/$(1)/%.h,runtime_api cupti_api driver_calls \
	$$(foreach library,$$(SIMCUDA_MATH_$(1)),$$(call simcuda_part,$$(library))_api))

$$(SIMCUDA_GEN)/$(1)/%_api.c $$(SIMCUDA_GEN)/$(1)/%_api.h: $$(SIMCUDA_GENERATORS)
	@mkdir -p $$(@D)
	$$(call say,generate,$$@)$$(PYTHON) test/simcuda/gen/wrappers.py $$* $$(SIMCUDA_GEN)/$(1)/$$*_api $$(SIMCUDA_INCLUDES_$(1))

$$(SIMCUDA_GEN)/$(1)/driver_calls.h: test/simcuda/runtime/driver_calls.def $$(SIMCUDA_GENERATORS)
	@mkdir -p $$(@D)
	$$(call say,generate,$$@)$$(PYTHON) test/simcuda/gen/driver_forms.py $$< $$@ $$(SIMCUDA_INCLUDES_$(1))

$$(SIMCUDA_GEN)/$(1)/forward.c: test/simcuda/gen/forwards.py test/simcuda/runtime/forward.def
	@mkdir -p $$(@D)
	$$(call say,generate,$$@)$$(PYTHON) $$^ $$@

$$(SIMCUDA)/$(1)/gen/%.o: $$(SIMCUDA_GEN)/$(1)/%.c $$(BUILD)/flags $$(SIMCUDA_HEADERS_$(1))
	@mkdir -p $$(@D)
	$$(call say,cc,$$<)$$(CC) $$(SIMCUDA_FLAGS) -I$$(SIMCUDA_GEN)/$(1) $$(SIMCUDA_INCLUDES_$(1):%=-isystem %) -O1 -c -o $$@ $$<

$$(SIMCUDA)/$(1)/test/simcuda/%.o: test/simcuda/%.c $$(BUILD)/flags $$(SIMCUDA_HEADERS_$(1))
	@mkdir -p $$(@D)
	$$(call say,cc,$$<:$(1))$$(CC) $$(SIMCUDA_FLAGS) -I$$(SIMCUDA_GEN)/$(1) $$(SIMCUDA_INCLUDES_$(1):%=-isystem %) -c -o $$@ $$<

$$(SIMCUDA_LIB)/libcudart.so.$(1): $$(call simcuda_toolkit_objects,$(1),runtime) $$(SIMCUDA)/$(1)/gen/runtime_api.o \
		$$(SIMCUDA)/$(1)/gen/forward.o $$(SIMCUDA_LIB)/libsimcuda.so $$(SIMCUDA)/libcudart.so.$(1).map
	$$(simcuda_link)
$$(SIMCUDA_LIB)/libcupti.so.$(1): $$(call simcuda_toolkit_objects,$(1),cupti) $$(SIMCUDA)/$(1)/gen/cupti_api.o \
		$$(SIMCUDA_LIB)/libsimcuda.so $$(SIMCUDA)/libcupti.so.$(1).map
	$$(simcuda_link)
.SECONDARY: $$(foreach part,runtime cupti $$(foreach library,$$(SIMCUDA_MATH_$(1)),$$(call simcuda_part,$$(library))), \
	$$(SIMCUDA_GEN)/$(1)/$$(part)_api.c $$(SIMCUDA_GEN)/$(1)/$$(part)_api.h)
endef
$(foreach toolkit,$(SIMCUDA_TOOLKITS),$(eval $(call simcuda_toolkit,$(toolkit))))

# Those that compute: $(1) is the toolkit, $(2) the library. What each does lies in the folder of its name.
define simcuda_math
$$(SIMCUDA_LIB)/$(2): $$(call simcuda_toolkit_objects,$(1),$$(call simcuda_part,$(2))) \
		$$(SIMCUDA)/$(1)/gen/$$(call simcuda_part,$(2))_api.o $$(call simcuda_objects,blas) $$(SIMCUDA_LIB)/libcuda.so.1 \
		$$(SIMCUDA_LIB)/libsimcuda.so $$(SIMCUDA)/$(2).map
	$$(simcuda_link)
endef
$(foreach toolkit,$(SIMCUDA_TOOLKITS),$(foreach library,$(SIMCUDA_MATH_$(toolkit)),$(eval $(call simcuda_math,$(toolkit),$(library)))))

# Loaded by the linker itself: never sanitised.
$(SIMCUDA_LIB)/libsimcuda_audit.so: test/simcuda/audit/audit.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,link,$@)$(CC) -std=gnu11 $(COMMON) -fPIC -shared -o $@ $< -ldl

# What nvcc compiles, where it is: for the vendor's own libraries, which are not loaded.
NVCC ?= $(if $(CUDA_INCLUDE),$(shell command -v nvcc))
SIMCUDA_PROGRAMS := $(if $(NVCC),$(patsubst test/simcuda/programs/%.cu,$(SIMCUDA)/programs/%,$(wildcard test/simcuda/programs/*.cu)))
$(SIMCUDA)/programs/%: test/simcuda/programs/%.cu
	@mkdir -p $(@D)
	$(call say,nvcc,$<)$(NVCC) -cudart shared -o $@ $<

# What any compiler makes, with the headers: linked with the simulation, or with what is in its place.
SIMCUDA_C_PROGRAMS := $(patsubst test/simcuda/programs/%.c,$(SIMCUDA)/programs/%,$(wildcard test/simcuda/programs/*.c))
$(SIMCUDA)/programs/%: test/simcuda/programs/%.c $(SIMCUDA_LIB)/libcuda.so.1 $(SIMCUDA_LIB)/libcudart.so.13 $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=gnu11 $(COMMON) $(CUDA_INCLUDE:%=-isystem %) $(CUDA_CRT_FLAGS) -o $@ $< $(filter %.so.1 %.so.13,$^) $(SIMCUDA_LIB)/libsimcuda.so -pthread

# The same, and the rules of CUPTI, with CUDA 12's headers and libraries.
SIMCUDA_12_PROGRAMS := $(if $(CUDA12_INCLUDE),$(addprefix $(SIMCUDA)/programs/12/,memory toolkit) \
	$(patsubst test/gpu/%.c,$(SIMCUDA)/programs/12/%,$(wildcard test/gpu/*.c)))
define simcuda_12_program
	@mkdir -p $(@D)
	$(call say,cc,$<:12)$(CC) -std=gnu11 $(COMMON) $(CUDA12_INCLUDE:%=-isystem %) $(CUDA_CRT_FLAGS) -o $@ $< $(filter %.so.1 %.so.12,$^) \
		$(SIMCUDA_LIB)/libsimcuda.so -lcmocka -ldl -pthread -Wl,--as-needed -Wl,--enable-new-dtags,-rpath,$(abspath $(SIMCUDA_LIB))
endef
$(SIMCUDA)/programs/12/%: test/simcuda/programs/%.c $(SIMCUDA_LIB)/libcuda.so.1 $(SIMCUDA_LIB)/libcudart.so.12 $(BUILD)/flags
	$(simcuda_12_program)
$(SIMCUDA)/programs/12/%: test/gpu/%.c $(SIMCUDA_LIB)/libcuda.so.1 $(SIMCUDA_LIB)/libcudart.so.12 $(SIMCUDA_LIB)/libcupti.so.12 $(BUILD)/flags
	$(simcuda_12_program)

ifneq ($(CUDA_INCLUDE),)
simcuda: $(SIMCUDA_LIBRARIES:%=$(SIMCUDA_LIB)/%) $(SIMCUDA_OLD_NVML) $(SIMCUDA_LIB)/libsimcuda_audit.so $(SIMCUDA_PROGRAMS) $(SIMCUDA_C_PROGRAMS) \
	$(SIMCUDA_12_PROGRAMS) ## build the simulated CUDA libraries (test/simcuda/README.md)
else
simcuda:
	@echo "note: no CUDA headers here (PyPI's wheels below build/venv, or CUDA_HOME): no simulated CUDA" >&2
endif
.PHONY: simcuda
.SECONDARY: $(SIMCUDA_GEN)/driver_api.c $(SIMCUDA_GEN)/driver_api.h $(SIMCUDA_GEN)/nccl_api.c $(SIMCUDA_GEN)/nccl_api.h
-include $(wildcard $(SIMCUDA)/*/*.d $(SIMCUDA)/*/*/*.d $(SIMCUDA)/*/*/*/*.d $(SIMCUDA)/*/*/*/*/*.d)

# Tests of the engine link it alone.
$(filter $(TEST)/unit/simcuda/simcuda_%,$(UNIT_TESTS)): $(TEST)/unit/%: test/unit/%.c $(SIMCUDA_ENGINE) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TEST_FLAGS) -o $@ $< $(SIMCUDA_ENGINE) -lcmocka -pthread

# Those of CUPTI link the simulated libraries, as any client does; LD_LIBRARY_PATH leads to others.
simcupti_libraries := $(if $(CUDA_INCLUDE),$(SIMCUDA_LIBRARIES:%=$(SIMCUDA_LIB)/%))
define link_with_simcupti
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(TEST_FLAGS) $(CUDA_INCLUDE:%=-isystem %) $(CUDA_CRT_FLAGS) -o $@ $< -lcmocka -pthread -ldl $(if $(CUDA_INCLUDE), \
		$(SIMCUDA_LIB)/libcuda.so.1 $(SIMCUDA_LIB)/libcupti.so.13 $(1) \
		-Wl$(comma)--enable-new-dtags$(comma)-rpath$(comma)$(abspath $(SIMCUDA_LIB)))
endef
$(filter $(TEST)/unit/simcuda/simcupti_%,$(UNIT_TESTS)): $(TEST)/unit/%: test/unit/%.c $(BUILD)/flags $(simcupti_libraries)
	$(call link_with_simcupti,$(SIMCUDA_LIB)/libsimcuda.so)
$(DEVICE_TESTS): $(TEST)/gpu/%: test/gpu/%.c $(BUILD)/flags $(simcupti_libraries)
	$(call link_with_simcupti)
