#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""wrappers.py LIBRARY OUT HEADER...: writes OUT.h and OUT.c, the entry points of a simulated
library.

Each entry point makes a struct sim_call or queries for a fault, and calls do_NAME if the library's
sources define it; if none does, it counts the call and returns the library's "not supported". So what is exported never depends on what is
simulated. Names come from the public headers:
 - driver, runtime: from the parameter structs of CUPTI's callbacks (generated_*_meta.h), with the callback ids;
 - cupti, cublas, cublaslt, nccl: from the prototypes;
and names that PyTorch imports but no header declares from torch_imports.txt (see imports.py).
"""

import pathlib
import re
import sys

from behaviour import Behaviours
from driver_forms import driver_forms

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = "test/simcuda/engine/call.h"


class Library:
    def __init__(self, status, unsupported, headers, declares="", imports=""):
        self.status, self.unsupported, self.headers = status, unsupported, headers
        self.declares, self.imports = declares, imports
        self.status_prefix = unsupported.removesuffix("NOT_SUPPORTED")


LIBRARIES = {
    "driver": Library("CUresult", "CUDA_ERROR_NOT_SUPPORTED", ["generated_cuda_meta.h", "cupti_driver_cbid.h"],
                      imports="libcuda.so.1"),
    "runtime": Library("cudaError_t", "cudaErrorNotSupported",
                       ["generated_cuda_runtime_api_meta.h", "cupti_runtime_cbid.h"], imports="libcudart.so"),
    "cupti": Library("CUptiResult", "CUPTI_ERROR_NOT_SUPPORTED", ["cupti.h"], "CUPTIAPI", "libcupti.so"),
    "cublas": Library("cublasStatus_t", "CUBLAS_STATUS_NOT_SUPPORTED", ["cublas_v2.h"], "CUBLASWINAPI", "libcublas.so"),
    "cublaslt": Library("cublasStatus_t", "CUBLAS_STATUS_NOT_SUPPORTED", ["cublasLt.h"], "CUBLASWINAPI",
                        "libcublasLt.so"),
    "cudnn": Library("cudnnStatus_t", "CUDNN_STATUS_NOT_SUPPORTED", ["cudnn.h", "cudnn_backend.h"], "CUDNNWINAPI",
                     "libcudnn.so"),
    "cufft": Library("cufftResult", "CUFFT_NOT_SUPPORTED", ["cufft.h", "cufftXt.h"], "CUFFTAPI", "libcufft.so"),
    "cusolver": Library("cusolverStatus_t", "CUSOLVER_STATUS_NOT_SUPPORTED", ["cusolverDn.h"], "CUSOLVERAPI",
                        "libcusolver.so"),
    "cusparse": Library("cusparseStatus_t", "CUSPARSE_STATUS_NOT_SUPPORTED", ["cusparse.h"], "CUSPARSEAPI",
                        "libcusparse.so"),
    "nvrtc": Library("nvrtcResult", "NVRTC_ERROR_INTERNAL_ERROR", ["nvrtc.h"], "", "libnvrtc.so"),
    "nccl": Library("ncclResult_t", "ncclInvalidUsage", ["nccl.h"], "", "libnccl.so.2"),
}

# Written by hand where they are defined: they return no status.
WITHOUT_STATUS = {"cublasGetStatusName", "cublasGetStatusString", "cublasLtGetVersion", "cublasLtGetCudartVersion",
                  "cublasLtGetStatusName", "cublasLtGetStatusString", "cudnnGetVersion", "cudnnGetCudartVersion",
                  "cudnnGetMaxDeviceVersion", "cudnnGetErrorString", "cudnnGetLastErrorString", "cusparseGetErrorName",
                  "cusparseGetErrorString", "nvrtcGetErrorString", "ncclGetErrorString", "ncclGetLastError",
                  "cudaGetErrorName", "cudaGetErrorString", "cudaCreateChannelDesc"}
# Launches, with the kernel's name in their callbacks from their entry on: the function that finds
# it.
LAUNCHES = {**dict.fromkeys(("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel"), "sim_function_name(f)"),
            **dict.fromkeys(("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel"),
                            "rt_function_name(func)")}
# What nvcc's code calls: in no public header, written by hand in runtime/registration.c.
COMPILED = "__cuda"
# These give the last error back instead of being one.
WITHOUT_ERROR = {"cudaGetLastError", "cudaPeekAtLastError"}


# Their struct is missing, or differs from the prototype, in one toolkit or another.
UNUSUAL = {"cudaGetExportTable", "cudaGraphMemFreeNodeGetParams", "cuGetExportTable", "cudaSetDoubleForDevice",
           "cudaSetDoubleForHost", "cudaThreadGetCacheConfig", "cudaThreadGetLimit", "cudaThreadSetCacheConfig",
           "cudaThreadSetLimit"}


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"//[^\n]*", " ", text)


def split_parameters(text):
    """(declaration, name) of each, or None where one has no name."""
    text = " ".join(text.split())
    if text in ("", "void"):
        return []
    parameters = []
    for declaration in text.split(","):
        name = re.search(r"(\w+)\s*(\[[^\]]*\])*\s*$", declaration)
        if not name or not re.search(r"[\s*]\w+\s*(\[[^\]]*\])*\s*$", declaration.strip()):
            return None
        parameters.append((declaration.strip(), name[1]))
    return parameters


def read_structs(text):
    """{struct's name: [(declaration, name)]} of a meta header; functions without parameters have no struct there."""
    found = {}
    for fields, name in re.findall(r"typedef struct \w+_params_st \{(.*?)\} (\w+)_params;", text, flags=re.S):
        found[name] = split_parameters(",".join(part for part in fields.split(";") if part.strip()))
    return found


def read_callback_ids(text):
    return {name: number for name, number in re.findall(r"CUPTI_\w+_TRACE_CBID_((?:cu|__cu)\w+)\s*=\s*(\d+)", text)}


def symbol_of(name):
    """cudaMemcpyAsync_ptsz_v7000 is cudaMemcpyAsync_ptsz; the driver's suffixes _v2 stay."""
    return re.sub(r"_v\d{4,5}$", "", name)


def base_of(symbol):
    return re.sub(r"_(ptsz|ptds)$", "", symbol)


def read_functions(library, texts):
    """(symbol, traced name, parameters, cbid) of a library with calls that CUPTI traces."""
    structs = read_structs(texts)
    ids = read_callback_ids(texts)
    functions = {}
    for name in sorted(set(structs) | set(ids), key=lambda n: (n not in structs, -int(ids.get(n, 0)))):
        if name.endswith(("INVALID", "SIZE", "FORCE_INT")):
            continue
        symbol = symbol_of(name) if library == "runtime" else name
        parameters = structs.get(name)
        if symbol in functions or symbol in WITHOUT_STATUS | UNUSUAL or symbol.startswith(COMPILED) or symbol.startswith(("cuGL", "cudaGL", "cuVDPAU", "cudaVDPAU",
                                                                 "cuEGL", "cudaEGL", "cuGraphicsGL", "cuD3D", "cudaD3D")):
            continue
        functions[symbol] = (name, parameters, ids.get(name, "0"))
    return functions


def argument_list(parameters):
    return ", ".join(declaration for declaration, _ in parameters) or "void"


def write_traced(library, kind, functions):
    domain = {"driver": "SIM_DOMAIN_DRIVER", "runtime": "SIM_DOMAIN_RUNTIME"}[kind]
    header, source = [], []
    declared = set()
    for symbol, (name, parameters, cbid) in sorted(functions.items()):
        base = base_of(symbol)
        if parameters is not None and base not in declared and base in functions and functions[base][1] is not None:
            declared.add(base)
            header += [f"typedef {functions[base][0]}_params {base}_p;", f"#define HAS_{base} 1",
                       f"__attribute__((weak)) {library.status} do_{base}(const {base}_p *p);"]
        elif base not in declared and parameters is None and base == symbol:
            declared.add(base)
            header += [f"#define HAS_{base} 1", f"__attribute__((weak)) {library.status} do_{base}(void);"]
    for symbol, (name, parameters, cbid) in sorted(functions.items()):
        base = base_of(symbol)
        is_per_thread = "true" if base != symbol else "false"
        known = base in functions
        values = ", ".join(field for _, field in parameters or [])
        source += [
            f"#undef {symbol}",
            f"static struct sim_api api_{symbol} = {{ .name = \"{symbol}\", .cbid = {cbid}, .domain = {domain},",
            f"\t.unsupported = {library.unsupported} }};",
            f"EXPORT {library.status} {symbol}({argument_list(parameters or [])})",
            "{",
            f"\t{name}_params params = {{ {values} }};" if parameters else "",
            f"\tstruct sim_call call = {{ .api = &api_{symbol}, .is_per_thread = {is_per_thread}"
            + (", .params = &params };" if parameters else " };"),
            f"\tcall.symbol = {LAUNCHES[base]};" if base in LAUNCHES else "",
            "\tif (sim_call_enter(&call))",
        ]
        argument = f"(const {base}_p *)&params" if parameters else ""
        if known and (functions[base][1] is None) == (parameters is None):
            source.append(f"\t\tcall.result = do_{base} ? (int)do_{base}({argument}) : sim_call_unsupported(&api_{symbol});")
        else:
            source.append(f"\t\tcall.result = sim_call_unsupported(&api_{symbol});")
        leave = "rt_call_exit" if kind == "runtime" and symbol not in WITHOUT_ERROR else "sim_call_exit"
        source += [f"\treturn ({library.status}){leave}(&call);", "}", ""]
    return header, [line for line in source if line != ""] + table_of(functions)


def table_of(functions):
    """Every entry point by its name, sorted: what cuGetProcAddress and dlsym-like calls look up."""
    lines = ["const struct sim_symbol sim_symbols[] = {"]
    lines += [f"\t{{ \"{symbol}\", (void *){symbol} }}," for symbol in sorted(functions)]
    return lines + ["};", "const unsigned sim_n_symbols = sizeof(sim_symbols) / sizeof(sim_symbols[0]);"]


def forms_table(forms):
    """What looking up a plain name finds, by the requested version of CUDA."""
    lines = ["const struct sim_form sim_forms[] = {"]
    lines += [f"\t{{ \"{name}\", {version}, \"{symbol}\" }}," for name, version, symbol in sorted(forms)]
    return lines + ["};", "const unsigned sim_n_forms = sizeof(sim_forms) / sizeof(sim_forms[0]);"]


def callback_names(folders):
    """The names of callback ids by their number, for cuptiGetCallbackName."""
    lines = []
    for domain in ("driver", "runtime"):
        ids = read_callback_ids(headers_below(folders, [f"cupti_{domain}_cbid.h"]))
        numbers = {int(number): name for name, number in ids.items()}
        lines.append(f"const char *const sim_{domain}_names[] = {{")
        lines += [f"\t[{number}] = \"{name}\"," for number, name in sorted(numbers.items())]
        lines += ["};", f"const unsigned sim_n_{domain}_names = sizeof(sim_{domain}_names) / sizeof(char *);"]
    return lines


def result_names(folders):
    """The names of CUPTI's results by their number, for cuptiGetResultString."""
    text = without_comments(headers_below(folders, ["cupti_result.h"]))
    found = re.findall(r"\b(CUPTI_(?:SUCCESS|ERROR_\w+))\s*=\s*(\d+)\b", text)
    return ["const char *const sim_result_names[] = {", *(f"\t[{number}] = \"{name}\"," for name, number in found), "};",
            "const unsigned sim_n_result_names = sizeof(sim_result_names) / sizeof(char *);"]


def read_prototypes(library, texts):
    attribute = library.declares + r"\s+" if library.declares else ""
    found = {}
    for name, parameters in re.findall(rf"{library.status}\s+{attribute}(\w+)\s*\(([^;{{]*?)\)\s*;", texts):
        # Half precision by value is C++; what is experimental isn't declared.
        if name not in WITHOUT_STATUS and not name.startswith("pnccl") and not re.search("__half|__nv_bf|SpMVOp", parameters):
            found[name] = split_parameters(parameters)
    return found


def write_plain(library, prototypes, behaviours):
    header, source = [], []
    for name, parameters in sorted(prototypes.items()):
        if parameters is None:
            continue
        values = ", ".join(field for _, field in parameters)
        body = behaviours.body_of(name, parameters)
        if body is None:
            header += [f"#define HAS_{name} 1",
                       f"__attribute__((weak)) {library.status} do_{name}({argument_list(parameters)});"]
            body = [f"if (do_{name})", f"\treturn do_{name}({values});",
                    f"return ({library.status})sim_call_unsupported(&api_{name});"]
        else:
            body.append(f"return ({library.status})0;")
        source += [
            f"#undef {name}",
            f"static struct sim_api api_{name} = {{ .name = \"{name}\", .unsupported = {library.unsupported} }};",
            f"EXPORT {library.status} {name}({argument_list(parameters)})",
            "{",
            "\tint sim_code;",
            f"\tif (sim_fault_is_due(&api_{name}, &sim_code))",
            f"\t\treturn ({library.status})sim_code;",
            *(f"\t{line}" for line in body),
            "}",
        ]
    return header, source


def imported_names(library, folders):
    """What PyTorch needs of CUDA 13; an older toolkit has what its headers have."""
    names = []
    if int(re.search(r"#define\s+CUDA_VERSION\s+(\d+)", headers_below(folders, ["cuda.h"]))[1]) < 13000:
        return names
    for line in (HERE / "torch_imports.txt").read_text().splitlines():
        owner, _, rest = line.partition(": ")
        if owner == library.imports:
            names += rest.split()
    return names


def write_stubs(library, names):
    """Names without a prototype: their arguments don't matter."""
    source = []
    for name in names:
        source += [
            f"static struct sim_api api_{name} = {{ .name = \"{name}\", .unsupported = {library.unsupported} }};",
            f"EXPORT {library.status} {name}(void)",
            "{",
            "\tint sim_code;",
            f"\treturn ({library.status})(sim_fault_is_due(&api_{name}, &sim_code) ? sim_code : "
            f"sim_call_unsupported(&api_{name}));",
            "}",
        ]
    return source


def headers_below(folders, names):
    """The texts of the headers that declare the library, also of those that the first ones include beside them."""
    texts = []
    for name in names:
        for folder in folders:
            if (folder / name).exists():
                texts.append((folder / name).read_text(errors="replace"))
                break
        else:
            raise SystemExit(f"wrappers.py: there is no {name} in {' '.join(map(str, folders))}")
    return "\n".join(texts)


PARTS = {
    "cupti": ["cupti_result.h", "cupti_version.h", "cupti_activity.h", "cupti_callbacks.h", "cupti_events.h", "cupti_metrics.h"],
    "cublas": ["cublas_api.h"],
}
# Counters: older toolkits lack these, or have them in C++ alone.
COUNTERS = ["cupti_target.h", "cupti_profiler_target.h", "cupti_profiler_host.h", "cupti_range_profiler.h", "cupti_pmsampling.h"]


# cuDNN's parts; each of its versions has some of them.
CUDNN_PARTS = [f"cudnn_{part}.h" for part in ("graph", "backend", "ops", "ops_infer", "ops_train", "cnn", "cnn_infer",
                                              "cnn_train", "adv", "adv_infer", "adv_train")]


def add_counters(library, folders):
    texts = [(folder / name).read_text(errors="replace") for name in COUNTERS for folder in folders if (folder / name).exists()]
    if len(texts) == len(COUNTERS) and not any("#include <string>" in text for text in texts):
        PARTS["cupti"] += COUNTERS
        library.headers += COUNTERS


def main():
    kind, out, *folders = sys.argv[1:]
    library = LIBRARIES[kind]
    folders = [pathlib.Path(folder) for folder in folders]
    if kind == "cupti":
        add_counters(library, folders)
    if kind == "cudnn":
        PARTS[kind] = [part for part in CUDNN_PARTS if any((folder / part).exists() for folder in folders)]
    texts = without_comments(headers_below(folders, PARTS.get(kind, library.headers)))
    is_traced = kind in ("driver", "runtime")
    behaviours = Behaviours(library, HERE.parent / kind / "functions.txt")
    if is_traced:
        known = read_functions(kind, texts)
        header, source = write_traced(library, kind, known)
        if kind == "driver":
            source += forms_table(driver_forms(folders))
            header += ["struct sim_form {", "\tconst char *name;", "\tint version;", "\tconst char *symbol;", "};",
                       "extern const struct sim_form sim_forms[];", "extern const unsigned sim_n_forms;"]
    else:
        known = {name: p for name, p in read_prototypes(library, texts).items() if p is not None}
        header, source = write_plain(library, known, behaviours)
        if kind == "cupti":
            source += callback_names(folders) + result_names(folders)
    missing = [name for name in imported_names(library, folders) if name not in known and name not in WITHOUT_STATUS
               and not name.startswith(COMPILED)]
    guard = f"SIMCUDA_GENERATED_{kind.upper()}_H"
    begin = ["// SPDX-License-Identifier: Apache-2.0 OR MIT", "/* Written by gen/wrappers.py. */"]
    includes = [f"#include <{name}>" for name in library.headers]
    symbol = "struct sim_symbol {\n\tconst char *name;\n\tvoid *address;\n};\n" \
             "extern const struct sim_symbol sim_symbols[];\nextern const unsigned sim_n_symbols;"
    text = [*begin, f"#ifndef {guard}", f"#define {guard}", *includes, symbol if is_traced else "", *header, "#endif"]
    pathlib.Path(out + ".h").write_text("\n".join(text) + "\n")
    text = [*begin, f"#include \"{pathlib.Path(out).name}.h\"", f"#include \"{INCLUDE}\"",
            "#include \"test/simcuda/engine/function.h\"",
            *(["#include \"test/simcuda/blas/object.h\""] if behaviours.lines else []),
            *(["#include \"test/simcuda/runtime/error.h\"", "const char *rt_function_name(const void *function);"]
              if kind == "runtime" else []), "#define EXPORT __attribute__((visibility(\"default\")))", *source, *write_stubs(library, missing)]
    pathlib.Path(out + ".c").write_text("\n".join(text) + "\n")


main()
