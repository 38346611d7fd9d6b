#!/usr/bin/env python3
"""Converts the parameters of an orbax checkpoint, as MaxText writes it, to safetensors and back, bit by bit.

  orbax_params.py from-orbax CHECKPOINT FILE.safetensors [--table TABLE]
  orbax_params.py to-orbax FILE.safetensors CHECKPOINT [--table TABLE] [--like CHECKPOINT]

CHECKPOINT  A folder of one tree (MaxText's …/checkpoints/0/items), which must not exist where it is written. Paths in it are keys with
            slashes between them: params/params/decoder/layers/mlp/wi_0/kernel.
FILE        Arrays by the names of `ppc export` and `ppc run --args`.
TABLE       Lines of three columns with tabs between them: a path, or one that ends in *; the name in the file, where * is what stood
            there, or - for what is left out; the dimensions of the checkpoint's array, with commas between them, that are the first
            one of the file's in that order, the layers, or - for an array that is the same in both. The first line that fits counts.
            Without one it is MaxText's: layers are dimension 1 of scanned ones, the optimizer's state and the step are left out.
--like      A checkpoint that the one written must have the paths, shapes and types of; it also says how large each of several
            dimensions is that are one in the file. All that is missing, superfluous or of another shape or type is named at once.

Needs: pip install orbax-checkpoint numpy ml_dtypes.
"""
import argparse
import json
import math
import os
import struct
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

MAXTEXT = """
opt_state/*	-	-
opt_state	-	-
step	-	-
params/params/decoder/layers/*	decoder/layers/*	1
params/params/decoder/dense_layers/*	decoder/dense_layers/*	1
params/params/decoder/moe_layers/*	decoder/moe_layers/*	1
params/params/*	*	-
"""

DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
          "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}


def fail(lines):
    for line in lines if isinstance(lines, list) else [lines]:
        print(f"orbax_params: {line}", file=sys.stderr)
    sys.exit(1)


class Row:
    """A line of the table."""

    def __init__(self, number, line):
        columns = line.split("\t")
        if len(columns) != 3:
            fail(f"table:{number}: {len(columns)} columns, want a path, a name and dimensions, with tabs between them")
        self.path, self.name, axes = columns
        if self.path.count("*") > 1 or "*" in self.path[:-1] or (self.name != "-" and ("*" in self.path) != ("*" in self.name)):
            fail(f"table:{number}: want one * at the end of the path and in the name, or none")
        try:
            self.axes = [] if axes == "-" else [int(a) for a in axes.split(",")]
        except ValueError:
            fail(f"table:{number}: dimensions are {axes}, want numbers with commas between them, or -")

    def name_of(self, path):
        """The name in the file of what is at path, None where the line does not fit."""
        if self.path.endswith("*"):
            if path.startswith(self.path[:-1]):
                return self.name.replace("*", path[len(self.path) - 1:])
        elif path == self.path:
            return self.name

    def path_of(self, name):
        """The path of what the file calls name, None where the line does not fit."""
        head, star, tail = self.name.partition("*")
        if not star:
            return self.path if name == self.name else None
        if name.startswith(head) and name.endswith(tail) and len(name) >= len(head) + len(tail):
            return self.path[:-1] + name[len(head):len(name) - len(tail)]

    def to_file(self, x):
        """x of the checkpoint as the file has it."""
        if not self.axes:
            return x
        rest = [d for d in range(x.ndim) if d not in self.axes]
        n = math.prod(x.shape[d] for d in self.axes)
        return x.transpose(self.axes + rest).reshape([n] + [x.shape[d] for d in rest])

    def to_checkpoint(self, x, like):
        """x of the file as the checkpoint has it, whose shape is like, or None where that is not known."""
        if not self.axes:
            return x
        if len(self.axes) == 1:
            return np.moveaxis(x, 0, self.axes[0])
        x = x.reshape([like[d] for d in self.axes] + list(x.shape[1:]))
        return np.moveaxis(x, range(len(self.axes)), self.axes)


def table(path):
    text = MAXTEXT
    if path:
        with open(path) as f:
            text = f.read()
    return [Row(i, line) for i, line in enumerate(text.splitlines(), 0 if not path else 1) if line and not line.startswith("#")]


def first(rows, of):
    for row in rows:
        found = of(row)
        if found is not None:
            return row, found
    return None, None


def flat(tree, path=""):
    """The leaves of a tree by path."""
    if isinstance(tree, dict):
        return {k: v for key in tree for k, v in flat(tree[key], f"{path}/{key}" if path else str(key)).items()}
    if isinstance(tree, (list, tuple)):
        return flat({i: v for i, v in enumerate(tree)}, path)
    return {path: tree}


def nested(leaves):
    tree = {}
    for path, x in leaves.items():
        keys, at = path.split("/"), tree
        for key in keys[:-1]:
            at = at.setdefault(key, {})
        at[keys[-1]] = x
    return tree


def metadata(checkpoint):
    """The shapes and types of a checkpoint, by path."""
    import orbax.checkpoint as ocp

    with ocp.PyTreeCheckpointer() as c:
        tree = c.metadata(os.path.abspath(checkpoint)).item_metadata.tree
    return {path: m for path, m in flat(tree).items() if getattr(m, "shape", None) is not None}


def restore(checkpoint):
    import jax
    import orbax.checkpoint as ocp

    with ocp.PyTreeCheckpointer() as c:
        tree = c.metadata(os.path.abspath(checkpoint)).item_metadata.tree
        args = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), tree)
        return flat(c.restore(os.path.abspath(checkpoint), restore_args=args))


def read(path):
    """The arrays of a safetensors file by name."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 8 or 8 + struct.unpack("<Q", data[:8])[0] > len(data):
        fail(f"{path}: not a safetensors file: it ends within its header")
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        if t["dtype"] not in DTYPES:
            fail(f"{path}: {name}: elements are {t['dtype']}, want one of {', '.join(DTYPES)}")
        a, b = t["data_offsets"]
        out[name] = np.frombuffer(data[8 + n + a:8 + n + b], DTYPES[t["dtype"]]).reshape(t["shape"])
    return out


def write(path, arrays):
    header, at = {}, 0
    for name, x in arrays.items():
        header[name] = {"dtype": NAMES[x.dtype], "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = f"{path}.{os.getpid()}.part"
    with open(temporary, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for x in arrays.values():
            f.write(np.ascontiguousarray(x).tobytes())
    os.replace(temporary, path)


def from_orbax(a):
    rows, out, wrong = table(a.table), {}, []
    for path, x in sorted(restore(a.source).items()):
        row, name = first(rows, lambda r: r.name_of(path))
        if row is None:
            wrong.append(f"{path}: no line of the table takes it; one with - as its name leaves it out")
        elif name == "-":
            continue
        elif not isinstance(x, np.ndarray) or x.dtype not in NAMES:
            wrong.append(f"{path}: {type(x).__name__} of {getattr(x, 'dtype', 'no type')}, want an array of {', '.join(DTYPES)}")
        elif any(d >= x.ndim for d in row.axes):
            wrong.append(f"{path}: shape {list(x.shape)} has no dimension {max(row.axes)}, which the table says is of layers")
        elif name in out:
            wrong.append(f"{path}: the file has {name} already")
        else:
            out[name] = row.to_file(x)
    if wrong:
        fail(wrong)
    write(a.target, out)


def to_orbax(a):
    import orbax.checkpoint as ocp

    rows, out, wrong = table(a.table), {}, []
    like = metadata(a.like) if a.like else {}
    for name, x in sorted(read(a.source).items()):
        row, path = first(rows, lambda r: r.path_of(name))
        shape = like[path].shape if path in like else None
        if row is None:
            wrong.append(f"{name}: no line of the table has that name")
        elif shape is None and (a.like or len(row.axes) > 1):
            wrong.append(f"{name}: {a.like} has no {path}" if a.like else f"{name}: dimensions {row.axes} are one in the file, and --like is to say how large each is")
        elif shape is not None and (math.prod(shape) != x.size or len(row.axes) > 1 and x.shape[0] != math.prod(shape[d] for d in row.axes)):
            wrong.append(f"{name}: shape {list(x.shape)} does not make {list(shape)}, which {path} has")
        elif any(d >= x.ndim + len(row.axes) - 1 for d in row.axes):
            wrong.append(f"{name}: shape {list(x.shape)} makes none with dimension {max(row.axes)}, which the table says is of layers")
        else:
            out[path] = row.to_checkpoint(x, shape)
            if shape is not None and (out[path].shape != tuple(shape) or np.dtype(like[path].dtype) != x.dtype):
                wrong.append(f"{name}: {x.dtype}{list(out[path].shape)}, {path} is {like[path].dtype}{list(shape)}")
    for path in sorted(like):
        if path not in out and first(rows, lambda r: r.name_of(path))[1] != "-" and not any(f"{path} " in w or w.endswith(path) for w in wrong):
            wrong.append(f"{path}: the file has nothing for it")
    if wrong:
        fail(wrong)
    with ocp.PyTreeCheckpointer() as c:
        c.save(os.path.abspath(a.target), nested({path: np.ascontiguousarray(x) for path, x in out.items()}))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("command", choices=["from-orbax", "to-orbax"])
    ap.add_argument("source")
    ap.add_argument("target")
    ap.add_argument("--table")
    ap.add_argument("--like")
    a = ap.parse_args()
    if os.path.exists(a.target) and a.command == "to-orbax":
        fail(f"{a.target}: it exists already")
    if not os.path.exists(a.source):
        fail(f"{a.source}: no such file or folder")
    from_orbax(a) if a.command == "from-orbax" else to_orbax(a)


if __name__ == "__main__":
    main()
