"""Writes numpy_cases.jsonl: what NumPy answers where the array API standard has an opinion.

    python numpy_cases.py > numpy_cases.jsonl

A case is one line: op, arguments, and NumPy's answer in `want`. Where arrays differ on purpose, `ours` says what they
answer instead and `why` gives the reason; the list of these is part of the module docs of `steersman::array`.
"""

import json
import warnings

import numpy as np

warnings.simplefilter("ignore")
NAN, INF = float("nan"), float("inf")
TYPES = {"bool": np.bool_, "u8": np.uint8, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
NAMES = {np.dtype(v).name: k for k, v in TYPES.items()}


def number(x):
    x = x.item() if hasattr(x, "item") else x
    if isinstance(x, float):
        if x != x:
            return "nan"
        if x in (INF, -INF):
            return "inf" if x > 0 else "-inf"
        return "-0" if x == 0 and np.signbit(x) else x
    return x


def pack(a):
    a = np.asarray(a)
    return {"dtype": NAMES.get(a.dtype.name, a.dtype.name), "shape": list(a.shape), "data": [number(x) for x in a.ravel()]}


def arg(a):
    return pack(a) if isinstance(a, np.ndarray) else {"number": number(a)}


def case(op, args, function, ours=None, why=None, **more):
    try:
        want = pack(function(*args))
    except (ValueError, TypeError, IndexError, OverflowError, np.exceptions.AxisError, ZeroDivisionError):
        want = "error"
    line = {"op": op, "args": [arg(a) for a in args], **more, "want": want}
    if why:
        line |= {"ours": ours if isinstance(ours, str) else pack(ours), "why": why}
    print(json.dumps(line))


def v(dtype, *numbers):
    return np.array(numbers, dtype=TYPES[dtype])


def z(dtype, *shape):
    return np.zeros(shape, dtype=TYPES[dtype])


EDGES = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e10, INF, -INF, NAN]

# One operand.
for d in ["f32", "f64"]:
    x = v(d, *EDGES)
    for op, f in {"floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc, "sign": np.sign, "abs": np.abs,
                  "neg": np.negative, "sqrt": np.sqrt, "exp": np.exp, "ln": np.log, "log2": np.log2, "log10": np.log10,
                  "expm1": np.expm1, "log1p": np.log1p, "tanh": np.tanh, "atan": np.arctan, "asin": np.arcsin,
                  "acos": np.arccos, "is_nan": np.isnan, "is_inf": np.isinf, "is_finite": np.isfinite,
                  "square": np.square, "sinh": np.sinh, "cosh": np.cosh}.items():
        case(op, [x], f)
for d in ["u8", "i32", "i64"]:
    x = v(d, 0, 1, 7, 100) if d == "u8" else v(d, 0, 1, -7, 100, np.iinfo(TYPES[d]).min)
    for op, f in {"floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc, "sign": np.sign, "abs": np.abs,
                  "neg": np.negative, "is_nan": np.isnan, "is_inf": np.isinf, "is_finite": np.isfinite,
                  "square": np.square}.items():
        case(op, [x], f)
    for op, f in {"sqrt": np.sqrt, "exp": np.exp}.items():
        case(op, [x], f, "error", "functions of reals take floats: cast first")
case("not", [v("bool", True, False)], np.logical_not)
case("neg", [v("bool", True, False)], np.negative)

# Two operands.
signs = [v("i32", 7, -7, 7, -7, 6, -6, 0, 5), v("i32", 2, 2, -2, -2, 3, 3, 3, 0)]
for op, f in {"floor_divide": np.floor_divide, "remainder": np.remainder}.items():
    for d in ["i32", "i64", "f32", "f64"]:
        case(op, [s.astype(TYPES[d]) for s in signs], f)
    case(op, [v("u8", 7, 6, 250, 5), v("u8", 2, 3, 7, 0)], f)
    case(op, [v("i32", 7, -7), 3], f)
    case(op, [v("f64", 1.0, 0.3, -0.3, 5.0, -5.0), v("f64", 0.1, 0.1, 0.1, INF, INF)], f)
    case(op, [v("f64", 0.0, -0.0, 0.0, 2.0, -2.0, INF, 1.0, NAN), v("f64", 5.0, 5.0, -5.0, 0.0, 0.0, 2.0, NAN, 1.0)], f)
    case(op, [v("bool", True), v("bool", True)], lambda a, b: 1 / 0)
    case(op, [z("i32", 2), z("i32", 3)], f)
    case(op, [v("i32", 7, -8), v("f64", 2.0)], f)
case("rem", signs, np.fmod)
case("div", [v("f32", 1, -1, 0, INF), v("f32", 0, 0, 0, INF)], np.divide)
case("div", signs, lambda a, b: np.trunc(np.divide(a, b, where=b != 0, out=np.zeros(a.shape))).astype(np.int32))
for d in ["u8", "i32", "i64"]:
    i = np.iinfo(TYPES[d])
    ends = v(d, i.max, i.min, i.max)
    for op, f in {"add": np.add, "sub": np.subtract, "mul": np.multiply}.items():
        case(op, [ends, v(d, 1, 1, 3)], f)
    case("pow", [v(d, 0, 1, 2, 3), 5], np.power)
    case("pow", [v(d, 0, 1, 2, 3), 0], np.power)
    case("pow", [v(d, 2, 3), v(d, 2, 3)], np.power, "error", "powers of integers by arrays: cast first")
case("pow", [v("i32", 2, 3), 40], np.power)
case("pow", [v("i32", 2, 3), -1], np.power)
case("pow", [v("f64", 2, -2, 0, 0, -8, NAN, 1, INF), v("f64", -1, 3, 0, -1, 1 / 3, 0, NAN, -1)], np.power)
nans = [v("f32", NAN, 1, NAN, -INF, INF, 2), v("f32", 1, NAN, NAN, 0, 0, 2)]
for op, f in {"minimum": np.minimum, "maximum": np.maximum, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
              "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}.items():
    case(op, nans, f)
    case(op, [v("i32", -1, 2), v("u8", 255, 2)], f)
case("atan2", [v("f64", 0.0, -0.0, 1, -1, 0.0, -0.0), v("f64", 1, 1, 0, 0, -1, -1)], np.arctan2)
for op, f in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.items():
    case(op, [v("bool", 0, 0, 1, 1), v("bool", 0, 1, 0, 1)], f)
case("add", [v("bool", True), v("bool", True)], np.add, "error", "bools do not add: cast first")
case("sub", [v("bool", True), v("bool", True)], np.subtract)
case("add", [v("bool", True, False), v("i32", 1, 2)], np.add)
case("mul", [v("bool", True, False), v("f32", 1.5, 2)], np.multiply)
case("add", [v("i64", 1), v("f32", 0.5)], np.add, v("f32", 1.5), "an integer with a float gives that float's type")
case("add", [v("u8", 200), v("i32", 100)], np.add)
case("add", [v("u8", 200), 100], np.add)
case("add", [v("u8", 200), 300], np.add)
case("add", [v("u8", 200), -1], np.add)
case("add", [v("f32", 1.5), 2], np.add)
case("add", [v("f32", 1.5), 1e-3], np.add)
case("add", [v("i32", 1), 2.5], np.add, "error", "numbers take the array's type and are never cut off")
case("add", [v("i32", 1), 2.0], np.add, v("i32", 3), "numbers take the array's type and are never cut off")
case("add", [v("bool", True), 1], np.add, "error", "bools do not add: cast first")
case("lt", [v("u8", 5), 300], np.less, "error", "numbers take the array's type and are never cut off")

# Broadcasting.
for a, b in [((2, 3), (3,)), ((2, 1), (1, 3)), ((4, 1, 3), (2, 1)), ((), (2,)), ((0, 3), (1, 3)), ((2, 0), (2, 1)), ((1,), (0,)),
             ((2, 3), (2,)), ((2, 3), (3, 2)), ((0,), (2,)), ((), ()), ((1, 1, 1), (5,))]:
    n = lambda s: np.arange(np.prod(s, dtype=int), dtype=np.float32).reshape(s)
    case("add", [n(a), n(b)], np.add)
    case("where", [np.ones(a, bool), n(a), n(b)], np.where)
for to in [(2, 3), (3, 3), (2, 3, 3), (3,), (0, 3), ()]:
    case("broadcast_to", [np.arange(3, dtype=np.int32)], lambda a: np.broadcast_to(a, to), to=to)

# Three operands.
case("where", [v("bool", 1, 0), v("i32", 1, 2), v("f64", 0.5, 1.5)], np.where)
case("where", [v("bool", 1, 0), v("f32", NAN, 1), 0.0], np.where)
case("clamp", [v("f64", NAN, -1, 0.5, 2, INF), 0.0, 1.0], np.clip)
case("clamp", [v("f64", 0.5, 0.5, 0.5), v("f64", NAN, 0, 0.6), v("f64", 1, NAN, 0.7)], np.clip)
case("clamp", [v("f32", 0.5, 5.0), v("f32", 2.0), v("f32", 1.0)], np.clip)
case("clamp", [v("i32", -5, 5, 50), 0, 9], np.clip)

# Reductions.
cube = (np.arange(12) * 7 % 11).reshape(2, 3, 2)
reductions = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all, "mean": np.mean,
              "var": np.var, "std": np.std}
for op, f in reductions.items():
    for axis in [None, 0, -1, (0, 2), (-1, 0), (), 3, -4, (0, 0), (0, -3)]:
        listed = None if axis is None else [axis] if isinstance(axis, int) else list(axis)
        for keep in [False, True]:
            case(op, [cube.astype(np.float32)], lambda a: f(a, axis=axis, keepdims=keep), axis=listed, keep=keep)
    for shape in [(0,), (0, 3), (3, 0), (2, 0, 3)]:
        for axis in [None, 0, len(shape) - 1]:
            listed = None if axis is None else [axis]
            case(op, [z("f32", *shape)], lambda a: f(a, axis=axis), axis=listed)
    case(op, [np.array(2.5, dtype=np.float32)], f, axis=None)
    case(op, [v("f32", 1, NAN, 3)], f, axis=None)
    case(op, [v("f32", 1, INF, -INF)], f, axis=None)
for op in ["sum", "prod"]:
    case(op, [v("u8", 200, 100)], lambda a: reductions[op](a).astype(np.int64), axis=None)
    case(op, [v("i32", 2**31 - 1, 2)], reductions[op], axis=None)
    case(op, [v("i64", 2**63 - 1, 2)], reductions[op], axis=None)
    case(op, [v("bool", True, True, False)], reductions[op], axis=None)
    case(op, [z("bool", 0)], reductions[op], axis=None)
    case(op, [z("i32", 0, 2)], lambda a: reductions[op](a, axis=0), axis=[0])
for op in ["any", "all"]:
    case(op, [v("i32", 0, 2)], reductions[op], axis=None)
    case(op, [v("f64", -0.0, NAN)], reductions[op], axis=None)
for op in ["max", "min"]:
    case(op, [v("i64", -(2**63), 2**63 - 1)], reductions[op], axis=None)
case("mean", [v("i32", 1, 2)], np.mean, "error", "functions of reals take floats: cast first")
for op, f in {"argmax": np.argmax, "argmin": np.argmin}.items():
    case(op, [v("f32", 3, 1, 3, 1)], f, axis=None)
    case(op, [v("f32", 3, NAN, 9, NAN)], f, axis=None)
    case(op, [v("f32", -INF, INF, -INF, INF)], f, axis=None)
    case(op, [v("f32", 0.0, -0.0)], f, axis=None)
    case(op, [cube.astype(np.int32)], f, axis=None)
    for axis in [0, 1, -1, 5]:
        for keep in [False, True]:
            case(op, [cube.astype(np.int64)], lambda a: f(a, axis=axis, keepdims=keep), axis=[axis], keep=keep)
    case(op, [z("f32", 0)], f, axis=None)
    case(op, [z("f32", 3, 0)], lambda a: f(a, axis=0), axis=[0])
    case(op, [np.array(4.0)], f, axis=None)

# Shapes.
grid = np.arange(20, dtype=np.int32).reshape(4, 5)
for parts in [[[None, None, -1]], [[3, 0, -1]], [[3, None, -2], [None, None, 3]], [[-100, 100, 1]], [[100, -100, -1]], [[2, 2, 1]],
              [[3, 1, 1]], [[0, 4, 100]], [[-1, None, -100]], [[None, None, 1], [4, 0, -3]], [[0, 0, -1]], [[None, None, 0]],
              [[None, None, 1]] * 3, [[-2, -1, 1], [-3, None, 2]]]:
    case("slice", [grid], lambda a: a[tuple(slice(*p) for p in parts)], slices=parts)
for axis, index in [(0, 0), (0, -1), (1, 4), (1, 5), (0, -5), (2, 0)]:
    case("index", [grid], lambda a: np.take(a, index, axis=axis), axis=axis, index=index)
for to in [(20,), (2, -1), (-1,), (5, 4), (-1, -1), (3, -1), (2, 10, 1), (0, -1), (21,)]:
    case("reshape", [grid], lambda a: a.reshape(to), to=to)
case("reshape", [z("f32", 0, 3)], lambda a: a.reshape(3, 0), to=[3, 0])
case("reshape", [z("f32", 0, 3)], lambda a: a.reshape(-1), to=[-1])
case("reshape", [z("f32", 0, 3)], lambda a: a.reshape(0, -1), to=[0, -1])
case("reshape", [v("f32", 5)], lambda a: a.reshape(()), to=[])
for axes in [(1, 0), (0, 1), (-1, 0), (0, 0), (0,), (0, 2)]:
    case("permute", [grid], lambda a: np.transpose(a, axes), axes=axes)
thin = np.arange(3, dtype=np.int32).reshape(1, 3, 1)
for axis in [0, -1, 2, (0, 2), (-3, -1), 1, 3, None, (0, 0)]:
    listed = None if axis is None else [axis] if isinstance(axis, int) else list(axis)
    case("squeeze", [thin], lambda a: np.squeeze(a, axis), axis=listed)
for axis in [0, 1, 2, -1, -3, 3, -4]:
    case("expand", [grid], lambda a: np.expand_dims(a, axis), axis=axis)
for axis in [0, 1, -1, None, (0, 1), 2]:
    listed = None if axis is None else [axis] if isinstance(axis, int) else list(axis)
    case("flip", [grid], lambda a: np.flip(a, axis), axis=listed)
two = [np.array([[1, 2]], np.int32), np.array([[0.5, 1.5], [2.5, 3.5]])]
case("concat", two, lambda *a: np.concatenate(a, 0), axis=0)
case("concat", two, lambda *a: np.concatenate(a, 1), axis=1)
case("concat", [v("u8", 1), v("bool", True), v("i32", -3)], lambda *a: np.concatenate(a, 0), axis=0)
case("concat", [z("f32", 0), v("f32", 1)], lambda *a: np.concatenate(a, -1), axis=-1)
case("concat", [np.array(1.0), np.array(2.0)], lambda *a: np.concatenate(a, 0), axis=0)
for axis in [0, 1, -1, 2]:
    case("stack", [v("u8", 1, 2), v("f32", 0.5, 1.5)], lambda *a: np.stack(a, axis), axis=axis)
case("stack", [v("u8", 1, 2), v("u8", 1)], lambda *a: np.stack(a, 0), axis=0)
case("stack", [np.array(1.0), np.array(2.0)], lambda *a: np.stack(a, 0), axis=0)

# Products.
for a, b in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (4, 3, 2)),
             ((3,), (2, 3, 2)), ((2, 2, 3), (3,)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0,), (0,)), ((2, 3), (2, 3)), ((), (3,)),
             ((2, 2, 3), (3, 3, 2)), ((2,), (3,))]:
    n = lambda s: (np.arange(np.prod(s, dtype=int)) % 5 - 2).reshape(s)
    for d in ["f32", "i32"]:
        case("matmul", [n(a).astype(TYPES[d]), n(b).astype(TYPES[d])], np.matmul)
case("matmul", [v("i32", 1, 2), v("f64", 0.5, 0.25)], np.matmul)

# Casts.
case("cast", [v("f64", 1.9, -1.9, 0.5, -0.5, 255, 2**31 - 1)], lambda a: a.astype(np.int32), to="i32")
case("cast", [v("f64", 3e9, -3e9, NAN, INF)], lambda a: a.astype(np.int32), v("i32", 2**31 - 1, -(2**31), 0, 2**31 - 1),
     "casts that the standard leaves open saturate, NaN gives 0", to="i32")
case("cast", [v("i64", 300, -1, 2**40 + 5)], lambda a: a.astype(np.uint8), to="u8")
case("cast", [v("i64", 2**31, -(2**31) - 1)], lambda a: a.astype(np.int32), to="i32")
case("cast", [v("f32", 0.0, -0.0, NAN, 0.5)], lambda a: a.astype(bool), to="bool")
case("cast", [v("bool", 1, 0)], lambda a: a.astype(np.float32), to="f32")
case("cast", [v("i64", 2**53 + 1, 2**62 + 1)], lambda a: a.astype(np.float64), to="f64")
case("cast", [v("i64", 2**24 + 1, -(2**53) - 1)], lambda a: a.astype(np.float32), to="f32")

# From nothing.
for d, start, stop, step in [("f64", 0.0, 1.0, 0.1), ("f64", 1.0, 0.0, -0.25), ("f64", 0.0, 1.0, -0.1), ("f64", 5.0, 5.0, 1.0),
                             ("f32", 0.0, 0.7, 0.1), ("f64", 0.5, 3.0, 1.0), ("f64", NAN, 1.0, 1.0), ("f64", 0.0, NAN, 1.0),
                             ("f64", 0.0, 1.0, NAN), ("f64", 0.0, 1.0, 0.0), ("i64", 0, 10, 3), ("i64", 10, 0, -3),
                             ("i64", 0, 10, -1), ("i64", -5, 5, 2), ("i32", 0, 0, 1), ("i64", 0, 1, 0)]:
    case("arange", [], lambda: np.arange(start, stop, step, dtype=TYPES[d]), dtype=d, numbers=[number(x) for x in (start, stop, step)])
for d, start, stop, n in [("f64", 0.0, 1.0, 0), ("f64", 2.0, 3.0, 1), ("f64", 0.0, 1.0, 2), ("f64", 0.0, 1.0, 11), ("f32", -1.0, 1.0, 7),
                          ("f64", 1.0, -1.0, 5), ("f32", -1e10, 1e-10, 4), ("f64", 0.1, 0.7, 50), ("f64", 3.0, 3.0, 3)]:
    case("linspace", [], lambda: np.linspace(start, stop, n, dtype=TYPES[d]), dtype=d, numbers=[start, stop, n])
for n in range(40, 60):
    case("linspace", [], lambda: np.linspace(0, 7, n, dtype=np.int32), dtype="i32", numbers=[0, 7, n])
for rows, columns, k in [(3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 3, 5), (3, 3, -3), (0, 2, 0), (2, 0, 0), (1, 1, 0)]:
    case("eye_at", [], lambda: np.eye(rows, columns, k, dtype=np.int32), numbers=[rows, columns, k])
