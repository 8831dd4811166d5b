"""Kafka messages as typed classes, and the codecs that are compiled from them.

A class body is the schema: annotations name Kafka's wire types, `field()` says in which versions a field
exists. Every field has a default, Kafka's own or the zero of its type, so constructors take only what
matters. There is one encoder and one decoder per class and version, compiled on first use; nothing is
generated on disk.

    type              fixed encoding              flexible encoding (versions from `flexible` on)
    Int8 .. Float64   big endian                  the same
    Uuid              16 bytes                    the same
    String            int16 length, UTF-8         uvarint length + 1, UTF-8
    Bytes, Records    int32 length, bytes         uvarint length + 1, bytes
    list[X]           int32 count, elements       uvarint count + 1, elements
    struct            its fields                  its fields, then a uvarint count of tagged fields
    struct | None     int8 -1, or 1 and fields    the same
    tagged field      -                           uvarint tag, uvarint size, value
    null              length or count -1          0

A message is valid iff every length and count lies within the bytes that are there, every tagged field is as
long as it says, every string is UTF-8 of at most 32,767 bytes, nothing is null that may not be, there are
at most `ELEMENTS_MAX` array elements and tagged fields. Bytes after it are left alone. All else raises `Malformed`,
and nothing is allocated for it. Bytes and records are slices of the buffer: whoever keeps one keeps the buffer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from struct import calcsize
from struct import error as StructError
from typing import Any, NamedTuple, TypeAlias, TypeVar, dataclass_transform

from headwater.wire.codec import Constructor, Decoder, Encoder, Source
from headwater.wire.primitives import Malformed, Piece

__all__ = ["Malformed", "decode", "encode", "field", "message", "schema_of", "struct"]

LAST = 32767  # "and every later version"
NEVER = LAST + 1

Int8: TypeAlias = int
Int16: TypeAlias = int
Uint16: TypeAlias = int
Int32: TypeAlias = int
Int64: TypeAlias = int
Float64: TypeAlias = float
Bool: TypeAlias = bool
Uuid: TypeAlias = bytes
String: TypeAlias = str
Bytes: TypeAlias = Piece
Records: TypeAlias = Piece
RecordPieces: TypeAlias = Piece | Sequence[Piece]  # Records that may be given in several pieces

ZERO_UUID = bytes(16)
_FORMATS = {
    "Int8": "b",
    "Int16": "h",
    "Uint16": "H",
    "Int32": "i",
    "Int64": "q",
    "Float64": "d",
    "Bool": "?",
    "Uuid": "16s",
}
_ZEROS = {"Float64": 0.0, "Bool": False, "Uuid": ZERO_UUID, "String": "", "Bytes": b"", "Records": None}
_MISSING: Any = object()

T = TypeVar("T")
_Encode: TypeAlias = Callable[[Any, bytearray, list[Piece]], None]
_Decode: TypeAlias = Callable[[memoryview, int], tuple[Any, int]]


class _Declared(NamedTuple):
    since: int = 0
    until: int = LAST
    default: Any = _MISSING
    tag: int | None = None
    nullable_since: int = 0
    ignorable: bool = False


def field(
    *,
    since: int = 0,
    until: int = LAST,
    default: Any = _MISSING,
    tag: int | None = None,
    nullable_since: int = 0,
    ignorable: bool = False,
) -> Any:
    """Says in which versions a field exists, as tagged field number `tag` if one is given.

    A field that is `| None` may be null from version `nullable_since` on. An `ignorable` one is left out of a
    version that lacks it whatever its value; any other must then have its default, or encoding raises.
    """
    return _Declared(since, until, default, tag, nullable_since, ignorable)


class Field:
    """One field of a message or struct, with its names resolved."""

    __slots__ = (
        "default",
        "fmt",
        "ignorable",
        "is_array",
        "is_nullable",
        "name",
        "nullable_since",
        "schema",
        "since",
        "tag",
        "type_name",
        "until",
    )

    def __init__(self, name: str, annotation: str, declared: Any, names: dict[str, Any]) -> None:
        if not isinstance(declared, _Declared):
            declared = _Declared(default=declared)
        type_name = annotation.removesuffix(" | None")
        self.name = name
        self.is_nullable = type_name != annotation
        self.is_array = type_name.startswith("list[")
        self.type_name = type_name[5:-1] if self.is_array else type_name
        if self.type_name == "RecordPieces":
            self.type_name = "Records"
        self.fmt = _FORMATS.get(self.type_name, "")
        is_struct = not self.fmt and self.type_name not in _ZEROS
        self.schema = schema_of(names[self.type_name]) if is_struct else None
        self.since, self.until, self.tag = declared.since, declared.until, declared.tag
        self.nullable_since = max(declared.since, declared.nullable_since) if self.is_nullable else NEVER
        self.ignorable = declared.ignorable
        self.default = self._zero() if declared.default is _MISSING else declared.default

    def _zero(self) -> Any:
        if self.is_array:
            return []
        if self.schema is not None:
            return self.schema.shared_default()
        return _ZEROS.get(self.type_name, 0)

    def exists_in(self, version: int) -> bool:
        return bool(self.since <= version <= self.until)

    def is_nullable_in(self, version: int) -> bool:
        return self.nullable_since <= version

    def least_bytes(self, version: int, flexible: bool) -> int:
        """The fewest bytes that the field can take, or one element of it if it is an array."""
        if self.fmt:
            return calcsize(self.fmt)
        if self.schema is not None:
            return self.schema.least_bytes(version, flexible)
        return 1 if flexible else 2 if self.type_name == "String" else 4


class Schema:
    """What a class declared, and its compiled codecs."""

    __slots__ = ("_default", "_fields", "_raw", "cls", "decoders", "encoders", "flexible", "key", "versions")

    def __init__(self, cls: type, raw: dict[str, tuple[str, Any]]) -> None:
        self.cls = cls
        self.key = -1
        self.versions = (0, LAST)
        self.flexible = NEVER
        self._raw = raw
        self._fields: tuple[Field, ...] | None = None
        self._default: Any = None
        self.encoders: dict[int, _Encode] = {}
        self.decoders: dict[int, _Decode] = {}

    @property
    def fields(self) -> tuple[Field, ...]:
        if self._fields is None:
            names = sys.modules[self.cls.__module__].__dict__
            self._fields = tuple(Field(name, *raw, names) for name, raw in self._raw.items())
        return self._fields

    def shared_default(self) -> Any:
        """The one instance that stands for "not set" in every field of this type; it refuses changes."""
        if self._default is None:
            body = {"__slots__": (), "__setattr__": _refuse_change}
            self._default = object.__new__(type(self.cls.__name__, (self.cls,), body))
            for each in self.fields:
                object.__setattr__(self._default, each.name, each.default)
        return self._default

    def least_bytes(self, version: int, flexible: bool) -> int:
        total = 1 if flexible else 0
        for each in self.fields:
            if not each.exists_in(version) or each.tag is not None:
                continue
            if each.is_array:
                total += 1 if flexible else 4
            elif each.schema is not None and each.is_nullable_in(version):
                total += 1
            else:
                total += each.least_bytes(version, flexible)
        return max(1, total)

    def constructor(self) -> Any:
        return _compiled(Constructor(self), "constructor")

    def encoder(self, version: int) -> _Encode:
        self.check(version)
        encoder: _Encode = _compiled(Encoder(self, version), "encoder")
        return self.encoders.setdefault(version, encoder)

    def decoder(self, version: int) -> _Decode:
        self.check(version)
        decoder: _Decode = _compiled(Decoder(self, version), "decoder")
        return self.decoders.setdefault(version, decoder)

    def check(self, version: int) -> None:
        low, high = self.versions
        if not low <= version <= high:
            raise ValueError(f"{self.cls.__name__} has versions {low} to {high}, not {version}")


def _compiled(source: Source, what: str) -> Any:
    place = f"<{what} of {source.schema.cls.__name__} v{source.version}>"
    exec(compile(str(source), place, "exec"), source.names)
    return source.names["compiled"]


def _refuse_change(self: Any, name: str, value: Any) -> None:
    raise AttributeError(f"this {type(self).__name__} is a shared default: assign a new one to the field")


class _Struct:
    """What every message and struct class can do. The constructor is compiled when it is first called."""

    __slots__ = ()
    __schema__: Schema

    def __init__(self, **values: Any) -> None:
        cls: Any = self.__schema__.cls
        cls.__init__ = self.__schema__.constructor()
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Struct) or other.__schema__ is not self.__schema__:
            return NotImplemented
        return all(getattr(self, each.name) == getattr(other, each.name) for each in self.__schema__.fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = []
        for each in self.__schema__.fields:
            value = getattr(self, each.name)
            if value != each.default:
                text = f"<{len(value)} bytes>" if isinstance(value, memoryview) else repr(value)
                shown.append(f"{each.name}={text}")
        return f"{self.__schema__.cls.__name__}({', '.join(shown)})"


@dataclass_transform(kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """A part of a message: its versions are those of the message it is in."""
    body = dict(cls.__dict__)
    annotations = body.get("__annotations__", {})
    raw = {name: (annotation, body.pop(name, _MISSING)) for name, annotation in annotations.items()}
    del body["__dict__"], body["__weakref__"]
    body["__slots__"] = tuple(annotations)
    slotted: Any = type(cls.__name__, (_Struct,), body)
    slotted.__schema__ = Schema(slotted, raw)
    return slotted  # type: ignore[no-any-return]


@dataclass_transform(kw_only_default=True)
def message(
    *, versions: tuple[int, int], key: int = -1, flexible: int = NEVER
) -> Callable[[type[T]], type[T]]:
    """A request or response of API `key`, or (without a key) a value that Kafka keeps in a record."""

    def declare(cls: type[T]) -> type[T]:
        slotted = struct(cls)
        schema = schema_of(slotted)
        schema.key, schema.versions, schema.flexible = key, versions, flexible
        return slotted

    return declare


def schema_of(cls: type) -> Schema:
    """The API key, versions and fields of a message class."""
    return cls.__schema__  # type: ignore[attr-defined, no-any-return]


def encode(message: object, version: int, into: bytearray | None = None) -> list[Piece]:
    """The message's bytes as pieces to be written in order; large records are passed through uncopied.

    `into` is a header that the first piece continues. A value that the version cannot carry raises
    ValueError, unless Kafka calls the field ignorable: then it is left out.
    """
    schema: Schema = message.__schema__  # type: ignore[attr-defined]
    encoder = schema.encoders.get(version) or schema.encoder(version)
    pieces: list[Piece] = []
    try:
        encoder(message, bytearray() if into is None else into, pieces)
    except (StructError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{schema.cls.__name__} cannot be encoded in version {version}: {error}") from error
    return pieces


def decode(cls: type[T], version: int, buffer: memoryview, offset: int = 0) -> T:
    """The message that stands in `buffer` at `offset`; `Malformed` if the bytes are anything else.

    What follows it is left alone, as Apache Kafka 4.3 does with a request that is longer than its message.
    The buffer has to be a view: slices of bytes would be copies.
    """
    schema: Schema = cls.__schema__  # type: ignore[attr-defined]
    decoder = schema.decoders.get(version) or schema.decoder(version)
    try:
        decoded, _ = decoder(buffer, offset)
    except (StructError, IndexError):
        raise Malformed(f"{cls.__name__} v{version} is cut short at {len(buffer)} bytes") from None
    except UnicodeDecodeError as error:
        raise Malformed(f"{cls.__name__} v{version} has a string that is not UTF-8: {error.reason}") from None
    return decoded  # type: ignore[no-any-return]
