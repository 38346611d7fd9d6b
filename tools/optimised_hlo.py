#!/usr/bin/env python3
"""Writes what XLA:CPU makes of StableHLO programs: their optimised HLO, and each device's arguments and results.

  optimised_hlo.py OUT INDEX.tsv

The index has a header and a line for each program: its name, which is that of NAME.mlir and NAME.npz beside it, and the
number of its devices. NAME.npz has the global arguments in0, in1, ... The files in OUT are NAME.hlo, NAME.args.npz (in0,
...) and NAME.want.npz (out0, ...), the arrays of several devices stacked on a new first axis. Needs jax and numpy.
"""
import csv, os, sys

# Machine code is made without LLVM's optimisations, in half the time; the HLO is the same.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np
from jax._src import compiler, xla_bridge
from jax._src.lib import hlo
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

jax.config.update("jax_enable_x64", True)
backend = xla_bridge.get_backend("cpu")
options = hlo.HloPrintOptions()
options.print_large_constants = True


def placed(x, devices, sharding):
    if len(devices) == 1:
        return jax.device_put(x, SingleDeviceSharding(devices[0]))
    if sharding is None:
        return jax.device_put(x, NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec()))
    return jax.device_put(x, GSPMDSharding(devices, sharding))


def stacked(parts):
    parts = [np.asarray(p) for p in parts]
    parts = [p.astype(np.float32) if p.dtype.name == "bfloat16" else p for p in parts]
    return np.stack(parts) if len(parts) > 1 else parts[0]


def optimise(out, folder, name, n):
    devices = backend.devices()[:n]
    opts = compiler.get_compile_options(num_replicas=1, num_partitions=n, device_assignment=np.arange(n).reshape(1, n))
    exe = backend.compile_and_load(open(os.path.join(folder, name + ".mlir")).read(), devices, opts)
    arrays = np.load(os.path.join(folder, name + ".npz"))
    shardings = exe.get_parameter_shardings() if n > 1 else None
    args, given, i = [], {}, 0
    while f"in{i}" in arrays:
        args.append(placed(arrays[f"in{i}"], devices, shardings[i] if shardings else None))
        given[f"in{i}"] = stacked([s.data for s in sorted(args[-1].addressable_shards, key=lambda s: s.device.id)])
        i += 1
    columns = exe.execute_sharded(args).disassemble_into_single_device_arrays()
    with open(os.path.join(out, name + ".hlo"), "w") as f:
        f.write(exe.hlo_modules()[0].to_string(options))
    np.savez(os.path.join(out, name + ".args.npz"), **given)
    np.savez(os.path.join(out, name + ".want.npz"), **{f"out{k}": stacked(c) for k, c in enumerate(columns)})


out, index = sys.argv[1:]
for row in csv.reader(open(index), delimiter="\t"):
    if row[1].isdigit():
        optimise(out, os.path.dirname(index), row[0], int(row[1]))
