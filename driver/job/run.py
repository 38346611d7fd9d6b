#!/usr/bin/env python3
"""Runs the program beside this file on every process of a cluster, by JAX alone.

  run.py [--data FILE] [--steps N] [--checkpoints DIR] [--every N] [--metrics FILE] [--out DIR] [--profile DIR]
         [--coordinator HOST:PORT --processes N --process I] [--devices N | --cpu-devices N] [--heartbeat SECONDS]

program.mlir is StableHLO with Shardy shardings, a step of training where the program trains; job.json says what its
parameters and results are. Started once per process (srun, a JobSet, mpirun, ssh), with the same arguments everywhere:
jax.distributed finds the others by itself on SLURM, GKE, MPI and TPU pods, and by the flags elsewhere.

  --data         what the program is trained on, in place of the file that it names itself. A .npz or .safetensors file, or
                 a folder of .npy files, has one array per input with batches on a leading axis. A stream of tokens, which
                 is a .bin file of integers or one array "tokens" of one axis, is cut into windows: the input tokens is
                 some of them, targets the same one token later. Every process reads its own rows. Without data inputs
                 are made from the seed, as ppc run makes them.
  --checkpoints  a folder that all processes see. The newest whole checkpoint in it is where training goes on, also on
                 another mesh; --every N steps, at the end and on SIGTERM one is written.
  --metrics      process 0 appends a JSON line per step to FILE; - is standard output, the default.
  --out          the results of the last step, each as a file of its elements, in a folder that all processes see.
  --heartbeat    how long a process may be silent until the others end with an error.

Needs jax and numpy; orbax-checkpoint with --checkpoints.
"""
import argparse
import functools
import hashlib
import json
import math
import os
import runpy
import signal
import struct
import sys
import time
import zipfile

here = os.path.dirname(os.path.abspath(__file__))


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data")
    p.add_argument("--steps", type=int)
    p.add_argument("--checkpoints")
    p.add_argument("--every", type=int, default=0)
    p.add_argument("--metrics", default="-")
    p.add_argument("--out")
    p.add_argument("--profile")
    p.add_argument("--coordinator")
    p.add_argument("--processes", type=int)
    p.add_argument("--process", type=int)
    p.add_argument("--devices", type=int, help="devices of this process, where several processes share a host; without accelerators, of the CPU")
    p.add_argument("--cpu-devices", type=int, help="devices of this process on the CPU, for a try without accelerators")
    p.add_argument("--heartbeat", type=int, default=30)
    return p.parse_args()


args = arguments()
if args.cpu_devices:
    os.environ["JAX_PLATFORMS"] = "cpu"
if args.cpu_devices or args.devices:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={args.cpu_devices or args.devices}"

import jax
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

job = json.load(open(os.path.join(here, "job.json")))


def connect():
    """Joins the other processes, where there are any."""
    if args.cpu_devices or args.devices:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    known = dict(heartbeat_timeout_seconds=args.heartbeat, shutdown_timeout_seconds=max(args.heartbeat, 60))
    if args.coordinator:
        if args.devices:
            known["local_device_ids"] = list(range(args.process * args.devices, (args.process + 1) * args.devices))
        jax.distributed.initialize(args.coordinator, args.processes, args.process, **known)
    elif args.processes != 1 and any(v in os.environ for v in ("SLURM_JOB_ID", "OMPI_COMM_WORLD_SIZE", "JOB_COMPLETION_INDEX", "TPU_WORKER_HOSTNAMES", "MEGASCALE_COORDINATOR_ADDRESS")):
        n, local = (os.environ.get("SLURM_NTASKS"), os.environ.get("SLURM_LOCALID")) if "SLURM_JOB_ID" in os.environ else (os.environ.get("OMPI_COMM_WORLD_SIZE"), os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK"))
        if n and local and int(n) <= job["devices"]:  # JAX would give each process one device
            each = job["devices"] // int(n)
            known["local_device_ids"] = list(range(int(local) * each, (int(local) + 1) * each))
        jax.distributed.initialize(**known)


# Random numbers, as ppc run makes them: number i of a stream is threefry2x32 of i under a key of seed and name.


def threefry(k0, k1, i):
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    keys = [np.uint32(k0), np.uint32(k1), np.uint32(0x1BD11BDA ^ k0 ^ k1)]
    x0 = (i >> np.uint64(32)).astype(np.uint32) + keys[0]
    x1 = i.astype(np.uint32) + keys[1]
    for r in range(5):
        for n in rotations[r % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(n)) | (x1 >> np.uint32(32 - n))) ^ x0
        x0 = x0 + keys[(r + 1) % 3]
        x1 = x1 + keys[(r + 2) % 3] + np.uint32(r + 1)
    return x0.astype(np.uint64) << np.uint64(32) | x1.astype(np.uint64)


def bits(name, i):
    h = hashlib.sha256(int(job["seed"]).to_bytes(8, "little") + name.encode()).digest()
    with np.errstate(over="ignore"):
        return threefry(int.from_bytes(h[:4], "little"), int.from_bytes(h[4:8], "little"), i.astype(np.uint64))


def uniform(name, i):
    return ((bits(name, i) >> np.uint64(12)).astype(np.float64) + 0.5) / 2.0**52


def quantile(u):
    """The inverse of the standard normal distribution: algorithm AS 241 of Wichura, to 1e-16."""
    q = u - 0.5
    near = np.abs(q) <= 0.425
    a = (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3)
    b = (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3)
    c = (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4)
    d = (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9)
    e = (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7)
    f = (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15)
    poly = lambda p, x: sum(k * x**n for n, k in enumerate(p))
    r = 0.180625 - q * q
    mid = q * poly(a, r) / poly(b, r)
    r = np.sqrt(-np.log(np.where(near, 0.5, np.minimum(u, 1 - u))))
    tail = np.where(r <= 5, poly(c, r - 1.6) / poly(d, r - 1.6), poly(e, r - 5) / poly(f, r - 5))
    return np.where(near, mid, np.where(q < 0, -tail, tail))


def initial(init, name, i):
    word, _, rest = init.partition("(")
    x = [float(v) for v in rest.rstrip(")").split(",")] if rest else []
    if word in ("zeros", "ones", "constant"):
        return np.full(i.shape, {"zeros": 0.0, "ones": 1.0}.get(word, x[0] if x else 0.0))
    return x[0] * quantile(uniform(name, i)) if word == "normal" else x[0] + (x[1] - x[0]) * uniform(name, i)


def sample(p, name, i):
    if np.issubdtype(dtype(p), np.integer) or dtype(p) == bool:
        limit = p["max"] if p.get("max", 0) > 0 and dtype(p) != bool else 2
        b = bits(name, i)
        low = (b & np.uint64(0xFFFFFFFF)) * np.uint64(limit) >> np.uint64(32)
        return ((b >> np.uint64(32)) * np.uint64(limit) + low) >> np.uint64(32)
    return quantile(uniform(name, i))


def dtype(p):
    return jax.numpy.dtype(p["dtype"])


# Arrays, made shard by shard: no process holds more than its own.


def places(shape, index):
    """The flat places of the elements of a slice."""
    strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
    flat = np.zeros((), np.uint64)
    for d, s in enumerate(index):
        n = np.arange(*s.indices(shape[d]), dtype=np.uint64) * np.uint64(strides[d])
        flat = flat[..., None] + n
    return flat


def make(p, of):
    """The array of port p whose elements at flat places of gives."""
    shape = tuple(p["shape"])
    one = lambda index: np.asarray(of(places(shape, index))).astype(dtype(p))
    return jax.make_array_from_callback(shape, sharding(p), one)


def sharding(p):
    return NamedSharding(mesh, PartitionSpec(*[tuple(axes) or None for axes in p["spec"]]))


def begin(p):
    """The first value of a parameter."""
    if p["kind"] == "step":
        return make(p, lambda i: np.zeros(i.shape))
    if p["file"]:
        whole = np.memmap(os.path.join(here, p["file"]), dtype(p), "r")
        return make(p, lambda i: whole[i.astype(np.int64)])
    first, held = np.uint64(p["first"]), np.uint64(p["held"])
    of = lambda i: initial(p["init"] or "zeros", p["name"], i + first)
    return make(p, lambda i: np.where(i < held, of(np.minimum(i, held - np.uint64(1))), 0))


# Data. Arrays are mapped into memory: what is read is the rows that are looked at.


def arrays_of(path):
    """The arrays of a file or a folder, by name."""
    if os.path.isdir(path):
        return {f[:-4]: np.load(os.path.join(path, f), mmap_mode="r") for f in sorted(os.listdir(path)) if f.endswith(".npy")}
    if path.endswith(".bin"):
        width = next((t for s, t in (("u8", "<u1"), ("u16", "<u2"), ("u32", "<u4"), ("i32", "<i4")) if path.endswith(f".{s}.bin")), "<u2")
        return {"tokens": np.memmap(path, width, "r")}
    return safetensors(path) if path.endswith(".safetensors") else npz(path)


def npz(path):
    out = {}
    with zipfile.ZipFile(path) as z, open(path, "rb") as f:
        for info in z.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                out[info.filename[:-4]] = np.load(path)[info.filename[:-4]]
                continue
            f.seek(info.header_offset + 26)
            f.seek(info.header_offset + 30 + sum(struct.unpack("<HH", f.read(4))))
            read = np.lib.format.read_array_header_1_0 if np.lib.format.read_magic(f) == (1, 0) else np.lib.format.read_array_header_2_0
            shape, columns, kind = read(f)
            out[info.filename[:-4]] = np.memmap(path, kind, "r", f.tell(), shape, "F" if columns else "C")
    return out


def safetensors(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(n))
    kinds = {"BOOL": "bool", "BF16": "bfloat16"}
    name = lambda t: kinds.get(t) or {"U": "uint", "I": "int", "F": "float"}[t[0]] + t[1:]
    return {k: np.memmap(path, jax.numpy.dtype(name(v["dtype"])), "r", 8 + n + v["data_offsets"][0], tuple(v["shape"])) for k, v in header.items() if k != "__metadata__"}


def batches():
    """How to get batch n of an input: from the data, or from the seed."""
    path = args.data or job["data"]
    if not path:
        return lambda p, n: lambda i: sample(p, p["name"] if n == 0 else f"{p['name']}@{n}", i)
    if path.endswith(".py"):
        data = runpy.run_path(path).get("data")
        if not hasattr(data, "__getitem__"):
            sys.exit(f"run.py: {path}: data is {type(data).__name__}, want examples by number: data[i] is a dict")
        get = functools.lru_cache(maxsize=1 << 12)(data.__getitem__)  # an example is read once for all its inputs
        return lambda p, n: examples(p, n, path, get)
    arrays = arrays_of(path)
    if "tokens" in arrays and arrays["tokens"].ndim == 1:
        return lambda p, n: windows(p, n, path, arrays["tokens"])

    def batch(p, n):
        a = arrays.get(p["name"])
        if a is None or n >= a.shape[0]:
            sys.exit(f"run.py: {path}: {p['name']} has {0 if a is None else a.shape[0]} batches, step {step + 1} takes number {n + 1}")
        flat = a[n].reshape(-1)
        return lambda i: flat[i.astype(np.int64)]

    return batch


def examples(p, n, path, get):
    """Batch n of an input from examples by number, of which a process asks for its own rows only."""
    rows, *row = p["shape"] if p["batches"] == 1 else p["shape"][1:]
    size = math.prod(row)

    def of(i):
        out, of_row = np.zeros(i.shape, dtype(p)), (i // np.uint64(size)).astype(np.int64)
        for k in np.unique(of_row):
            number = n * rows + int(k)
            try:
                x = np.asarray(get(number)[p["name"]])
            except (IndexError, KeyError) as e:
                sys.exit(f"run.py: {path}: example {number} has no {p['name']}: {type(e).__name__}: {e}")
            if x.shape != tuple(row):
                sys.exit(f"run.py: {path}: {p['name']} of example {number} is {list(x.shape)}, want {row}")
            here = of_row == k
            out[here] = x.reshape(-1)[(i[here] % np.uint64(size)).astype(np.int64)]
            if p["max"] and (out[here] >= p["max"]).any():
                sys.exit(f"run.py: {path}: {p['name']} of example {number} has {out[here].max()}, the program takes 0 to {p['max'] - 1}")
        return out

    return of


def windows(p, n, path, stream):
    """Batch n of an input from a stream of tokens. Every epoch takes all windows once, in an order of its own."""
    later = {"tokens": 0, "targets": 1}.get(p["name"])
    if later is None:
        sys.exit(f"run.py: {path}: a stream of tokens has tokens and targets, no {p['name']}")
    shape = p["shape"] if p["batches"] == 1 else p["shape"][1:]
    length, rows = shape[-1], math.prod(shape[:-1])
    count = (len(stream) - 1) // length
    if count < 1:
        sys.exit(f"run.py: {path}: {len(stream)} tokens, a window takes {length + 1}")

    def of(i):
        number = n * rows + (i // np.uint64(length)).astype(np.int64)
        at = np.zeros(number.shape, np.int64)
        for epoch in np.unique(number // count):
            here = number // count == epoch
            at[here] = shuffled(f"order@{epoch}", number[here] % count, count)
        out = stream[at * length + (i % np.uint64(length)).astype(np.int64) + later]
        if p["max"] and (out >= p["max"]).any():
            sys.exit(f"run.py: {path}: token {out.max()}, the program takes 0 to {p['max'] - 1}")
        return out

    return of


def shuffled(name, i, n):
    """Where each i below n goes in a permutation: a network of four rounds, gone through again from where that is n or more."""
    half = max(1, (n - 1).bit_length() + 1 >> 1)
    low = np.uint64((1 << half) - 1)
    x, todo = i.astype(np.uint64), np.ones(i.shape, bool)
    while todo.any():
        left, right = x[todo] >> np.uint64(half), x[todo] & low
        for r in range(4):
            left, right = right, left ^ bits(name, np.uint64(r << 32) | right) & low
        x[todo] = left << np.uint64(half) | right
        todo = x >= n
    return x.astype(np.int64)


def feed(p, n, get):
    """Input p of step n, counted from 0: its accumulated batches on a leading axis where there are several."""
    if p["batches"] == 1:
        return make(p, get(p, n))
    each = math.prod(p["shape"][1:])

    def of(i):
        which = i // np.uint64(each)
        out = np.zeros(i.shape)
        for k in np.unique(which):
            at = which == k
            out[at] = np.asarray(get(p, n * p["batches"] + int(k))(i[at] % np.uint64(each)))
        return out

    return make(p, of)


def program():
    """The step as a function of its parameters, compiled for all devices by jax.jit."""
    from jax._src.interpreters import mlir  # the one thing that jax.export has no name for: text to its portable form
    from jax._src.lib import xla_client

    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(open(os.path.join(here, "program.mlir")).read())
        code = mlir.module_to_bytecode(module)
    aval = lambda p: jax.core.ShapedArray(tuple(p["shape"]), dtype(p))
    ins, outs = tuple(aval(p) for p in job["params"]), tuple(aval(p) for p in job["results"])
    tree = lambda xs: jax.tree.structure(xs)
    known = dict(
        fun_name=job["name"], in_tree=tree(((0,) * len(ins), {})), in_avals=ins, out_tree=tree((0,) * len(outs)), out_avals=outs,
        _has_named_shardings=True, _in_named_shardings=(None,) * len(ins), _out_named_shardings=(None,) * len(outs),
        in_shardings_hlo=(None,) * len(ins), out_shardings_hlo=(None,) * len(outs), nr_devices=job["devices"],
        platforms=(jax.devices()[0].platform,), ordered_effects=(), unordered_effects=(), disabled_safety_checks=(),
        mlir_module_serialized=xla_client._xla.mlir.serialize_portable_artifact(code, version()), calling_convention_version=export.maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(range(len(ins))), uses_global_constants=False, _get_vjp=None)
    import dataclasses

    exported = export.Exported(**{f.name: known[f.name] for f in dataclasses.fields(export.Exported)})
    donated = tuple(r["alias"] for r in job["results"] if r["alias"] >= 0)
    return jax.jit(lambda *xs: exported.call(*xs), donate_argnums=donated,
                   in_shardings=tuple(map(sharding, job["params"])), out_shardings=tuple(map(sharding, job["results"])))


def version():
    from jaxlib.mlir.dialects import stablehlo

    return stablehlo.get_version_from_compatibility_requirement(stablehlo.StablehloCompatibilityRequirement.WEEK_4)


def near(v, shape):
    """A sharding like that of v for its elements in another shape: layers may be [repeats, stages, layers of a stage] of other numbers."""
    if v.shape == shape:
        return v.sharding
    spec = [axes and ((axes,) if isinstance(axes, str) else tuple(axes)) for axes in v.sharding.spec]
    spec += [None] * (v.ndim - len(spec))
    same = 0
    while same < min(v.ndim, len(shape)) and v.shape[-1 - same] == shape[-1 - same]:
        same += 1
    head, tail = [axes for axes in spec[: v.ndim - same] if axes], spec[v.ndim - same:]
    out = []
    for size in shape[: len(shape) - same]:
        fits = next((axes for axes in head if size % math.prod(mesh.shape[a] for a in axes) == 0), None)
        if fits:
            head.remove(fits)
        out.append(fits)
    return NamedSharding(mesh, PartitionSpec(*out, *tail))


def shaped(x, v):
    """The elements of x with the shape and the sharding of v."""
    return x if x.shape == v.shape else jax.jit(lambda x: x.reshape(v.shape), out_shardings=v.sharding)(x)


class Checkpoints:
    """State in a folder that all processes see, written by orbax behind the next steps."""

    def __init__(self, folder):
        self.manager, self.folder = None, folder
        if folder:
            import orbax.checkpoint as ocp

            self.ocp = ocp
            self.manager = ocp.CheckpointManager(os.path.abspath(folder), item_handlers=ocp.StandardCheckpointHandler(), options=ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=True))

    def restore(self, state):
        """The newest checkpoint, and its step: arrays have the shapes and shardings of state, whatever mesh they were saved from. State and 0 where there is none."""
        if not self.manager or self.manager.latest_step() is None:
            return state, 0
        n = self.manager.latest_step()
        saved = self.manager.item_metadata(n)
        for k, v in state.items():
            if k not in saved or math.prod(saved[k].shape) != v.size:
                sys.exit(f"run.py: {self.folder}: the checkpoint of step {n} has {'no ' + k if k not in saved else f'{k} with {math.prod(saved[k].shape)} elements, want {v.size}'}: it is of another program")
        like = {k: jax.ShapeDtypeStruct(saved[k].shape, v.dtype, sharding=near(v, saved[k].shape)) for k, v in state.items()}
        got = self.manager.restore(n, args=self.ocp.args.StandardRestore(like))
        return {k: shaped(got[k], v) for k, v in state.items()}, n

    def save(self, n, state, wait=False):
        if self.manager and self.manager.latest_step() != n:
            self.manager.save(n, args=self.ocp.args.StandardSave(state))
        if self.manager and wait:
            self.manager.wait_until_finished()


stopping = False


def stop(*_):
    global stopping
    stopping = True


def agreed(flag):
    """Whether some process says so: all do the same then."""
    if jax.process_count() == 1:
        return flag
    from jax.experimental import multihost_utils

    return bool(multihost_utils.process_allgather(np.array(flag)).any())


def scalar(v):
    x = np.asarray(v.addressable_data(0)).item()
    return x if not isinstance(x, float) or math.isfinite(x) else str(x)


def write(folder, results):
    """Each result in a file of its elements, of which every process writes those that it has."""
    for n, (p, v) in enumerate(zip(job["results"], results)):
        path, shape = os.path.join(folder, f"out{n}.bin"), tuple(p["shape"]) or (1,)
        if not math.prod(shape):
            continue
        with open(path, "ab") as f:
            f.truncate(math.prod(shape) * dtype(p).itemsize)
        whole = np.memmap(path, dtype(p), "r+", 0, shape)
        for s in v.addressable_shards:
            if s.replica_id == 0:
                whole[s.index or ...] = np.asarray(s.data)
        whole.flush()


def main():
    global mesh, step
    connect()
    sizes = [n for _, n in job["mesh"]]
    if jax.device_count() != job["devices"]:
        sys.exit(f"run.py: the program is for {job['devices']} devices, {jax.process_count()} processes have {jax.device_count()}")
    devices = np.array(jax.devices())[job["order"] or slice(None)]  # over slices, in the order that the mesh says
    mesh = Mesh(devices.reshape(sizes), [name for name, _ in job["mesh"]])
    signal.signal(signal.SIGTERM, stop)
    run, get, checkpoints = program(), batches(), Checkpoints(args.checkpoints)
    params = job["params"]
    fixed = {i: begin(p) for i, p in enumerate(params) if p["kind"] == "input" and p["file"]}
    name = lambda p: p["name"] + (f"@{p['first']}" if p["first"] else "")
    names = {i: name(p) for i, p in enumerate(params) if p["kind"] not in ("input", "step")}
    state, restored = checkpoints.restore({k: begin(params[i]) for i, k in names.items()})
    steps = args.steps if args.steps is not None else job["steps"]
    out = sys.stdout if args.metrics == "-" else open(args.metrics, "a") if jax.process_index() == 0 else None
    if args.profile:
        jax.profiler.start_trace(args.profile)
    last, results = max(restored, job["first"]), None
    for step in range(last, job["first"] + max(steps, 1)):
        began, worked = time.time(), time.process_time()
        xs = [state[names[i]] if i in names else fixed[i] if i in fixed else make(p, lambda i: np.full(i.shape, step)) if p["kind"] == "step" else feed(p, step, get) for i, p in enumerate(params)]
        results = run(*xs)
        line = {"step": step + 1}
        for r, v in zip(job["results"], results):
            if r["alias"] >= 0:
                state[names[r["alias"]]] = v
            elif not r["shape"] and r["dtype"][:7] != "complex":
                line[r["name"]] = scalar(v)
        jax.block_until_ready(results)  # on every device
        line["s"], line["cpu_s"] = round(time.time() - began, 4), round(time.process_time() - worked, 4)
        if jax.process_index() == 0:
            print(json.dumps(line), file=out, flush=True)
        last = step + 1
        halt = agreed(stopping)
        if halt or args.every and last % args.every == 0:
            checkpoints.save(last, state, wait=halt)
        if halt:
            break
    checkpoints.save(last, state, wait=True)
    if args.out and results:
        write(args.out, results)
    if args.profile:
        jax.profiler.stop_trace()


step = 0
try:
    main()
except Exception as e:
    if jax.process_count() == 1:
        raise
    # The others cannot go on without this process, nor this one without them: it ends at once, not when all have come.
    print(f"run.py: process {jax.process_index()} of {jax.process_count()} ends in step {step + 1}: {type(e).__name__}: {e}", file=sys.stderr)
    print("run.py: where another process has died, that is why; start all of them again, and they go on from the newest checkpoint", file=sys.stderr, flush=True)
    os._exit(1)
