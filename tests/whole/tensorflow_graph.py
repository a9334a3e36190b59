#!/usr/bin/env python3
"""Checks MetaGraphDefs against TensorFlow 1.15's op definitions and runs them, with nothing of ours: NumPy, a reader
of protobuf's wire format, a reader of TensorFlow's checkpoints.

    tensorflow_graph.py SOURCE_DIR CASES_DIR

tests/whole/tensorflow_graph.cpp writes the cases: <case>.meta, a tensor bundle <case>, and <case>.data, which says what
to feed and what must come out."""
import math
import os
import re
import struct
import sys

try:
    import numpy as np
except ImportError:  # Debian's package belongs to Debian's Python
    if os.path.realpath(sys.executable) == os.path.realpath("/usr/bin/python3") or not os.path.exists("/usr/bin/python3"):
        sys.exit("tensorflow_graph.py: needs numpy (Debian: python3-numpy; scripts/deps.sh installs it)")
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

# DataType of types.proto: number -> name, NumPy's type.
TYPES = {1: ("float", np.float32), 2: ("double", np.float64), 3: ("int32", np.int32), 4: ("uint8", np.uint8),
         7: ("string", object), 9: ("int64", np.int64), 10: ("bool", np.bool_), 14: ("bfloat16", None), 19: ("half", np.float16)}
NAME_OF = {n: name for n, (name, _) in TYPES.items()}


# ---- protobuf's wire format
def varint(b, at):
    value = shift = 0
    while True:
        value |= (b[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if b[at - 1] < 128:
            return value, at


def fields(b):
    """[(number, value)]: varints as numbers, the rest as bytes."""
    out, at = [], 0
    while at < len(b):
        key, at = varint(b, at)
        if key & 7 == 0:
            value, at = varint(b, at)
        elif key & 7 == 2:
            n, at = varint(b, at)
            value, at = b[at:at + n], at + n
        else:
            n = {1: 8, 5: 4}[key & 7]
            value, at = b[at:at + n], at + n
        assert at <= len(b)
        out.append((key >> 3, value))
    return out


def all_of(message, number):
    return [v for n, v in message if n == number]


def one_of(message, number, default=None):
    found = all_of(message, number)
    return found[-1] if found else default


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def packed(values):
    out = []
    for v in values:
        if isinstance(v, int):
            out.append(signed(v))
        else:
            at = 0
            while at < len(v):
                x, at = varint(v, at)
                out.append(signed(x))
    return out


def shape_of(b):
    s = fields(b)
    return None if one_of(s, 3) else [signed(one_of(fields(d), 1, 0)) for d in all_of(s, 2)]


def tensor_of(b):
    t = fields(b)
    number, dims = one_of(t, 1), shape_of(one_of(t, 2, b""))
    assert all(d >= 0 for d in dims)
    if number == 7:
        values = [v for v in all_of(t, 8)]
        return number, np.array(values, object).reshape(dims)
    dtype, n = TYPES[number][1], math.prod(dims)
    if one_of(t, 4) is not None:
        return number, np.frombuffer(one_of(t, 4), dtype).reshape(dims)
    if number in (1, 2):
        values = np.frombuffer(b"".join(all_of(t, {1: 5, 2: 6}[number])), dtype)
    else:
        values = np.array(packed(all_of(t, {3: 7, 4: 7, 9: 10, 10: 11}[number])), dtype)
    assert values.size == (1 if n else 0), "a typed field holds one value here"
    return number, np.full(dims, values[0] if n else 0, dtype)


def attr_of(b):
    """(kind, value) of an AttrValue."""
    (number, v), = fields(b)
    if number == 1:
        items = fields(v)
        kinds = {n for n, _ in items}
        assert len(kinds) == 1, "a list of one kind, and not an empty one"
        kind, = kinds
        values = [x for _, x in items]
        return {2: ("list(string)", values), 3: ("list(int)", packed(values) if kind == 3 else 0),
                6: ("list(type)", packed(values) if kind == 6 else 0)}[kind]
    return {2: ("string", v), 3: ("int", signed(v) if number == 3 else 0), 4: ("float", v), 5: ("bool", v == 1), 6: ("type", v),
            7: ("shape", shape_of(v) if number == 7 else 0), 8: ("tensor", tensor_of(v) if number == 8 else 0)}[number]


class Node:
    def __init__(self, b):
        n = fields(b)
        assert {k for k, _ in n} <= {1, 2, 3, 5}, "name, op, input, attr"
        self.name, self.op = one_of(n, 1).decode(), one_of(n, 2).decode()
        self.inputs = [i.decode() for i in all_of(n, 3)]
        entries = [fields(e) for e in all_of(n, 5)]
        self.attrs = {one_of(e, 1).decode(): attr_of(one_of(e, 2)) for e in entries}
        assert len(self.attrs) == len(entries), "an attribute stands once"


# ---- TensorFlow's op definitions, and whether a graph keeps to them
def read_definitions(path):
    ops = {}
    for line in open(path):
        if line.startswith("#"):
            continue
        head, *attrs = [p.strip() for p in line.split("|")]
        name, ins, outs = re.fullmatch(r"(\w+)\((.*)\) -> \((.*)\)", head).groups()
        op = {"in": [i for i in ins.split(", ") if i], "out": [o for o in outs.split(", ") if o], "attrs": {}}
        for a in attrs:
            key, rest = a.split(": ", 1)
            kind, allowed, least, optional = re.fullmatch(r"(\S+)(?: in (.*?))?(?: >= (\d+))?( optional)?", rest).groups()
            op["attrs"][key] = (kind, allowed.split() if allowed else None, int(least) if least else None, bool(optional))
        ops[name] = op
    return ops


def arguments(spec, node, defaults):
    """The types that a list of arguments has in this node: [(type's name, is a variable)]."""
    out = []
    for arg in spec:
        ref = arg.startswith("ref ")
        arg = arg[4:] if ref else arg
        if arg.startswith("list "):
            out += [(NAME_OF[t], ref) for t in node.attrs[arg[5:]][1]]
            continue
        times = 1
        if " of " in arg:
            number, arg = arg.split(" of ")
            times = node.attrs[number][1]
        type_name = arg
        if arg in defaults["attrs"]:
            type_name = NAME_OF[node.attrs[arg][1]] if arg in node.attrs else "int32"  # the defaults that are left out
            assert arg in node.attrs or arg in ("Tidx", "out_type"), (node.name, arg)
        out += [(type_name, ref)] * times
    return out


def check_graph(nodes, ops):
    """Raises unless TensorFlow would import it. Gives the nodes in an order in which they can run."""
    by_name, outputs = {}, {}
    for n in nodes:
        where = f"{n.name} ({n.op})"
        assert re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", n.name), where
        assert n.name.lower() not in by_name, where + ": a name stands once"
        by_name[n.name.lower()] = n
        assert n.op in ops, where + ": TensorFlow has no such op"
        op = ops[n.op]
        for key, (kind, value) in n.attrs.items():
            if key.startswith("_"):  # of whoever wrote the graph; TensorFlow carries it and looks at none
                continue
            assert key in op["attrs"], f"{where}: no attribute {key}"
            wanted, allowed, least, _ = op["attrs"][key]
            assert kind == wanted, f"{where}: {key} is {kind}, not {wanted}"
            if kind == "type":
                value = NAME_OF[value]
            if kind == "string":
                value = value.decode()
            assert allowed is None or value in allowed, f"{where}: {key} = {value}"
            if least is not None:
                assert (value if kind == "int" else len(value)) >= least, f"{where}: {key} = {value}"
        missing = [k for k, (_, _, _, optional) in op["attrs"].items() if not optional and k not in n.attrs]
        assert not missing, f"{where}: needs {missing}"
        outputs[n.name] = arguments(op["out"], n, op)
    for n in nodes:
        where, wanted = f"{n.name} ({n.op})", arguments(ops[n.op]["in"], n, ops[n.op])
        data = [i for i in n.inputs if not i.startswith("^")]
        assert n.inputs[:len(data)] == data, where + ": control inputs come last"
        assert len(data) == len(wanted), f"{where}: {len(data)} inputs, not {len(wanted)}"
        for i in n.inputs[len(data):]:
            assert i[1:] in outputs, f"{where}: {i} is no node"
        for i, (type_name, ref) in zip(data, wanted):
            name, at = (i.split(":") + ["0"])[:2]
            assert name in outputs, f"{where}: {i} is no node"
            assert int(at) < len(outputs[name]), f"{where}: {i}"
            got, is_ref = outputs[name][int(at)]
            assert got == type_name, f"{where}: {i} is {got}, not {type_name}"
            assert is_ref or not ref, f"{where}: {i} is no variable"
        if n.op == "Const":
            assert n.attrs["value"][1][0] == n.attrs["dtype"][1], where
    order, state = [], {}
    for first in nodes:  # depth first, without recursion
        stack = [(first, iter(first.inputs))]
        if state.get(first.name) == 2:
            continue
        state[first.name] = 1
        while stack:
            n, rest = stack[-1]
            for i in rest:
                other = by_name[i.lstrip("^").split(":")[0].lower()]
                assert state.get(other.name) != 1, f"{n.name}: a cycle"
                if other.name not in state:
                    state[other.name] = 1
                    stack.append((other, iter(other.inputs)))
                    break
            else:
                state[n.name] = 2
                order.append(n)
                stack.pop()
    return order


# ---- TensorFlow's checkpoint (V2)
def read_bundle(prefix):
    index = open(prefix + ".index", "rb").read()
    footer, at = index[-48:], 0
    assert struct.unpack("<Q", footer[40:])[0] == 0xDB4775248B80FB57
    handles = []
    for _ in range(4):
        v, at = varint(footer, at)
        handles.append(v)

    def block(offset, size):
        b, out, key, at = index[offset:offset + size], [], b"", 0
        assert index[offset + size] == 0  # not compressed
        end = size - 4 - 4 * struct.unpack("<I", b[-4:])[0]
        while at < end:
            shared, at = varint(b, at)
            own, at = varint(b, at)
            n, at = varint(b, at)
            key = key[:shared] + b[at:at + own]
            out.append((key, b[at + own:at + own + n]))
            at += own + n
        return out

    tensors = {}
    for _, handle in block(*handles[2:]):
        offset, at = varint(handle, 0)
        size, at = varint(handle, at)
        for key, value in block(offset, size):
            if not key:
                continue
            e = fields(value)
            dtype = TYPES[one_of(e, 1)][1]
            if dtype is object:
                continue
            data = open(prefix + ".data-00000-of-00001", "rb").read()
            at, n = one_of(e, 4, 0), one_of(e, 5, 0)
            tensors[key] = np.frombuffer(data[at:at + n], dtype).reshape(shape_of(one_of(e, 2, b"")))
    return tensors


# ---- the ops
def axes_of(axes):
    return tuple(int(a) for a in np.atleast_1d(axes))


def windows_of(extent, k, stride, same):
    """(how many, zeros before, zeros after)"""
    out = -(-extent // stride) if same else (extent - k) // stride + 1
    total = max((out - 1) * stride + k - extent, 0) if same else 0
    return out, total // 2, total - total // 2


def frames(x, kh, kw, sh, sw, same, fill):
    """[n, oh, ow, kh, kw, c], the places of each window in the padded image, and the padding."""
    oh, top, bottom = windows_of(x.shape[1], kh, sh, same)
    ow, left, right = windows_of(x.shape[2], kw, sw, same)
    p = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    rows = (np.arange(oh) * sh)[:, None] + np.arange(kh)
    columns = (np.arange(ow) * sw)[:, None] + np.arange(kw)
    return p[:, rows[:, None, :, None], columns[None, :, None, :], :], rows, columns, (top, left), p.shape


def fold(parts, rows, columns, before, padded, shape):
    """The other way: what each window says of its places, added up."""
    out = np.zeros(padded, parts.dtype)
    for i in range(rows.shape[0]):
        for j in range(columns.shape[0]):
            out[:, rows[i][:, None], columns[j][None, :], :] += parts[:, i, j]
    return out[:, before[0]:before[0] + shape[1], before[1]:before[1] + shape[2], :]


def window(n):
    a = n.attrs
    _, sh, sw, _ = a["strides"][1]
    return sh, sw, a["padding"][1] == b"SAME"


def conv2d(n, x, w):
    f, *_ = frames(x, *w.shape[:2], *window(n), 0)
    return np.einsum("nijabc,abco->nijo", f, w).astype(x.dtype)


def conv2d_input(n, sizes, w, dy):
    x = np.zeros(sizes, dy.dtype)
    _, rows, columns, before, padded = frames(x, *w.shape[:2], *window(n), 0)
    return fold(np.einsum("nijo,abco->nijabc", dy, w), rows, columns, before, padded, x.shape)


def conv2d_filter(n, x, sizes, dy):
    f, *_ = frames(x, int(sizes[0]), int(sizes[1]), *window(n), 0)
    return np.einsum("nijabc,nijo->abco", f, dy)


def depthwise(n, x, w):
    assert len(set(window(n)[:2])) == 1, "TensorFlow's kernel takes equal strides alone"
    f, *_ = frames(x, *w.shape[:2], *window(n), 0)
    y = np.einsum("nijabc,abcm->nijcm", f, w)
    return y.reshape(*y.shape[:3], -1).astype(x.dtype)


def depthwise_input(n, sizes, w, dy):
    x = np.zeros(sizes, dy.dtype)
    _, rows, columns, before, padded = frames(x, *w.shape[:2], *window(n), 0)
    return fold(np.einsum("nijcm,abcm->nijabc", dy.reshape(*dy.shape[:3], *w.shape[2:]), w), rows, columns, before, padded, x.shape)


def depthwise_filter(n, x, sizes, dy):
    f, *_ = frames(x, int(sizes[0]), int(sizes[1]), *window(n), 0)
    return np.einsum("nijabc,nijcm->abcm", f, dy.reshape(*dy.shape[:3], int(sizes[2]), int(sizes[3])))


def pool(n, x, how):
    kh, kw = n.attrs["ksize"][1][1:3]
    return how(frames(x, kh, kw, *window(n), -np.inf if how is np.max else np.nan)[0], axis=(3, 4))


def max_pool_grad(n, x, y, dy):
    kh, kw = n.attrs["ksize"][1][1:3]
    f, rows, columns, before, padded = frames(x, kh, kw, *window(n), -np.inf)
    s = f.shape
    flat = f.reshape(*s[:3], kh * kw, s[5])
    first = flat.argmax(axis=3)[:, :, :, None, :] == np.arange(kh * kw)[None, None, None, :, None]
    return fold((first * dy[:, :, :, None, :]).reshape(s), rows, columns, before, padded, x.shape)


def avg_pool_grad(n, sizes, dy):
    x = np.ones(sizes, dy.dtype)
    kh, kw = n.attrs["ksize"][1][1:3]
    f, rows, columns, before, padded = frames(x, kh, kw, *window(n), 0)
    return fold(f * (dy / f.sum(axis=(3, 4)))[:, :, :, None, None, :], rows, columns, before, padded, x.shape)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(x):
    s = x - x.max(axis=-1, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=-1, keepdims=True))


def transposed(x, yes):
    return np.swapaxes(x, -1, -2) if yes else x


def flag(n, key):
    return n.attrs.get(key, (None, False))[1]


def cast(n, x):
    to = n.attrs["DstT"][1]
    if to == 14:  # rounded to nearest even, kept as float32 with the lower half of its bits 0
        bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    if TYPES[to][1] is np.uint8 and np.issubdtype(x.dtype, np.floating):
        x = x.astype(np.int64)
    return x.astype(TYPES[to][1])


def one_hot(n, ids, depth, on, off):
    assert n.attrs["axis"][1] == -1
    return np.where(ids[..., None] == np.arange(int(depth)), on, off)


def gather(n, x, ids, axis):
    ids = np.asarray(ids)
    assert ids.size == 0 or (ids.min() >= 0 and ids.max() < x.shape[int(axis)])
    return np.take(x, ids, axis=int(axis))


def segment_sum(n, x, ids, rows):
    out = np.zeros((int(rows), *x.shape[ids.ndim:]), x.dtype)
    np.add.at(out, ids, x)
    return out


def truncated_division(x, y):
    q = np.abs(x.astype(np.int64)) // np.abs(y.astype(np.int64))
    return (q * np.sign(x.astype(np.int64)) * np.sign(y.astype(np.int64))).astype(x.dtype)


def reduced(how):
    return lambda n, x, axes: how(x, axis=axes_of(axes), keepdims=flag(n, "keep_dims")).astype(x.dtype)


def slice_of(n, x, begin, size):
    return x[tuple(slice(b, None if s == -1 else b + s) for b, s in zip(begin, size))]


def check(n, condition, *_):
    assert condition, "Assert"


rng = np.random.default_rng(1)
erf = np.vectorize(math.erf)
OPS = {
    "Abs": lambda n, x: np.abs(x), "Add": lambda n, x, y: x + y, "All": lambda n, x, a: np.all(x, axis=axes_of(a)),
    "ArgMax": lambda n, x, a: x.argmax(axis=int(a)).astype(TYPES[n.attrs["output_type"][1]][1]),
    "Assert": check, "AvgPool": lambda n, x: pool(n, x, np.nanmean).astype(x.dtype), "AvgPoolGrad": avg_pool_grad,
    "BatchMatMulV2": lambda n, x, y: transposed(x, flag(n, "adj_x")) @ transposed(y, flag(n, "adj_y")),
    "BroadcastTo": lambda n, x, s: np.broadcast_to(x, s), "Cast": cast,
    "ConcatV2": lambda n, *x: np.concatenate(x[:-1], axis=int(x[-1])), "Const": lambda n: n.attrs["value"][1][1],
    "Conv2D": conv2d, "Conv2DBackpropInput": conv2d_input, "Conv2DBackpropFilter": conv2d_filter,
    "DepthwiseConv2dNative": depthwise, "DepthwiseConv2dNativeBackpropInput": depthwise_input,
    "DepthwiseConv2dNativeBackpropFilter": depthwise_filter,
    "Elu": lambda n, x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "EluGrad": lambda n, dy, y: np.where(y > 0, dy, dy * (y + 1)), "Equal": lambda n, x, y: x == y,
    "Erf": lambda n, x: erf(x.astype(np.float64)).astype(x.dtype), "Exp": lambda n, x: np.exp(x),
    "ExpandDims": lambda n, x, a: np.expand_dims(x, int(a)), "Fill": lambda n, s, v: np.full(s, v, np.asarray(v).dtype),
    "Floor": lambda n, x: np.floor(x), "FloorDiv": lambda n, x, y: x // y, "GatherV2": gather,
    "Greater": lambda n, x, y: x > y, "GreaterEqual": lambda n, x, y: x >= y, "Identity": lambda n, x: x,
    "Less": lambda n, x, y: x < y, "LessEqual": lambda n, x, y: x <= y, "Log": lambda n, x: np.log(x),
    "Log1p": lambda n, x: np.log1p(x), "LogSoftmax": lambda n, x: log_softmax(x),
    "LogicalAnd": lambda n, x, y: x & y, "LogicalNot": lambda n, x: ~x, "LogicalOr": lambda n, x, y: x | y,
    "MatMul": lambda n, x, y: transposed(x, flag(n, "transpose_a")) @ transposed(y, flag(n, "transpose_b")),
    "Max": reduced(np.max), "MaxPool": lambda n, x: pool(n, x, np.max), "MaxPoolGrad": max_pool_grad,
    "Maximum": lambda n, x, y: np.maximum(x, y), "Mean": reduced(np.mean), "Min": reduced(np.min),
    "Minimum": lambda n, x, y: np.minimum(x, y), "Mul": lambda n, x, y: x * y, "Neg": lambda n, x: -x,
    "NoOp": lambda n: None, "NotEqual": lambda n, x, y: x != y, "OneHot": one_hot,
    "Pack": lambda n, *x: np.stack(x, axis=n.attrs.get("axis", (0, 0))[1]),
    "PadV2": lambda n, x, p, fill: np.pad(x, p.tolist(), constant_values=fill) if x.ndim else x,
    "Pow": lambda n, x, y: x ** y, "PreventGradient": lambda n, x: x, "Prod": reduced(np.prod),
    "Qr": lambda n, x: np.linalg.qr(x), "Range": lambda n, a, b, s: np.arange(a, b, s, np.asarray(a).dtype),
    "RandomStandardNormal": lambda n, s: rng.standard_normal(s).astype(TYPES[n.attrs["dtype"][1]][1]),
    "RandomUniform": lambda n, s: rng.random(s).astype(TYPES[n.attrs["dtype"][1]][1]),
    "TruncatedNormal": lambda n, s: np.clip(rng.standard_normal(s), -2, 2).astype(TYPES[n.attrs["dtype"][1]][1]),
    "RealDiv": lambda n, x, y: x / y, "Relu": lambda n, x: np.maximum(x, 0).astype(x.dtype),
    "ReluGrad": lambda n, dy, x: np.where(x > 0, dy, 0).astype(dy.dtype), "Reshape": lambda n, x, s: np.reshape(x, s),
    "Rsqrt": lambda n, x: 1 / np.sqrt(x), "SelectV2": lambda n, c, x, y: np.where(c, x, y),
    "Shape": lambda n, x: np.array(np.shape(x), np.int32), "Sigmoid": lambda n, x: 1 / (1 + np.exp(-x)),
    "SigmoidGrad": lambda n, y, dy: dy * y * (1 - y), "Sign": lambda n, x: np.sign(x), "Slice": slice_of,
    "Softmax": lambda n, x: softmax(x), "Softplus": lambda n, x: np.logaddexp(x, 0).astype(x.dtype),
    "SoftmaxCrossEntropyWithLogits": lambda n, x, y: (-(y * log_softmax(x)).sum(axis=1), softmax(x) - y),
    "SparseSoftmaxCrossEntropyWithLogits":
        lambda n, x, y: (-log_softmax(x)[np.arange(len(y)), y], softmax(x) - (y[:, None] == np.arange(x.shape[1]))),
    "Sqrt": lambda n, x: np.sqrt(x), "Square": lambda n, x: x * x, "SquaredDifference": lambda n, x, y: (x - y) * (x - y),
    "StopGradient": lambda n, x: x, "Sub": lambda n, x, y: x - y, "Sum": reduced(np.sum), "Tanh": lambda n, x: np.tanh(x),
    "TanhGrad": lambda n, y, dy: dy * (1 - y * y), "Transpose": lambda n, x, p: np.transpose(x, p),
    "TruncateDiv": lambda n, x, y: truncated_division(x, y), "UnsortedSegmentSum": segment_sum,
}


class Session:
    """Runs what a fetch needs, once each."""

    def __init__(self, order, ops):
        self.nodes, self.ops, self.variables = {n.name: n for n in order}, ops, {}

    def run(self, fetch, feeds):
        self.values, self.feeds = {}, feeds
        return self.value(fetch)

    def value(self, fetch):
        name, at = (fetch.lstrip("^").split(":") + ["0"])[:2]
        wanted = [name]
        while wanted:
            n = self.nodes[wanted[-1]]
            missing = [m for m in (i.lstrip("^").split(":")[0] for i in n.inputs) if m not in self.values]
            if missing and n.name + ":0" not in self.feeds:
                wanted += missing
                continue
            wanted.pop()
            if n.name not in self.values:
                self.values[n.name] = self.node(n)
        return self.values[name][int(at)]

    def node(self, n):
        """All results of a node, whose inputs are there."""
        if n.name + ":0" in self.feeds:
            return [self.feeds[n.name + ":0"]]
        args = [self.values[i.split(":")[0]][int((i.split(":") + ["0"])[1])] for i in n.inputs if not i.startswith("^")]
        if n.op == "Placeholder":
            raise AssertionError(f"{n.name} is needed and was not fed")
        if n.op == "VariableV2":
            return [n.name]  # a reference
        if n.op == "PlaceholderWithDefault":
            return args
        if n.op == "RestoreV2":
            bundle = read_bundle(args[0])
            for key, slices in zip(args[1], args[2]):
                assert not slices
            return [bundle[key] for key in args[1]]
        if n.op == "Assign":
            shape, dtype = self.nodes[args[0]].attrs["shape"][1], TYPES[self.nodes[args[0]].attrs["dtype"][1]][1]
            assert list(np.shape(args[1])) == shape and args[1].dtype == dtype, (n.name, np.shape(args[1]), shape)
            self.variables[args[0]] = args[1]
            return [args[0]]
        if args and n.op == "Identity" and isinstance(args[0], str) and args[0] in self.nodes:
            return [self.variables[args[0]]]
        with np.errstate(all="ignore"):
            out = OPS[n.op](n, *args)
        out = list(out) if isinstance(out, tuple) else [out]
        types = arguments(self.ops[n.op]["out"], n, self.ops[n.op])
        for x, (type_name, _) in zip(out, types):
            if type_name not in ("string", "bfloat16"):
                assert np.asarray(x).dtype == dict(TYPES.values())[type_name], (n.name, n.op, np.asarray(x).dtype, type_name)
        return [np.asarray(x) if x is not None else None for x in out]


def run_case(path, ops, used):
    meta = fields(open(path + ".meta", "rb").read())
    graph = fields(one_of(meta, 2))
    nodes = [Node(b) for b in all_of(graph, 1)]
    used |= {n.op for n in nodes}
    order = check_graph(nodes, ops)
    outputs = {n.name for n in nodes}
    tensors = lambda names: all(t.split(":")[0] in outputs and t.endswith(":0") for t in names)

    collections = {one_of(fields(c), 1).decode(): fields(one_of(fields(c), 2)) for c in all_of(meta, 4)}
    assert "gradus_left_out" not in collections, collections["gradus_left_out"]
    for key in ("variables", "trainable_variables", "global_step", "local_variables"):
        for v in all_of(fields(one_of(collections[key], 2)), 1) if key in collections else []:
            v = fields(v)
            assert tensors([one_of(v, 1).decode(), one_of(v, 3).decode(), one_of(v, 6).decode()]), key
            assert one_of(v, 2).decode() in outputs
            variable, = [n for n in nodes if n.name + ":0" == one_of(v, 1).decode()]
            assert variable.op == "VariableV2"
    assert len(all_of(fields(one_of(collections["global_step"], 2)), 1)) == 1
    signature = {one_of(fields(c), 1).decode(): fields(one_of(fields(c), 2)) for c in all_of(meta, 5)}["serving_default"]
    infos = [{one_of(fields(e), 1).decode(): fields(one_of(fields(e), 2)) for e in all_of(signature, k)} for k in (1, 2)]
    assert tensors(one_of(i, 1).decode() for side in infos for i in side.values())

    saver = fields(one_of(meta, 3))
    filename, save, restore = (one_of(saver, k).decode() for k in (1, 2, 3))
    assert tensors([filename, save]) and restore in outputs and one_of(saver, 7) == 2
    s = Session(order, ops)
    for n in nodes:  # what initializers give fits its variable
        if n.op == "Assign" and not n.name.startswith("save/"):
            s.run(n.name, {})
    s.variables.clear()
    s.run(restore, {filename: path})
    assert s.variables["global_step"] == 12

    feeds, results = {}, 0
    for line in open(path + ".data"):
        kind, name, number, dims, data = (line.rstrip("\n").split(" ") + [""])[:5]
        dims = [int(d) for d in dims[1:-1].split(",") if d]
        want = np.frombuffer(bytes.fromhex(data), TYPES[int(number)][1]).reshape(dims)
        if kind == "feed":
            feeds[name + ":0"] = want
            continue
        info = infos[1][name]
        got = s.run(one_of(info, 1).decode(), feeds)
        where = f"{os.path.basename(path)}: {name}"
        declared = shape_of(one_of(info, 3, b""))
        assert got.dtype == want.dtype and got.shape == want.shape, f"{where}: {got.dtype} {got.shape}, not {want.dtype} {want.shape}"
        assert len(declared) == got.ndim and all(d in (-1, g) for d, g in zip(declared, got.shape)), where
        results += 1
        if name.startswith("random"):
            assert np.isfinite(got).all()
        elif want.dtype in (np.float32, np.float64):
            tolerance = 2e-5 if want.dtype == np.float32 else 1e-9
            if "ReducePrecision" in name:
                tolerance = 0
            off = np.abs(got - want) > tolerance * np.maximum(1, np.abs(want))
            same = ~off | (np.isnan(got) & np.isnan(want)) | (got == want)
            assert same.all(), f"{where}: {got[~same][:4]}, not {want[~same][:4]}"
        else:
            assert (got == want).all(), f"{where}: {got[got != want][:4]}, not {want[got != want][:4]}"
    return results


def declared_ops(source):
    """Every op that a header declares: `card name{"Op", ...` and `.name = "Op"`."""
    found = {}
    for room, _, files in os.walk(os.path.join(source, "include", "gradus")):
        for f in files:
            body = open(os.path.join(room, f)).read()
            for declaration in re.findall(r"^inline constexpr card\b.*?;$", body, re.M | re.S):
                for name in re.findall(r'\{\s*(?:\.name = )?"(\w+)",', declaration):
                    found[name] = f
    return found


def main():
    source, cases = sys.argv[1:]
    ops = read_definitions(os.path.join(source, "tests", "golden", "tensorflow_ops.txt"))
    lines = lambda name: open(os.path.join(cases, name)).read().split("\n")[:-1]
    used, results, failed = set(), 0, []
    for case in lines("cases"):
        try:
            results += run_case(os.path.join(cases, case), ops, used)
        except Exception as e:  # all cases are told
            failed.append(f"{case}: {type(e).__name__}: {e}")
            if os.environ.get("GRADUS_TRACE"):
                raise
    known, declared = set(lines("covered")) | set(lines("absent")), declared_ops(source)
    for name, where in sorted(declared.items()):
        if name not in known:
            failed.append(f"{name} ({where}): no case of tests/whole/tensorflow_graph.cpp has it, and tensorflow_absences "
                          "(summary/tensorflow_ops.hpp) does not say why it has no counterpart")
    if len(declared) < 70:
        failed.append(f"only {len(declared)} ops were found in the headers")
    idle = set(ops) - used
    if idle:
        failed.append(f"tests/golden/tensorflow_ops.txt holds ops that no case writes: {sorted(idle)}")
    if failed:
        sys.exit("\n".join(failed))
    print(f"{results} results; every case is TensorFlow's")


main()
