"""The numbers, texts and bytes that mutants are given: those at the borders of what code expects, and any."""

from __future__ import annotations

from random import Random

# Integers at the borders of types and of what memory holds.
INTEGERS = (
    0,
    1,
    -1,
    2,
    3,
    4,
    5,
    7,
    8,
    16,
    63,
    64,
    65,
    100,
    127,
    128,
    255,
    256,
    1000,
    4096,
    65535,
    65536,
    10**6,
    -2,
    -3,
    -128,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32 - 1,
    2**32,
    2**53,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64 - 1,
)

# Floats that are special to someone.
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-8, 1e30, 3.4e38, 1e300, float("inf"), -float("inf"), float("nan"))

# Names that are hard to take, and names that mean something.
TEXTS = (
    "",
    "^",
    ":",
    ":0",
    "x:0",
    "x:1",
    "x:-1",
    "x:99999999999999999999",
    "x:²",
    "^x:1",
    "a,b",
    " ",
    "\n",
    "\x1b[31m",
    "é",
    "\ud7ff",
    "a" * 300,
    "..",
    "../..",
    "/etc/hostname",
    "%s",
    "{}",
    "main",
    "serve",
    "serving_default",
    "__saved_model_init_op",
    "_XlaMustCompile",
    "Const",
    "Placeholder",
    "Identity",
    "While",
    "If",
    "PartitionedCall",
    "NoOp",
    "VarHandleOp",
)


def integer(random: Random, lowest: int, highest: int, known: int) -> int:
    """Returns an integer of a range: near the one it replaces, at a border, or any."""
    kind = random.random()
    if kind < 0.4:
        value = known + random.choice((-2, -1, 1, 1, 2))
    elif kind < 0.8:
        value = random.choice(INTEGERS)
    elif kind < 0.9:
        value = -known
    else:
        value = random.randint(lowest, highest)
    return min(max(value, lowest), highest)


def text(random: Random, known: str) -> str:
    """Returns a text: the one it replaces with a small change, or another."""
    kind = random.random()
    if kind < 0.4 or not known:
        return random.choice(TEXTS)
    if kind < 0.55:
        return known + random.choice((":0", ":1", ":7", "_1", " ", "x", "/x"))
    if kind < 0.65:
        return "^" + known
    place = random.randrange(len(known))
    if kind < 0.85:
        return known[:place] + known[place + 1 :]
    return known[:place] + random.choice("aZ0_:^/é,.-") + known[place:]


def content(random: Random, data: bytes) -> bytes:
    """Returns bytes with one change: a bit, a byte, a piece dropped, doubled or copied, or the end missing."""
    if not data:
        return random.randbytes(random.choice((1, 4, 64)))
    changed = bytearray(data)
    place = random.randrange(len(data))
    size = min(random.choice((1, 1, 2, 4, 8, 16, 64, 256)), len(data) - place)
    kind = random.randrange(8)
    if kind <= 1:
        changed[place] ^= 1 << random.randrange(8)
    elif kind == 2:
        changed[place] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    elif kind == 3:
        del changed[place : place + size]
    elif kind == 4:
        changed[place:place] = changed[place : place + size]
    elif kind == 5:
        other = random.randrange(len(data))
        changed[place : place + size] = data[other : other + size]
    elif kind == 6:
        number = random.choice(INTEGERS) & (1 << 64) - 1
        changed[place : place + 4] = number.to_bytes(8, "little")[: random.choice((2, 4, 8))]
    else:
        del changed[place:]
    return bytes(changed)
