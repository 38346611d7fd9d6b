#!/usr/bin/env python3
"""Compiles a program with XLA:CPU and, if asked, runs it and compares the results.

  xlacheck.py PROGRAM [--args ARGS.npz] [--expect WANT.npz] [--rtol 1e-5] [--atol 1e-6] [--out GOT.npz]
              [--scale] [--quick] [--parse-only] [--global [--shards] [--gspmd]] [--time N] [--hlo-out FILE]
  xlacheck.py --batch FILE

PROGRAM   HLO text (starts with "HloModule") or StableHLO MLIR text. Its header says for how many devices it is:
          num_partitions=N or replica_count=N (HLO), mhlo.num_partitions / mhlo.num_replicas (MLIR).
          A program for N partitions is taken as already partitioned: shapes are per device. It is run as N replicas
          (channel ids dropped, partition-id read as replica-id), which is the same thing and needs no partitioner.
          HLO that holds fusions, async pairs or a schedule can be parsed and verified only (--parse-only).
          With --quick XLA makes machine code without LLVM's optimisations, in half the time; the HLO is the same.
          With --global the program is left as it is and XLA's own partitioner splits it (Shardy, or --gspmd).
ARGS      in0, in1, ...: per-device arguments stacked on a new first axis of size N (with N = 1: no extra axis).
          With --global: global values; with --global --shards: per-device, as the program's shardings cut them.
WANT      out0, out1, ... in the same form. A number agrees when |got - want| <= atol + rtol |want|; with --scale, atol is
          taken times the largest number of the output, as ppc run --check does.
FILE      One command line as above per line; all run in this process, which saves the start of JAX for each.

Prints one JSON object per program. Exit status 1 when a result differs, 2 when XLA rejects a program.
Needs: pip install jax numpy (JAX 0.11 or later, Python 3.12 or later).
"""
import argparse
import itertools
import json
import os
import re
import shlex
import sys
import time


def parser():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("program", nargs="?")
    ap.add_argument("--batch")
    ap.add_argument("--args")
    ap.add_argument("--expect")
    ap.add_argument("--out")
    ap.add_argument("--hlo-out")
    ap.add_argument("--rtol", type=float, default=1e-5)
    ap.add_argument("--atol", type=float, default=1e-6)
    ap.add_argument("--scale", action="store_true")
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("--parse-only", action="store_true")
    ap.add_argument("--time", type=int, default=0)
    ap.add_argument("--global", dest="glob", action="store_true")
    ap.add_argument("--shards", action="store_true")
    ap.add_argument("--gspmd", action="store_true")
    return ap


class Program:
    """The text of a program and what its header says."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        with open(path) as f:
            self.text = f.read()
        self.hlo = self.text.lstrip().startswith("HloModule")
        self.partitions = self.count("num_partitions")
        self.replicas = self.count("replica_count", "num_replicas")
        if self.partitions > 1 and self.replicas > 1:
            sys.exit("xlacheck: both partitions and replicas: not supported")
        self.devices = max(self.partitions, self.replicas)

    def count(self, *names):
        for name in names:
            m = re.search(name + r"\s*=\s*(\d+)", self.text)
            if m and int(m.group(1)) > 1:
                return int(m.group(1))
        return 1

    def as_replicas(self):
        """The text of a partitioned program as one of as many replicas."""
        text, n = self.text, self.devices
        if self.hlo:
            text = re.sub(r"num_partitions=\d+", f"replica_count={n}", text)
            text = re.sub(r",\s*channel_id=\d+", "", text)
            text = re.sub(r",\s*use_global_device_ids=true", "", text)
            return text.replace("partition-id(", "replica-id(")
        text = re.sub(r"(mhlo\.num_partitions\s*=\s*)\d+", r"\g<1>1", text)
        if "mhlo.num_replicas" in text:
            text = re.sub(r"(mhlo\.num_replicas\s*=\s*)\d+", rf"\g<1>{n}", text)
        else:
            text = text.replace("mhlo.num_partitions = 1", f"mhlo.num_replicas = {n} : i32, mhlo.num_partitions = 1", 1)
        text = re.sub(r"channel_handle\s*=\s*#stablehlo\.channel_handle<[^>]*>\s*,?\s*", "", text)
        text = re.sub(r",?\s*use_global_device_ids\b(?!\s*=\s*false)(\s*=\s*(true|unit))?", "", text)
        return text.replace("stablehlo.partition_id", "stablehlo.replica_id")


def compile_program(p, a, backend):
    """The executable of p, or None with --parse-only."""
    import numpy as np
    from jax._src import compiler

    text, grid = p.text, (1, p.devices) if p.partitions > 1 else (p.devices, 1)
    if p.partitions > 1 and not a.glob:
        text, grid = p.as_replicas(), (p.devices, 1)
    opt = compiler.get_compile_options(num_replicas=grid[0], num_partitions=grid[1],
                                       device_assignment=np.arange(p.devices).reshape(grid))
    if a.glob and a.gspmd:
        opt.executable_build_options.use_shardy_partitioner = False
    if a.quick:
        opt.executable_build_options.debug_options.xla_backend_optimization_level = 0
    if p.hlo:
        from jax._src.lib import hlo as xla_hlo, xla_client
        module = xla_hlo.hlo_module_from_text(text)  # parses and verifies
        if a.parse_only:
            return None
        text = xla_client._xla.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    elif a.parse_only:
        from jax._src.interpreters import mlir
        from jaxlib.mlir import ir
        with mlir.make_ir_context():
            ir.Module.parse(text).operation.verify()
        return None
    return backend.compile_and_load(text, backend.devices()[:p.devices], opt)


def global_shape(local, sharding, n):
    """The global shape whose shard is local, trying multiples along each dimension."""
    import numpy as np
    for mult in sorted(itertools.product(*[range(1, n + 1)] * len(local)), key=lambda m: -np.prod(m)):
        g = tuple(l * m for l, m in zip(local, mult))
        try:
            if sharding.shard_shape(g) == tuple(local):
                return g
        except ValueError:
            pass
    return tuple(local)


class Run:
    """An executable with its arguments on the devices."""

    def __init__(self, exe, p, a, devices):
        import jax
        import numpy as np
        self.exe, self.devices, self.n = exe, devices, p.devices
        self.whole = a.glob and not a.shards and p.devices > 1
        self.args = []
        z = np.load(a.args)
        mesh = jax.sharding.Mesh(np.array(devices), ("d",))
        shardings = exe.get_parameter_shardings() if self.whole else None
        while (key := f"in{len(self.args)}") in z:
            x = typed(z[key])
            if self.whole:
                from jax._src.sharding_impls import GSPMDSharding
                s = GSPMDSharding(devices, shardings[len(self.args)]) if shardings else jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
                self.args.append(jax.device_put(x, s))
                continue
            per = list(x) if self.n > 1 else [x]
            stacked = per[0].ndim > 0
            shape = (self.n * per[0].shape[0],) + per[0].shape[1:] if stacked else ()
            spec = jax.sharding.PartitionSpec("d") if stacked else jax.sharding.PartitionSpec()
            self.args.append(jax.make_array_from_single_device_arrays(
                shape, jax.sharding.NamedSharding(mesh, spec), [jax.device_put(v, d) for v, d in zip(per, devices)]))

    def __call__(self):
        import jax
        columns = self.exe.execute_sharded(self.args).disassemble_into_single_device_arrays()
        jax.block_until_ready(columns)
        return columns

    def results(self):
        import jax
        import numpy as np
        outs = []
        for k, column in enumerate(self()):
            if self.whole:
                from jax._src.sharding_impls import GSPMDSharding
                s = GSPMDSharding(self.devices, self.exe.get_output_shardings()[k])
                shape = global_shape(column[0].shape, s, self.n)
                outs.append(np.asarray(jax.make_array_from_single_device_arrays(shape, s, list(column))))
            else:
                outs.append(np.stack([np.asarray(c) for c in column]) if self.n > 1 else np.asarray(column[0]))
        return outs


def typed(x, dtype=None):
    """x, which NumPy has as raw bytes where it lacks the type: two bytes are a bfloat16 unless dtype says otherwise."""
    if x.dtype.kind != "V":
        return x
    import ml_dtypes
    return x.view(dtype or {2: ml_dtypes.bfloat16}[x.dtype.itemsize])


def wide(x):
    import numpy as np
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def differences(outs, want, rtol, atol, scale):
    """The largest difference of the outputs that agree, and the outputs that do not."""
    import numpy as np
    worst, bad = 0.0, []
    for k, got in enumerate(outs):
        w = typed(want[f"out{k}"], got.dtype)
        same, diff = got.shape == w.shape, None
        got, w = wide(got), wide(w)
        if same:
            with np.errstate(invalid="ignore"):
                diff = float(np.nanmax(np.abs(got - w), initial=0))
        unit = float(np.max(np.abs(w[np.isfinite(w)]), initial=0)) if scale else 1
        if same and np.allclose(got, w, rtol=rtol, atol=atol * unit, equal_nan=True):
            worst = max(worst, diff)
        else:
            bad.append({"output": k, "got_shape": list(got.shape), "want_shape": list(w.shape), "max_abs_diff": diff})
    return worst, bad


def check(a, backend):
    """Does what one command line says; returns its report and exit status."""
    import numpy as np
    p = Program(a.program)
    report = {"program": p.name, "devices": p.devices}
    start = time.time()
    try:
        exe = compile_program(p, a, backend)
    except Exception as e:
        print(f"xlacheck: XLA rejects {a.program}: {e}", file=sys.stderr)
        return {**report, "ok": False, "rejected": str(e).splitlines()[0]}, 2
    if exe is None:
        return {**report, "parses": True, "ok": True}, 0
    report["compile_s"] = round(time.time() - start, 3)
    try:
        report["temp_bytes"] = exe.get_compiled_memory_stats().temp_size_in_bytes
    except Exception:
        pass  # not every backend knows
    if a.hlo_out:
        with open(a.hlo_out, "w") as f:
            f.write(exe.get_hlo_text() if hasattr(exe, "get_hlo_text") else exe.hlo_modules()[0].to_string())
    bad = []
    if a.args:
        run = Run(exe, p, a, backend.devices()[:p.devices])
        outs = run.results()
        if a.time:
            seconds = []
            for _ in range(a.time):
                start = time.time()
                run()
                seconds.append(time.time() - start)
            report["step_min_s"], report["step_median_s"] = round(min(seconds), 5), round(sorted(seconds)[len(seconds) // 2], 5)
        if a.out:
            np.savez(a.out, **{f"out{k}": v for k, v in enumerate(outs)})
        if a.expect:
            report["max_abs_diff"], bad = differences(outs, np.load(a.expect), a.rtol, a.atol, a.scale)
    report["ok"] = not bad
    if bad:
        report["bad"] = bad
    return report, 1 if bad else 0


def main():
    ap = parser()
    a = ap.parse_args()
    jobs = [a]
    if a.batch:
        with open(a.batch) as f:
            jobs = [ap.parse_args(shlex.split(line)) for line in f if line.strip()]
    if any(job.program is None for job in jobs):
        ap.error("PROGRAM is missing")
    devices = max((Program(job.program).devices for job in jobs), default=1)
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={devices}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    from jax._src import xla_bridge
    jax.config.update("jax_enable_x64", True)
    backend = xla_bridge.get_backend("cpu")
    status = 0
    for job in jobs:
        report, code = check(job, backend)
        print(json.dumps(report), flush=True)
        status = max(status, code)
    sys.exit(status)


if __name__ == "__main__":
    main()
