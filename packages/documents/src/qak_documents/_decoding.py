"""Bytes of a text file to text."""

import codecs
import re

from qak_documents._document import clean
from qak_documents._errors import DamagedDocument, UnsupportedDocument

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 64 * 1024
_MAX_STRAY_CONTROLS = 4
_MIN_GUESS_BYTES = 16  # beyond ASCII; statistics of fewer say nothing
_HTML_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([a-zA-Z0-9_:-]{1,40})""", re.IGNORECASE
)
# Each encoding with the character set whose first level holds what people write, and the lead bytes of that level.
_CJK = (
    ("gb18030", "gb2312", 0xB0, 0xD7),
    ("big5", "big5", 0xA4, 0xC6),
    ("shift_jis", "shift_jis", 0x88, 0x97),
)
_PUNCTUATION = frozenset("，。、；：？！“”‘’（）《》「」『』【】…—　・ー～·")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def decode_text(data: bytes, *, html: bool = False) -> str:
    r"""Return the text of ``data`` in the first encoding that gives some.

    Tried are byte order mark, declared charset (HTML), UTF-8, GB18030, Big5, Shift-JIS, then the rest. A legacy
    encoding is taken when most of what it gives are characters in everyday use; the name of the encoding alone proves
    little, since almost any bytes are valid GB18030. Line ends come back as ``\n``.

    Raises:
        UnsupportedDocument: the bytes are not text.
        DamagedDocument: the byte order mark promises an encoding that the rest breaks.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            try:
                return clean(data.decode(encoding))
            except UnicodeDecodeError as error:
                raise DamagedDocument(
                    f"The file begins with the byte order mark of {encoding} but is not valid {encoding}; "
                    "save it again as UTF-8."
                ) from error
    if b"\0" in data:
        raise UnsupportedDocument("The file holds NUL bytes, so it is not text, nor a binary format read here.")
    if html and (declared := _HTML_CHARSET.search(data[:4096])):
        try:
            return clean(data.decode(declared[1].decode("ascii")))
        except (LookupError, UnicodeError):  # a codec may fail with either error of Unicode
            pass  # a wrong declaration is common; the bytes decide
    text = _utf8(data) or _cjk(data) or _other(data)
    controls = len(_CONTROL.findall(text, 0, _SAMPLE_BYTES))
    if controls > _MAX_STRAY_CONTROLS and controls * 50 > min(len(text), _SAMPLE_BYTES):
        raise UnsupportedDocument("The file is full of control characters, so it is not text.")
    return clean(text)


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        broken = text.count("\ufffd")
        return text if broken * 50 <= _beyond_ascii(data) else None  # UTF-8 with a few bytes torn, not another encoding


def _cjk(data: bytes) -> str | None:
    best, best_score = None, 0.6
    for encoding, charset, first, last in _CJK:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        sample = [char for char in text[:8192] if char > "\x7f"]
        score = sum(_is_common(char, charset, first, last) for char in sample) / (len(sample) or 1)
        if score > best_score:
            best, best_score = text, score
    return best


def _is_common(char: str, charset: str, first: int, last: int) -> bool:
    if char in _PUNCTUATION or (charset == "shift_jis" and "\u3041" <= char <= "\u30ff"):
        return True
    lead = char.encode(charset, "ignore")[:1]
    return bool(lead) and first <= lead[0] <= last


def _other(data: bytes) -> str:
    encodings = ["cp1252"]  # Latin-1 with the quotation marks people use
    if _beyond_ascii(data[:_SAMPLE_BYTES]) >= _MIN_GUESS_BYTES:
        from charset_normalizer import from_bytes  # here, because loading its tables takes longer than most files

        guess = from_bytes(data[:_SAMPLE_BYTES], cp_exclusion=["utf_7"], enable_fallback=False).best()
        if guess is not None:
            encodings.insert(0, guess.encoding)
    for encoding in encodings:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def _beyond_ascii(data: bytes) -> int:
    return len(data) - len(data.translate(None, bytes(range(128, 256))))
