#!/usr/bin/env python3
"""Measures ppc side by side with JAX on XLA:CPU: the same training step of the same Llama, in turn, in one go.

  peers.py [--size tiny,small,medium] [--program single,shardmap,auto] [--rounds 5] [--ppc PATH] [--json]
  peers.py --engines cpu,jax [--size tiny,small,medium] [--rounds 5] [--ppc PATH] [--json]

ppc runs examples/llama.pp (tiny), llama_small.pp or llama_medium.pp, with pipeline.skip_bubbles: devices that share cores leave them
to those that have work; tiny with collectives combined up to 1 MiB, too (pipeline.combine). Three JAX programs compute the same step of the same
shapes, with embedding, cross entropy, full rematerialisation and AdamW in float32:

  single     one device, the layers in a lax.scan, no pipeline
  shardmap   4 x 2 emulated host devices, explicit pipeline: shard_map, ppermute, all_gather over fsdp
  auto       the same devices, vmap over the stage dimension plus roll, shardings left to the partitioner

In every round each program takes one step (ppc, which begins anew, one that warms up and three, of which the median counts), so that
what else the machine does meets all of them alike. Printed are minimum and median of the steps, the seconds of all cores that a step took, which on a
machine that others use as well says more than its time, and each time over ppc's.

With --engines what is compared is one program on several engines of ppc run: cpu is ppc's own program per device through the
PJRT plugin, jax the program for all devices, which JAX compiles and calls. A round is one process for each engine, which compiles
and takes five steps.

Needs: pip install jax numpy, xla-cpu-pjrt for --engines cpu (JAX 0.11 or later). ppc is built with go build unless --ppc names it.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {  # emb, heads, head, mlp, vocab, layers, seq, batch
    "tiny": (64, 4, 16, 256, 512, 8, 64, 16),
    "small": (256, 8, 32, 1024, 2048, 8, 128, 16),
    "medium": (512, 8, 64, 2048, 4096, 8, 256, 16),
}
FILES = {"tiny": "llama.pp", "small": "llama_small.pp", "medium": "llama_medium.pp"}
SETTINGS = {"tiny": ["--set=pipeline.combine=1048576"]}  # collectives of a few KiB: their meetings count
S, F, R, M = 4, 2, 2, 8


def useful_flops(size):
    """Products and sums of a step: the forward pass, the same again for its gradients, and twice that backward."""
    e, h, d, ff, v, layers, t, batch = SIZES[size]
    weights = layers * (4 * e * h * d + 3 * e * ff) + v * e
    return batch * t * (2 * weights + layers * 4 * t * h * d) * 4


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def worker(size, program):
    """Compiles one JAX program, and then takes a step for every line of standard input."""
    devices = 1 if program == "single" else S * F
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={devices}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    step, state, data = jax_program(size, program)
    begin = time.time()
    compiled = jax.jit(step, donate_argnums=(0, 1, 2)).lower(*state, *data).compile()
    compile_s = time.time() - begin

    def run(state):
        begin, cpu = time.time(), cpu_seconds()
        out = jax.block_until_ready(compiled(*state, *data))
        return out[1:], dict(step_s=time.time() - begin, cpu_s=cpu_seconds() - cpu, loss=float(out[0]))

    state, _ = run(state)
    say(dict(compile_s=compile_s, temp_bytes=compiled.memory_analysis().temp_size_in_bytes))
    for _ in sys.stdin:
        state, measured = run(state)
        say(measured)


def say(record):
    print(json.dumps(record), flush=True)


def jax_program(size, program):
    """The step of a program, its state and its batch."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    E, H, D, FF, V, NL, T, B = SIZES[size]
    L, b = NL // (S * R), B // M

    def rmsnorm(x, g):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * g

    def rope(x):  # [b, t, h, d]
        half = x.shape[-1] // 2
        angle = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None] / (10000.0 ** (jnp.arange(half, dtype=jnp.float32) / half))
        s, c = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
        x1, x2 = x[..., :half], x[..., half:]
        return jnp.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], -1)

    def layer(w, x):
        h = rmsnorm(x, w["norm1"])
        q, k = rope(jnp.einsum("bte,ehd->bthd", h, w["wq"])), rope(jnp.einsum("bte,ehd->bthd", h, w["wk"]))
        v = jnp.einsum("bte,ehd->bthd", h, w["wv"])
        s = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(D)
        s = jnp.where(jnp.tril(jnp.ones((x.shape[1],) * 2, bool)), s, -1e30)
        x = x + jnp.einsum("bthd,hde->bte", jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(s, -1), v), w["wo"])
        h = rmsnorm(x, w["norm2"])
        return x + (jax.nn.silu(h @ w["wi0"]) * (h @ w["wi1"])) @ w["wout"]

    def head(p, x, targets):
        logits = jnp.einsum("...e,ve->...v", rmsnorm(x, p["norm"]), p["table"])
        return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, targets[..., None], -1)[..., 0])

    def stage(w, x):  # w: [L, ...]
        for i in range(L):
            x = layer(jax.tree.map(lambda v: v[i], w), x)
        return x

    # The axis of each weight that is sharded over fsdp.
    sharded = dict(norm1=0, norm2=0, wq=0, wk=0, wv=0, wo=2, wi0=0, wi1=0, wout=1)
    ranks = dict(norm1=1, norm2=1, wq=3, wk=3, wv=3, wo=3, wi0=2, wi1=2, wout=2)
    spec = {k: P(None, "stage", None, *["fsdp" if i == sharded[k] else None for i in range(n)]) for k, n in ranks.items()}

    def single(p, tokens, targets):
        x = p["table"][tokens]
        flat = jax.tree.map(lambda w: w.reshape(NL, *w.shape[3:]), p["layers"])
        x, _ = lax.scan(lambda x, w: (jax.checkpoint(layer)(w, x), None), x, flat)
        return head(p, x, targets)

    def shardmap(mesh):
        def local(w, x):  # w: [R, 1, L, ...] shard, x: [M, b/F, T, E]
            s = lax.axis_index("stage")
            ring = [(i, (i + 1) % S) for i in range(S)]

            def iteration(carry, t):
                shift, circ = carry
                repeat = jnp.minimum(jnp.maximum(t - s, 0) // M, R - 1)
                x_in = jnp.where(s == 0, jnp.where(t < M, x[t % M], circ[t % M]), shift)
                wr = {k: lax.dynamic_index_in_dim(v, repeat, 0, False)[0] for k, v in w.items()}
                wr = {k: lax.all_gather(v, "fsdp", axis=sharded[k] + 1, tiled=True) for k, v in wr.items()}
                nxt = lax.ppermute(stage(wr, x_in), "stage", ring)
                circ = lax.dynamic_update_index_in_dim(circ, nxt, (t - (S - 1)) % M, 0)
                return (nxt, circ), None

            start = (jnp.zeros_like(x[0]), jnp.zeros_like(x))
            (_, circ), _ = lax.scan(jax.checkpoint(iteration), start, jnp.arange(M * R + S - 1))
            return lax.psum(jnp.where(s == 0, circ, 0), "stage")

        return jax.shard_map(local, mesh=mesh, in_specs=(spec, P(None, "fsdp")), out_specs=P(None, "fsdp"), check_vma=False)

    def auto(mesh):
        def constrained(x, *s):
            return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*s)))

        def run(w, x):
            ids = jnp.arange(S)

            def iteration(carry, t):
                shift, circ = carry
                repeat = jnp.minimum(jnp.maximum(t - ids, 0) // M, R - 1)
                first = jnp.where(t < M, x[t % M], circ[t % M])
                x_in = constrained(jnp.where((ids == 0)[:, None, None, None], first[None], shift), "stage", "fsdp")
                wr = {k: jax.vmap(lambda v, r: lax.dynamic_index_in_dim(v, r, 0, False), (1, 0))(v, repeat) for k, v in w.items()}
                y = constrained(jax.vmap(stage)({k: constrained(v, "stage") for k, v in wr.items()}, x_in), "stage", "fsdp")
                nxt = constrained(jnp.roll(y, 1, 0), "stage", "fsdp")
                circ = lax.dynamic_update_index_in_dim(circ, nxt[0], (t - (S - 1)) % M, 0)
                return (nxt, circ), None

            zero = constrained(jnp.zeros((S,) + x.shape[1:], x.dtype), "stage", "fsdp")
            (_, circ), _ = lax.scan(jax.checkpoint(iteration), (zero, jnp.zeros_like(x)), jnp.arange(M * R + S - 1))
            return circ

        return run

    def piped(pipe):
        def loss(p, tokens, targets):
            x = p["table"][tokens].reshape(M, b, T, E)
            return head(p, pipe(p["layers"], x), targets.reshape(M, b, T))

        return loss

    rng = np.random.default_rng(0)
    normal = lambda *s: (rng.standard_normal(s) * 0.02).astype(np.float32)
    one = lambda *s: np.ones(s, np.float32)
    lead = (R, S, L)
    layers = dict(norm1=one(*lead, E), norm2=one(*lead, E), wq=normal(*lead, E, H, D), wk=normal(*lead, E, H, D), wv=normal(*lead, E, H, D),
                  wo=normal(*lead, H, D, E), wi0=normal(*lead, E, FF), wi1=normal(*lead, E, FF), wout=normal(*lead, FF, E))
    params = dict(table=normal(V, E), norm=one(E), layers=layers)
    tokens = rng.integers(0, V, (B, T)).astype(np.int32)
    targets = rng.integers(0, V, (B, T)).astype(np.int32)
    if program == "single":
        loss = single
        params, data = jax.device_put((params, (tokens, targets)), jax.devices()[0])
    else:
        mesh = Mesh(np.array(jax.devices()).reshape(S, F), ("stage", "fsdp"))
        loss = piped(shardmap(mesh) if program == "shardmap" else auto(mesh))
        put = lambda v, s: jax.device_put(v, NamedSharding(mesh, s))
        params = dict(table=put(params["table"], P(None, "fsdp")), norm=put(params["norm"], P("fsdp")), layers={k: put(v, spec[k]) for k, v in layers.items()})
        data = put(tokens, P("fsdp")), put(targets, P("fsdp"))

    def step(p, m, v, i, tokens, targets):
        value, g = jax.value_and_grad(loss)(p, tokens, targets)
        i = i + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        update = lambda p, m, v: p - 1e-3 * (m / (1 - 0.9**i)) / (jnp.sqrt(v / (1 - 0.999**i)) + 1e-8)
        return value, jax.tree.map(update, p, m, v), m, v, i

    return step, (params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.float32(0)), data


class JAX:
    """A JAX program in a process of its own, compiled once."""

    def __init__(self, size, program):
        command = [sys.executable, __file__, "--worker", "--size", size, "--program", program]
        self.name = "jax " + program
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.about = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"peers.py: {self.name} ended with status {self.process.wait()}")
        return json.loads(line)

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return self.read()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class PPC:
    """ppc bench, once for each round: the median of three steps."""

    name = "ppc"

    def __init__(self, size, ppc):
        self.command = [ppc, "bench", "--json", "--steps=3", "--set=pipeline.skip_bubbles=true", *SETTINGS.get(size, []), str(ROOT / "examples" / FILES[size])]
        self.about = self.step()

    def step(self):
        run = subprocess.run(self.command, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"peers.py: {' '.join(self.command)}: {run.stderr}")
        r = json.loads(run.stdout)
        return dict(r, step_s=r["step_median_s"])

    def end(self):
        pass


def measure(size, programs, rounds, ppc, as_json):
    runners = [PPC(size, ppc)] + [JAX(size, p) for p in programs]
    steps = {r.name: [] for r in runners}
    for _ in range(rounds):
        for r in runners:
            steps[r.name].append(r.step())
    for r in runners:
        r.end()
    rows = []
    for r in runners:
        times = [s["step_s"] for s in steps[r.name]]
        row = dict(size=size, program=r.name, step_min_s=min(times), step_median_s=statistics.median(times),
                   cpu_s=statistics.median(s["cpu_s"] for s in steps[r.name]), compile_s=r.about["compile_s"], temp_bytes=r.about["temp_bytes"])
        row["gflops"] = useful_flops(size) / row["step_median_s"] / 1e9
        rows.append(row)
    first = rows[0]
    for row in rows:
        row["over_ppc"] = row["step_median_s"] / first["step_median_s"]
        row["cpu_over_ppc"] = row["cpu_s"] / first["cpu_s"]
        row["peak_gflops"] = runners[0].about["peak_gflops"]
    if as_json:
        for row in rows:
            say(row)
        return
    print(f"{size}: {rounds} rounds; the machine does {first['peak_gflops']:.0f} GFLOP/s at most")
    print(f"{'program':14} {'min s':>8} {'median s':>9} {'/ ppc':>6} {'cores s':>8} {'/ ppc':>6} {'GFLOP/s':>8} {'compile s':>10} {'MiB/device':>11}")
    for w in rows:
        print(f"{w['program']:14} {w['step_min_s']:8.3f} {w['step_median_s']:9.3f} {w['over_ppc']:6.2f} {w['cpu_s']:8.2f} {w['cpu_over_ppc']:6.2f}"
              f" {w['gflops']:8.1f} {w['compile_s']:10.2f} {w['temp_bytes'] / 2**20:11.1f}", flush=True)


def measure_engines(size, engines, rounds, ppc, as_json):
    runs = {e: [] for e in engines}
    environment = dict(os.environ, PPC_PYTHON=os.environ.get("PPC_PYTHON", sys.executable))
    for _ in range(rounds):
        for e in engines:
            command = [ppc, "bench", "--json", "--steps=5", f"--engine={e}", str(ROOT / "examples" / FILES[size])]
            run = subprocess.run(command, capture_output=True, text=True, env=environment)
            if run.returncode != 0:
                sys.exit(f"peers.py: {' '.join(command)}: {run.stderr}")
            runs[e].append(json.loads(run.stdout))
    rows = []
    for e, rs in runs.items():
        row = dict(size=size, engine=e, step_min_s=min(r["step_min_s"] for r in rs))
        for key in ("step_median_s", "cpu_s", "engine_compile_s", "engine_compile_cpu_s"):
            row[key] = statistics.median(r[key] for r in rs)
        rows.append(row)
    if as_json:
        for row in rows:
            say(row)
        return
    last = rows[-1]
    print(f"{size}: {rounds} rounds; ratios to {last['engine']}")
    columns = dict(step_min_s="min s", step_median_s="median s", cpu_s="cores s", engine_compile_s="compile s", engine_compile_cpu_s="cores s")
    print(f"{'engine':14}" + "".join(f" {name:>9} {'ratio':>6}" for name in columns.values()))
    for w in rows:
        print(f"{w['engine']:14}" + "".join(f" {w[k]:9.3f} {w[k] / last[k]:6.2f}" for k in columns), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="tiny,small")
    parser.add_argument("--program", default="single,shardmap,auto")
    parser.add_argument("--engines", help="engines of ppc run, separated by commas, in place of the programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ppc", help="the binary; built if it is not given")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.size, args.program)
        return
    for size in args.size.split(","):
        if size not in SIZES:
            sys.exit(f"peers.py: there is no size {size}; have {', '.join(SIZES)}")
    with tempfile.TemporaryDirectory() as folder:
        ppc = args.ppc
        if ppc is None:
            ppc = os.path.join(folder, "ppc")
            subprocess.run(["go", "build", "-o", ppc, "./cmd/ppc"], cwd=ROOT, check=True)
        for size in args.size.split(","):
            if args.engines:
                measure_engines(size, args.engines.split(","), args.rounds, ppc, args.json)
            else:
                measure(size, args.program.split(","), args.rounds, ppc, args.json)


if __name__ == "__main__":
    main()
