"""Writes the source of the constructor, encoder and decoder of a message class; `schema` compiles them.

The result is straight-line code for one version: fields that the version lacks are not in it, neighbouring
numbers share one struct call, and so does the length that follows them. Nothing here sees a value.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from headwater.wire.primitives import ELEMENTS_MAX, NAMES, REQUEST_ELEMENTS_MAX, STRING_BYTES_MAX, Malformed

if TYPE_CHECKING:
    from headwater.wire.schema import Field, Schema

_NEVER: Any = object()


class Source:
    """The lines of a function that is being written, and the objects that they name."""

    def __init__(self, schema: Schema, version: int) -> None:
        self.schema = schema
        self.version = version
        self.flexible = version >= schema.flexible
        self.head = ""
        self.lines: list[str] = []
        self.names = dict(NAMES)
        self._depth = 1
        self._count = 0

    def __str__(self) -> str:
        return "\n".join([f"def compiled({self.head}):", *self.lines])

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def name(self, prefix: str, value: Any = _NEVER) -> str:
        """A name that the function does not use yet; with a value, one that stands for it."""
        self._count += 1
        name = f"{prefix}{self._count}"
        if value is not _NEVER:
            self.names[name] = value
        return name

    def literal(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        return "[]" if isinstance(value, list) else self.name("DEFAULT", value)


class Constructor(Source):
    """`compiled(self, *, one keyword for each field)`."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema, 0)
        self.names["missing"] = _NEVER
        keywords = []
        for each in schema.fields:
            if isinstance(each.default, list):  # a fresh one for every object
                keywords.append(f"{each.name}=missing")
                self.line(f"self.{each.name} = [] if {each.name} is missing else {each.name}")
            else:
                keywords.append(f"{each.name}={self.literal(each.default)}")
                self.line(f"self.{each.name} = {each.name}")
        if not keywords:
            self.line("pass")
        self.head = ", ".join(["self", "*", *keywords] if keywords else ["self"])


class Encoder(Source):
    """`compiled(message, out, pieces)` appends to the buffer `out` and puts it on the list `pieces`.

    `run` gathers neighbouring numbers until something of another kind follows: then one call packs them.
    """

    def __init__(self, schema: Schema, version: int) -> None:
        super().__init__(schema, version)
        self.head = "message, out, pieces"
        self.run: list[tuple[str, str]] = []
        self.struct(schema, "message", "out")
        self.flush("out")
        self.line("if out or not pieces: pieces.append(out)")

    def flush(self, out: str) -> None:
        if not self.run:
            return
        if self.run == [("x", "")]:
            self.line(f"{out}.append(0)")
        else:
            pack = self.name("pack", Struct(">" + "".join(fmt for fmt, _ in self.run)).pack)
            self.line(f"{out} += {pack}({', '.join(value for fmt, value in self.run if fmt != 'x')})")
        self.run = []

    def struct(self, schema: Schema, source: str, out: str) -> None:
        tagged = []
        for each in schema.fields:
            if not each.exists_in(self.version):
                if not each.ignorable:
                    self.refuse(each, f"{source}.{each.name}")
            elif each.tag is not None:
                tagged.append(each)
        for each in schema.fields:
            if each.exists_in(self.version) and each.tag is None:
                self.value(each, f"{source}.{each.name}", out)
        if tagged:
            self.tags(sorted(tagged, key=lambda each: each.tag or 0), source, out)
        elif self.flexible:
            self.run.append(("x", ""))

    def refuse(self, each: Field, value: str) -> None:
        text = f"{each.name} = {{{value}!r}} does not exist in version {self.version}"
        self.line(f"if {self.is_set(each, value)}: raise ValueError(f{text!r})")

    def is_set(self, each: Field, value: str) -> str:
        if each.default is None:
            return f"{value} is not None"
        if each.is_array:
            return f"({value} is None or {value})" if each.is_nullable else value
        if each.schema is not None:
            default = self.name("DEFAULT", each.default)
            return f"{value} is not {default} and {value} != {default}"
        return f"{value} != {self.literal(each.default)}"

    def tags(self, tagged: list[Field], source: str, out: str) -> None:
        self.flush(out)
        values = [f"{source}.{each.name}" for each in tagged]
        conditions = [self.is_set(each, value) for each, value in zip(tagged, values, strict=True)]
        found = self.name("found")
        self.line(f"if {' or '.join(conditions)}:")
        with self:
            self.line(f"{found} = []")
            for each, value, condition in zip(tagged, values, conditions, strict=True):
                inner = self.name("out")
                self.line(f"if {condition}:")
                with self:
                    self.line(f"{inner} = bytearray()")
                    self.value(each, value, inner)
                    self.flush(inner)
                    self.line(f"{found}.append(({each.tag}, {inner}))")
            self.line(f"put_tagged_fields({out}, {found})")
        self.line(f"else: {out}.append(0)")

    def value(self, each: Field, value: str, out: str) -> None:
        if each.fmt and not each.is_array:
            self.run.append((each.fmt, value))
            return
        local = self.name("value")
        self.line(f"{local} = {value}")
        if not each.is_nullable_in(self.version):
            self.present(each, local, out)
            return
        is_struct = each.schema is not None and not each.is_array
        self.flush(out)
        self.line(f"if {local} is None: {out} += {self.null(each, is_struct)!r}")
        self.line("else:")
        with self:
            if is_struct:
                self.run.append(("b", "1"))
            self.present(each, local, out)
            self.flush(out)

    def null(self, each: Field, is_struct: bool) -> bytes:
        if is_struct:
            return b"\xff"
        if self.flexible:
            return b"\x00"
        return b"\xff\xff" if each.type_name == "String" and not each.is_array else b"\xff\xff\xff\xff"

    def present(self, each: Field, value: str, out: str) -> None:
        if each.is_array:
            self.array(each, value, out)
        elif each.schema is not None:
            self.struct(each.schema, value, out)
        else:
            self.text(each, value, out)

    def text(self, each: Field, value: str, out: str) -> None:
        if each.type_name == "Records":
            self.flush(out)
            self.line(f"{out} = put_records({out}, pieces, {value}, {self.flexible})")
            return
        is_string = each.type_name == "String"
        if is_string:
            self.line(f"{value} = {value}.encode()")
        self.length(value, out, "h" if is_string else "i")
        self.line(f"{out} += {value}")

    def length(self, value: str, out: str, fmt: str) -> None:
        if not self.flexible:
            self.run.append((fmt, f"len({value})"))
            self.flush(out)
            return
        self.flush(out)
        size = self.name("size")
        put = "put_long_string_length" if fmt == "h" else "put_uvarint"
        self.line(f"{size} = len({value}) + 1")
        self.line(f"if {size} < 128: {out}.append({size})")
        self.line(f"else: {put}({out}, {size})")

    def array(self, each: Field, value: str, out: str) -> None:
        self.length(value, out, "i")
        if each.fmt == "16s":
            self.line(f"{out} += join_uuids({value})")
        elif each.fmt:
            self.line(f"if {value}: {out} += pack(f'>{{len({value})}}{each.fmt}', *{value})")
        else:
            element = self.name("element")
            self.line(f"for {element} in {value}:")
            with self:
                if each.schema is not None:
                    self.struct(each.schema, element, out)
                else:
                    self.text(each, element, out)
                self.flush(out)


class Decoder(Source):
    """`compiled(data, at)` gives the message and where it ended.

    `at` is where to read next, `end` the end of the buffer, `left` how many elements may still come.
    Running over the end raises IndexError or struct.error where the buffer notices it. Slices do not notice,
    so every length is compared with `end`. `run` is as in the encoder.
    """

    def __init__(self, schema: Schema, version: int) -> None:
        super().__init__(schema, version)
        self.head = "data, at"
        self.run: list[tuple[str, str]] = []
        self.names["bad_count"] = self.complaint("has {} elements, it says, and they are not there")
        self.names["bad_length"] = self.complaint("is {} bytes long, it says, and they are not there")
        self.names["bad_tag"] = self.complaint("is a tagged field that does not end at byte {}, as it says")
        most = REQUEST_ELEMENTS_MAX if schema.cls.__name__.endswith("Request") else ELEMENTS_MAX
        self.names["too_many"] = self.complaint(f"has {{}} elements, and the message more than {most}")
        self.line("end = len(data)")
        self.line(f"left = {most}")
        target = self.struct(schema)
        self.flush()
        self.line(f"return {target}, at")

    def complaint(self, text: str) -> Any:
        title = f"{self.schema.cls.__name__} v{self.version}"

        def complain(field: str, number: int, position: int) -> Malformed:
            return Malformed(f"{title}: {field}, read up to byte {position}, {text.format(number)}")

        return complain

    def flush(self) -> None:
        if not self.run:
            return
        targets = ", ".join(target for _, target in self.run)
        if [fmt for fmt, _ in self.run] == ["B"]:
            self.line(f"{targets} = data[at]")
            self.line("at += 1")
        else:
            layout = Struct(">" + "".join(fmt for fmt, _ in self.run))
            self.line(f"{targets}, = {self.name('unpack', layout.unpack_from)}(data, at)")
            self.line(f"at += {layout.size}")
        self.run = []

    def struct(self, schema: Schema) -> str:
        """The name of the new struct. The last numbers of it may still be in `run`."""
        target = self.name("struct")
        self.line(f"{target} = new({self.name('CLASS', schema.cls)})")
        tagged = []
        for each in schema.fields:
            if not each.exists_in(self.version) or each.tag is not None:
                self.line(f"{target}.{each.name} = {self.literal(each.default)}")
                if each.exists_in(self.version):
                    tagged.append(each)
        for each in schema.fields:
            if each.exists_in(self.version) and each.tag is None:
                self.value(each, f"{target}.{each.name}")
        if self.flexible:
            count = self.name("count")
            self.run.append(("B", count))
            self.flush()
            if tagged:
                self.tags(tagged, target, count)
            else:
                self.line(f"if {count}: at, left = skip_tagged_fields(data, at, {count}, left)")
        return target

    def tags(self, tagged: list[Field], target: str, count: str) -> None:
        tag, stop = self.name("tag"), self.name("stop")
        self.line(f"if {count}:")
        with self:
            self.line(f"if {count} > 127: {count}, at = rest_of_uvarint(data, at)")
            self.line(f"if {count} > (end - at) >> 1: raise bad_count('its tagged part', {count}, at)")
            self.line(f"left -= {count}")
            self.line(f"if left < 0: raise too_many('its tagged part', {count}, at)")
            self.line(f"for _ in range({count}):")
            with self:
                self.line(f"{tag}, at, {stop} = tagged_field(data, at)")
                self.line(f"{stop} += at")
                for each in tagged:
                    self.line(f"if {tag} == {each.tag}:")
                    with self:
                        self.value(each, f"{target}.{each.name}")
                        self.flush()
                        self.line(f"if at != {stop}: raise bad_tag({each.name!r}, {stop}, at)")
                self.line(f"at = {stop}")

    def value(self, each: Field, target: str) -> None:
        if each.is_array:
            self.array(each, target)
        elif each.fmt:
            self.run.append((each.fmt, target))
        elif each.schema is None:
            self.text(each, target, each.is_nullable_in(self.version))
        elif each.is_nullable_in(self.version):
            present = self.name("present")
            self.run.append(("b", present))
            self.flush()
            self.line(f"if {present} < 0: {target} = None")
            self.line("else:")
            with self:
                self.line(f"{target} = {self.struct(each.schema)}")
                self.flush()
        else:
            self.line(f"{target} = {self.struct(each.schema)}")

    def length(self, fmt: str) -> str:
        """The variable that holds the next length or count, as it was written."""
        size = self.name("size")
        self.run.append(("B" if self.flexible else fmt, size))
        self.flush()
        if self.flexible:
            self.line(f"if {size} > 127: {size}, at = rest_of_uvarint(data, at)")
        return size

    def text(self, each: Field, target: str, nullable: bool) -> None:
        is_string = each.type_name == "String"
        size, stop = self.length("h" if is_string else "i"), self.name("stop")
        if nullable:
            self.line(f"if {size} {'== 0' if self.flexible else '< 0'}: {target} = None")
            self.line("else:")
        with self if nullable else _SAME_DEPTH:
            self.line(f"{stop} = at + {size}{' - 1' if self.flexible else ''}")
            too_long = f" or {size} > {STRING_BYTES_MAX + 1}" if is_string and self.flexible else ""
            shown = f"{size} - 1" if self.flexible else size
            self.line(f"if not at <= {stop} <= end{too_long}: raise bad_length({each.name!r}, {shown}, at)")
            found = f"data[at:{stop}]"
            self.line(f"{target} = " + (f"str({found}, 'utf-8')" if is_string else found))
            self.line(f"at = {stop}")

    def array(self, each: Field, target: str) -> None:
        nullable = each.is_nullable_in(self.version)
        count = self.length("i")
        if self.flexible:
            self.line(f"{count} -= 1")
        if nullable:
            self.line(f"if {count} < 0: {target} = None")
            self.line("else:")
        with self if nullable else _SAME_DEPTH:
            least = each.least_bytes(self.version, self.flexible)
            room = "end - at" if least == 1 else f"(end - at) // {least}"
            null = "" if nullable else f"{count} < 0 or "
            self.line(f"if {null}{count} > {room}: raise bad_count({each.name!r}, {count}, at)")
            self.line(f"left -= {count}")
            self.line(f"if left < 0: raise too_many({each.name!r}, {count}, at)")
            if each.fmt:
                self.numbers(each, target, count, least)
            else:
                self.elements(each, target, count)

    def numbers(self, each: Field, target: str, count: str, size: int) -> None:
        if each.fmt == "16s":
            self.line(f"{target} = [bytes(data[k:k + 16]) for k in range(at, at + 16 * {count}, 16)]")
        else:
            self.line(f"{target} = list(unpack_from(f'>{{{count}}}{each.fmt}', data, at)) if {count} else []")
        self.line(f"at += {size} * {count}")

    def elements(self, each: Field, target: str, count: str) -> None:
        found = self.name("found")
        self.line(f"{target} = {found} = []")
        self.line(f"for _ in range({count}):")
        with self:
            if each.schema is not None:
                self.line(f"{found}.append({self.struct(each.schema)})")
                self.flush()
            else:
                element = self.name("element")
                self.text(each, element, False)
                self.line(f"{found}.append({element})")


class _SameDepth:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


_SAME_DEPTH = _SameDepth()
