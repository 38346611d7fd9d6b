#!/usr/bin/env python3
"""Counts the bytes that one device receives from others in one step of a program: as ppc partitions it, as Shardy does,
and as XLA does.

  bytes.py [--ppc ppc] [-o FILE] [--keep DIR] PROGRAM...

PROGRAM   A .pp file, of which the forward program and the training step are taken, or global StableHLO text (.mlir); what is for one device
          is left out.
FILE      Where the table goes: a line per program, "program ours shardy xla", with tabs between. Standard output otherwise.
DIR       Where the programs that were counted go: NAME.global.mlir, NAME.shardy.mlir, NAME.xla.hlo.

The global program of a .pp file is what ppc has after propagate, with a sharding on every value. Shardy's is the program with per-device shapes and StableHLO collectives that its passes make of it. XLA's is the optimised module of
XLA:CPU, whose partitioner begins with Shardy's. All are counted by "ppc lower --stats", as in a ring: a device receives
(n-1)/n of what an all-gather over n devices gives, twice that of an all-reduce, all of a permute; as often as the loops
around run. XLA does not move loop-invariant code here, which would gather before a loop what the program gathers inside: that
is a decision about memory, and the program's. "-" stands for a program that was refused, or that has a loop whose number of iterations is not known.
Needs: pip install jax numpy (JAX 0.11 or later, Python 3.12 or later).
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from xlacheck import Program, compile_program

SHARDY = ",".join([
    "sdy-propagation-pipeline",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true}),sdy-resolve-permutation-factors{enable-halo-exchange=true}",
    "func.func(sdy-reshard-to-collectives)",
    "sdy-pad-for-divisibility,func.func(sdy-resolve-single-device-sharding),sdy-convert-global-to-local,sdy-drop-sharding-and-mesh",
])


SQUARE = r"chlo\.square (\S+) : (\S+) -> \S+"  # JAX exports it; a per-device program has the product
AS_IT_IS = ["--after=dce"]  # before ppc combines collectives of a program that others partitioned


class Refused(Exception):
    pass


def ppc(a, *args):
    p = subprocess.run([a.ppc, "lower", *args], capture_output=True, text=True)
    if p.returncode != 0:
        raise Refused(p.stderr.strip())
    return p.stdout


def programs(a, work):
    """Names of the programs of the command line, what ppc lowers for them, and the files of the global programs."""
    for file in a.programs:
        stem, ext = os.path.splitext(file)
        name = stem if ext == ".pp" else os.path.basename(stem)
        if ext == ".mlir":
            path = os.path.join(work, name + ".global.mlir")
            shutil.copyfile(file, path)
            if Program(path).devices > 1:
                yield name, [file], path
            continue
        texts = set()
        for suffix, flags in ("", ["--set", "train.steps=0"]), (" step", []):
            try:
                text = ppc(a, file, *flags, "--emit=stablehlo", "--after=propagate")
            except Refused as e:
                if "there is no model" in str(e):
                    break  # a library
                raise
            if text not in texts:  # the second is the same where nothing is trained
                texts.add(text)
                path = os.path.join(work, (name + suffix).replace(" ", "_").replace("/", "_") + ".global.mlir")
                with open(path, "w") as f:
                    f.write(text)
                yield name + suffix, [file, *flags], path


def received(a, *program):
    """The bytes that a device receives in the per-device program that ppc has of a file."""
    total = 0
    for line in ppc(a, *program, "--stats", "--json").splitlines():
        row = json.loads(line)
        if "collective" in row:
            if row["executions"] is None:
                raise Refused(f"{program[0]}: a loop runs as long as its data says")
            total += row["moved"] * row["executions"]
    return total


def shardy(path):
    """The file of the program that Shardy makes of a global one."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.passmanager import PassManager
    out = path.replace(".global.mlir", ".shardy.mlir")
    with mlir.make_ir_context() as ctx, ir.Location.unknown():
        ctx.allow_unregistered_dialects = True
        with open(path) as f:
            m = ir.Module.parse(re.sub(SQUARE, r"stablehlo.multiply \1, \1 : \2", f.read()))
        try:
            PassManager.parse(f"builtin.module({SHARDY})").run(m.operation)
        except Exception as e:
            raise Refused(f"Shardy refuses {path}: {e}")
        with open(out, "w") as f:
            f.write(str(m))
    return [out, *AS_IT_IS]


def xla(path, backend):
    """The file of the module that XLA makes of a global program."""
    out = path.replace(".global.mlir", ".xla.hlo")
    try:
        exe = compile_program(Program(path), argparse.Namespace(glob=True, gspmd=False, quick=False, parse_only=False), backend)
    except Exception as e:
        raise Refused(f"XLA refuses {path}: {e}")
    with open(out, "w") as f:
        f.write(exe.get_hlo_text() if hasattr(exe, "get_hlo_text") else exe.hlo_modules()[0].to_string())
    return [out, *AS_IT_IS]


def count(a, make):
    try:
        return str(received(a, *make()))
    except Refused as e:
        print(f"bytes: {e}", file=sys.stderr)
        return "-"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("programs", nargs="+")
    ap.add_argument("--ppc", default="ppc")
    ap.add_argument("-o", dest="out")
    ap.add_argument("--keep")
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = a.keep or temporary
        os.makedirs(work, exist_ok=True)
        todo = list(programs(a, work))
        devices = max(Program(path).devices for _, _, path in todo)
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={devices} --xla_disable_hlo_passes=while-loop-invariant-code-motion"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        from jax._src import xla_bridge
        jax.config.update("jax_enable_x64", True)
        backend = xla_bridge.get_backend("cpu")
        out = open(a.out, "w") if a.out else sys.stdout
        print("program\tours\tshardy\txla", file=out)

        def row(name, program, path):
            return [name, count(a, lambda: program), count(a, lambda: shardy(path)), count(a, lambda: xla(path, backend))]

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as rows:
            for columns in rows.map(row, *zip(*todo)):
                print("\t".join(columns), file=out, flush=True)


if __name__ == "__main__":
    main()
