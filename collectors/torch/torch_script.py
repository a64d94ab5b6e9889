# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Run by collectors/torch/torch_python.c inside the program's own interpreter, in a namespace of its own, when torch's
# extension module is about to be loaded, or when a process that has loaded it is armed. It may not import anything, print,
# or raise into the program. Functions that it
# calls and does not define are the agent's: observe, begin, expect, fitted, finish, begin_groups, take_group,
# finish_groups, add_group, report_group, report_attribute, label, push, pop, note, wants_modules.

import sys


def when_imported(spec, then):
    """
    Call then() when the module is complete: the import system marks its spec then, on the importing thread, before the
    import statement returns. Creating torch's tensors earlier would crash.
    """
    own_class = type(spec)

    class Watched(own_class):
        @property
        def _initializing(self):
            return True

        @_initializing.setter
        def _initializing(self, value):
            self.__class__ = own_class
            self._initializing = value
            then()

    spec.__class__ = Watched


def look_at_torch():
    torch = sys.modules.get("torch")
    if torch is None or not observe():
        return
    try:
        report_attributes(torch)
    except Exception as error:
        note("torch: its version is unknown: " + repr(error)[:200])
    try:
        calibrate(torch)
        watch_groups(sys.modules.get("torch.distributed.distributed_c10d"))
        if wants_modules():
            name_modules(torch)
    except Exception as error:
        note("torch: modules and inputs of operators are unknown: " + repr(error)[:200])


def report_attributes(torch):
    cuda = getattr(torch.version, "cuda", None)
    for name, value in (("torch_version", torch.__version__), ("torch_cuda_version", cuda), ("inductor_cache", inductor_cache()),
                        ("torch_alloc_conf", allocator_settings())):
        if value:
            report_attribute(name + "\n" + str(value))


def allocator_settings():
    """Those of the caching allocator, by today's name of the variable or its older ones; None: none are set."""
    environment = sys.modules["os"].environ
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
    return next((environment[name] for name in names if environment.get(name)), None)


def inductor_cache():
    """The directory of torch.compile's code, by Inductor's rules (torch/_inductor/runtime/cache_dir_utils.py); None: unknown."""
    os = sys.modules["os"]
    environment = os.environ
    chosen = environment.get("TORCHINDUCTOR_CACHE_DIR")
    users = [environment.get(name) for name in ("LOGNAME", "USER", "LNAME", "USERNAME")]
    user = next((user for user in users if user), None)
    if user is None and "pwd" in sys.modules:
        try:
            user = sys.modules["pwd"].getpwuid(os.getuid())[0]
        except KeyError:
            pass
    if chosen:
        return os.path.abspath(chosen)
    if user is None:
        return None
    return (environment.get("TMPDIR") or "/tmp") + "/torchinductor_" + "".join("_" if c in '\\/:*?"<>|' else c for c in user)


# ---- layouts: see shim/torch/torch_calibration.def ----

def run(step, operator, *arguments, **named):
    if not expect(step):
        return False
    try:
        operator(*arguments, **named)
    except Exception:
        pass
    return fitted()


def calibrate(torch):
    if not begin():
        return
    try:
        run_shapes(torch) and run_rest(torch)
    finally:
        is_known = finish()
    if not is_known:
        note("torch: operators have names and times only: their inputs were not found where they were looked for")


def open_scope(torch):
    with torch.autograd.profiler.record_function("torsh"):
        pass


def backward_of(operator, tracked, plain):
    """The node alone: autograd's engine starts threads, after which a fork that runs backward is refused."""
    operator(tracked, plain).grad_fn(plain)


def run_shapes(torch):
    zeros, mul = torch.zeros, torch.mul
    turned, many = zeros(3, 5).t(), zeros(1, 2, 1, 3, 1, 4)
    return (run("inputs", mul, zeros(3, 5), zeros(1, 5)) and run("inputs again", mul, zeros(2, 4, 6), zeros(4, 1))
            and run("strides", mul, turned, turned) and run("many dimensions", mul, many, many))


def run_rest(torch):
    zeros, mul = torch.zeros, torch.mul
    plain = zeros(3, 5)
    for name in ("uint8", "int64", "float32", "float64", "bool"):
        tensor = zeros(3, 5, dtype=getattr(torch, name))
        run(name, mul, tensor, tensor)
    # Host tensors only: operators of others may be written in Python, which imports half of torch. Enough of them that the
    # memory after a tensor, which alternates with that of freed tensors, differs each time.
    kept = []
    for sizes in ((3, 5), (1,), (2, 4, 6), (3, 5), (1, 1), (7, 2), (1,), (3, 5)):
        kept.append(zeros(*sizes))
        run("cpu", mul, kept[-1], kept[-1])
        kept = kept[-2:]
    # Broadcast, so that one call has two of different bytes.
    run("storage", mul, zeros(7, 13), zeros(17, 1, 1))
    run("storage again", mul, zeros(53, 1), zeros(29))
    tracked = zeros(3, 5, requires_grad=True)
    run("sequence", mul, tracked, plain)
    run("sequence again", mul, tracked, plain)
    run("no forward thread", mul, tracked, plain)
    run("no forward thread of a scope", open_scope, torch)
    run("forward thread", backward_of, mul, tracked, plain)
    run("no forward thread again", torch.add, tracked, plain)
    run("forward thread again", backward_of, torch.add, tracked, plain)
    # aten's functions: before 2.4 torch's own import a hidden numpy module to read a number.
    aten = torch.ops.aten
    run("integer", aten.add, plain, plain, alpha=3)
    run("double", aten.add, plain, plain, alpha=0.5)
    run("list", aten.sum, zeros(2, 4, 6), [2, 0], True)
    run("list again", aten.sum, zeros(2, 4, 6), [2, 0], False)
    run("tensors", torch.cat, [plain, zeros(3, 5)])


# ---- process groups ----

def watch_groups(c10d):
    """Every way to make a process group ends with its ranks in a dictionary of c10d's."""
    if not isinstance(getattr(c10d, "_pg_group_ranks", None), dict):
        return

    class Watched(dict):
        def __setitem__(self, group, ranks):
            dict.__setitem__(self, group, ranks)
            try:
                report(c10d, group, sorted(ranks))
            except Exception as error:
                note("torch: a process group is unknown: " + repr(error)[:200])

    c10d._pg_group_ranks = Watched(c10d._pg_group_ranks)


def report(c10d, group, ranks):
    if begin_groups():
        calibrate_groups(c10d, sys.modules["torch"])
    number = add_group(group)
    is_world = group is getattr(getattr(c10d, "GroupMember", None), "WORLD", None)
    if not number and not is_world:  # the default group also names the rank
        return
    names = getattr(c10d._world, "pg_names", {}).get(group, ""), getattr(group, "group_desc", "")
    backend = getattr(c10d._world, "pg_map", {}).get(group, ("",))[0]
    shown = ranks if len(ranks) <= MOST_RANKS else ranks[:MOST_RANKS] + ["..."]
    report_group("\n".join([str(count) for count in (len(ranks), number, group.rank() + 1, int(is_world))]
                         + [one_line(text) for text in (*names, backend)] + [",".join(map(str, shown))]))


MOST_RANKS = 64


def one_line(text):
    return " ".join(str(text).split())


def calibrate_groups(c10d, torch):
    """Groups without a backend: c10d reports the operator, then raises, and nothing is sent."""
    groups = [c10d.ProcessGroup(0, 1), c10d.ProcessGroup(0, 1)]
    tensors = [torch.zeros(3, 5)]
    try:
        for step, group in zip(("group", "group again"), groups):
            take_group(group)
            run(step, group.allreduce, tensors)
    finally:
        is_known = finish_groups()
    if not is_known:
        note("torch: process groups of collectives are unknown: torch has none in the expected place")


# ---- names of modules ----

def name_modules(torch):
    modules = torch.nn.modules.module
    names, references = {}, {}
    reference = sys.modules["weakref"].ref
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)

    def add_name(module):
        """Add labels for a new module, which becomes a root, and for all modules below it."""
        root = type(module).__name__
        for path, part in module.named_modules(prefix=root):
            key = id(part)
            names[key] = label(path + ":" + type(part).__name__)
            references[key] = reference(part, lambda _, key=key: (names.pop(key, None), references.pop(key, None)))
        return names.get(id(module)) or label(root + ":" + root)

    def before(module, arguments):
        if not is_compiling():
            push(names.get(id(module)) or add_name(module))

    def after(module, arguments, result):
        if not is_compiling():
            pop()

    handles = [modules.register_module_forward_pre_hook(before)]
    try:
        handles.append(modules.register_module_forward_hook(after, always_call=True))
    except TypeError:  # torch 1: a module that raises stays open
        handles.append(modules.register_module_forward_hook(after))
    hide_hooks(modules, {handle.id for handle in handles})


def hide_hooks(modules, own):
    """torch.compile warns about hooks that also fire for its wrappers, which is harmless here: hide these from its check."""
    if not hasattr(modules, "_has_any_global_hook"):
        return
    tables = [table for name, table in vars(modules).items() if name.startswith("_global_") and isinstance(table, dict)]
    modules._has_any_global_hook = lambda: any(key not in own for table in tables for key in table)


spec_of_torch = sys.modules["torch"].__spec__
if getattr(spec_of_torch, "_initializing", True):
    when_imported(spec_of_torch, look_at_torch)
else:  # the process was dormant until now
    look_at_torch()
