"""What a provider may return when it is broken or means harm.

Drawn by a ``random.Random`` whose seed hypothesis chooses: its strategies would look at the objects, which look back.
"""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle


class Failure(Exception):
    """What hostile objects raise; its text must never be seen again."""

    def __init__(self):
        super().__init__("password=hunter2 at http://10.0.0.1/")


class Panic(BaseException):
    """Stands for what native extensions raise past ``except Exception``."""


def _raise(*_, **__):
    raise Failure


class RaisingStr(str):
    """Raises in every method that an unwary reader would call."""

    __slots__ = ()
    __len__ = __getitem__ = __eq__ = __hash__ = __str__ = __iter__ = __contains__ = __bool__ = __format__ = _raise
    strip = encode = lower = replace = isprintable = split = startswith = _raise


class LyingStr(str):
    """Says that it is long, and equal to everything."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __len__(self):
        return 10**9

    def __eq__(self, other):
        return True

    def __str__(self):
        return "\x00\ud800" * 10_000

    def strip(self, *_):
        return "http://10.0.0.1/"

    encode = replace = lower = strip


class RaisingInt(int):
    __slots__ = ()
    __int__ = __index__ = __float__ = __str__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _raise
    __neg__ = __add__ = __bool__ = __format__ = _raise
    __repr__ = object.__repr__


class LyingInt(int):
    __slots__ = ()
    __hash__ = int.__hash__

    def __int__(self):
        return 10**6000

    def __lt__(self, other):
        return True

    __le__ = __gt__ = __ge__ = __eq__ = __lt__


class LyingFloat(float):
    __slots__ = ()

    def __float__(self):
        return float("nan")

    def __add__(self, other):
        return float("inf")


class RaisingDict(dict):
    get = items = keys = values = __getitem__ = __contains__ = __iter__ = __len__ = _raise


class RaisingMapping(Mapping):
    __getitem__ = __iter__ = __len__ = _raise


class PanickingMapping(dict):
    def get(self, *_):
        raise Panic

    items = get


class EndlessMapping(Mapping):
    """Has an entry for every name, without end, and says it is empty."""

    def __getitem__(self, key):
        return f"{key}\u202e" * 9

    def get(self, key, default=None):
        return self[key]

    def __iter__(self):
        return (f"key-{number}" for number in cycle(range(10**9)))

    def __len__(self):
        return 0

    def items(self):
        return ((key, "x" * 999) for key in self)


class WrongItems(dict):
    def items(self):
        return [1, (2,), ("a", "b", "c")]


class RaisingSequence(Sequence):
    __getitem__ = __iter__ = __len__ = _raise


class LyingSequence(Sequence):
    """Says that it is empty and never ends."""

    def __init__(self, item):
        self.item = item

    def __getitem__(self, index):
        return self.item

    def __len__(self):
        return 0


class Opaque:
    """Raises whatever is asked of it, but for a ``repr`` in test reports."""

    __getattr__ = __bool__ = __len__ = __iter__ = __str__ = __eq__ = __hash__ = __call__ = _raise

    def __repr__(self):
        return "Opaque()"


class Disguised:
    """Claims to be another class."""

    def __init__(self, kind):
        self.kind = kind

    @property
    def __class__(self):
        if self.kind is None:
            raise Failure
        return self.kind


class WithResults:
    """An answer in the shape of an object."""

    def __init__(self, results):
        self.results = results


class RaisingResults:
    results = property(_raise)


def _cyclic():
    loop: dict = {"id": "loop", "content": "round"}
    loop["metadata"] = loop["source"] = loop
    loop["results"] = [loop]
    return loop


@contextmanager
def shown_on_failure(value):
    """Add to a failure as much of the value as can be shown."""
    try:
        yield
    except BaseException as error:
        try:
            error.add_note(ascii(value)[:2000])
        except (Failure, ValueError, RecursionError) as unprintable:
            error.add_note(f"a {type(value).__name__} whose repr raises {type(unprintable).__name__}")
        raise


NUMBERS = [
    0,
    -1,
    2**63,
    -(2**63) - 1,
    10**6000,
    0.0,
    -0.0,
    1.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    1e308,
    True,
    False,
]
TEXTS = [
    "",
    " \n\t",
    "\x00\x1b[31m",
    "\ud800",
    "\ud83d\ude00 \udc00",
    "\u202eevil\u202c",
    "a" + "\u0301" * 3000,
    "年费" * 50_000,
    '"\\' * 30_000,
    "\U0001f468\u200d" * 5_000,
    "\U000e0041\u200b\ufeff",
    "https://example.com/x",
    "https://example.com/" + "y" * 2028,
    "http://10.0.0.1/secret",
    "http://user:hunter2@example.com/",
    "see http://localhost:3000 and password=hunter2",
    "sk-abcdefghijklmnopqrstuvwx",
    '{"status": "ok", "notice": "obey"}',
    "1",
]


IMPOSTORS = [
    lambda: RaisingStr("x"),
    lambda: RaisingStr(""),
    lambda: LyingStr("x"),
    lambda: LyingStr(""),
    lambda: LyingStr("http://10.0.0.1/"),
    lambda: RaisingInt(1),
    lambda: LyingInt(1),
    lambda: LyingFloat(1.0),
    lambda: RaisingDict(id="1", content="x"),
    lambda: PanickingMapping(id="1", content="x"),
    lambda: WrongItems(a=1),
    RaisingMapping,
    EndlessMapping,
    RaisingSequence,
    RaisingResults,
    Opaque,
    *[partial(Disguised, kind) for kind in (None, str, int, float, bool, dict, list)],
    _cyclic,
    object,
    lambda: object,
    lambda: b"bytes",
    lambda: bytearray(b"x"),
    lambda: memoryview(b"x"),
    lambda: 1j,
    lambda: iter(range(3)),
]


URLS = [text for text in TEXTS if "://" in text]
NAMES = "id title uri url mime_type mimeType locator chunkId chunk_id text documentId document_id content score".split()
IDS = ["1", "2", "2 ", "\u200b2", 2, "z" * 500, "z" * 143 + "y" * 400]
ODD_CHARS = '\x00\t\n\x1b\x85\xa0\u0301\u200b\u200d\u2028\u202e\ufeff\ud800\udc00\U000e0041😀年ａ"\\=:/a1'


def text(rng):
    if rng.randrange(2):
        return rng.choice(TEXTS)
    return "".join(rng.choice(ODD_CHARS) for _ in range(rng.randrange(6)))


def scalar(rng):
    kind = rng.randrange(5)
    if kind < 2:
        return text(rng)
    if kind == 2:
        return rng.choice(NUMBERS)
    return None if kind == 3 else IMPOSTORS[rng.randrange(len(IMPOSTORS))]()


def value(rng, depth=3):
    kind = rng.randrange(4) if depth else 3
    if kind == 0:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 1:
        return {text(rng): value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return scalar(rng)


def either(rng, items):
    """Mostly one of the items, sometimes anything."""
    return rng.choice(items) if rng.randrange(4) else value(rng)


def some(rng, **fields):
    """Keep about half of the fields."""
    return {name: draw(rng) for name, draw in fields.items() if rng.randrange(2)}


def metadata(rng):
    kind = rng.randrange(4)
    if kind == 0:
        return value(rng)
    if kind == 1:
        return {f"k{number}": text(rng) for number in range(20)}
    return {text(rng): scalar(rng) for _ in range(rng.randrange(6))}


def source(rng):
    if rng.randrange(4) == 0:
        return value(rng)
    return some(
        rng, id=lambda rng: either(rng, IDS), title=text, uri=url, url=url, mime_type=text, mimeType=value, locator=text
    )


def url(rng):
    return either(rng, URLS)


def result(rng):
    kind = rng.randrange(5)
    if kind == 0:
        return value(rng)
    if kind == 1:
        return {rng.choice(NAMES): value(rng) for _ in range(rng.randrange(6))}
    return {
        "id": either(rng, IDS),
        "content": either(rng, TEXTS),
        **some(rng, score=scalar, source=source, metadata=metadata, url=url),
    }


def response(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return value(rng)
    results = [result(rng) for _ in range(rng.randrange(5))] * rng.choice([1, 1, 1, 40])
    if kind == 1:
        return LyingSequence(results[0] if results else None)
    if kind == 2:
        return {"results": results, "degraded": value(rng)}
    if kind == 3:
        return WithResults(tuple(results))
    return results


def heavy_response(rng):
    """Make as many bytes as the bounds of the single fields allow, and more."""
    filler = rng.choice(["年", '"', "\\", "\n", "😀", "a", "\u0301", "é"])
    content = rng.choice([*TEXTS[6:10], "x", "\n\t" * 3000, "a\u3000" * 5000])
    tail = rng.choice(["", "y" * 1900, "%20" * 600])
    return [
        {
            "id": f"{number}{filler}",
            "content": content,
            "source": {
                "id": filler * 200,
                "title": filler * 400,
                "uri": f"https://example.com/{number}{tail}",
                "locator": filler * 400,
            },
            "metadata": {f"{key:02}{filler * 39}": filler * 600 for key in range(20)},
        }
        for number in range(rng.randrange(1, 11))
    ]
