"""Edits of the newest manifest of a table on disk, on the protobuf wire: what pylance cannot write itself.

A manifest file is blocks of u32 length and message, and a footer: u64 position of the manifest message, versions, LANC.
Messages are handled as lists of (field, wire type, value), so that unknown fields survive.
"""

import os
import struct

FRI = b"__lance_frag_reuse"
TAGGED = 1024  # the feature flag of a tagged history
FRAGMENTS, INDICES, READER_FLAGS, WRITER_FLAGS = 2, 6, 9, 10  # fields of Manifest
TRANSACTIONS = (21, 23)  # fields of Manifest that point into the file
NAME, BITMAP, DETAILS, INDEX_VERSION = 3, 5, 6, 7  # fields of IndexMetadata


def varint(b, at):
    n = shift = 0
    while True:
        n |= (b[at] & 0x7F) << shift
        at += 1
        if b[at - 1] < 0x80:
            return n, at
        shift += 7


def put_varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def parse(b):
    fields, at = [], 0
    while at < len(b):
        key, at = varint(b, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(b, at)
        elif kind == 2:
            n, at = varint(b, at)
            value, at = b[at : at + n], at + n
        else:
            n = {1: 8, 5: 4}[kind]
            value, at = b[at : at + n], at + n
        fields.append((key >> 3, kind, value))
    return fields


def build(fields):
    out = bytearray()
    for number, kind, value in fields:
        out += put_varint(number << 3 | kind)
        if kind == 0:
            out += put_varint(value)
        elif kind == 2:
            out += put_varint(len(value)) + value
        else:
            out += value
    return bytes(out)


def get(fields, number, default=None):
    for n, _, value in reversed(fields):
        if n == number:
            return value
    return default


def put(fields, number, kind, value):
    """Sets a field, in its place in the order of numbers."""
    rest = [f for f in fields if f[0] != number]
    at = next((i for i, f in enumerate(rest) if f[0] > number), len(rest))
    return rest[:at] + [(number, kind, value)] + rest[at:]


class Newest:
    """The newest manifest of a table: fields of the manifest, and of each index entry."""

    def __init__(self, table):
        folder = os.path.join(table, "_versions")

        def version(name):
            n = int(name.split(".")[0])
            return 2**64 - 1 - n if len(name.split(".")[0]) == 20 else n

        self.version, name = max((version(n), n) for n in os.listdir(folder) if n.endswith(".manifest"))
        self.path = os.path.join(folder, name)
        with open(self.path, "rb") as f:
            b = f.read()
        self.tail = b[-8:]
        self.manifest = parse(self._block(b, struct.unpack("<Q", b[-16:-8])[0]))
        at = get(self.manifest, INDICES)
        entries = parse(self._block(b, at)) if at is not None else []
        self.indices = [parse(value) for number, _, value in entries if number == 1]

    @staticmethod
    def _block(b, at):
        n = struct.unpack("<I", b[at : at + 4])[0]
        return b[at + 4 : at + 4 + n]

    def fri(self):
        return next((e for e in self.indices if get(e, NAME) == FRI), None)

    def write(self):
        section = build([(1, 2, build(e)) for e in self.indices])
        out = struct.pack("<I", len(section)) + section if self.indices else b""
        fields = [f for f in self.manifest if f[0] not in TRANSACTIONS and f[0] != INDICES]
        if self.indices:
            fields = put(fields, INDICES, 0, 0)
        at, message = len(out), build(fields)
        out += struct.pack("<I", len(message)) + message + struct.pack("<Q", at) + self.tail
        with open(self.path + "#", "wb") as f:
            f.write(out)
        os.replace(self.path + "#", self.path)


def lift(table):
    """Makes a legacy history a tagged one: index_version 1, and flag 1024 for readers and writers."""
    m = Newest(table)
    entry = m.fri()
    if entry is None:
        raise RuntimeError("%s has no fragment reuse index" % table)
    m.indices[m.indices.index(entry)] = put(entry, INDEX_VERSION, 0, 1)
    for word in (READER_FLAGS, WRITER_FLAGS):
        m.manifest = put(m.manifest, word, 0, get(m.manifest, word, 0) | TAGGED)
    m.write()


def forget(table):
    """Drops the fragment reuse index as a careless tool would, and lets each index claim all live fragments: its files
    keep their old addresses, and nothing translates them any more. Returns the live fragments."""
    m = Newest(table)
    live = sorted(get(parse(value), 1, 0) for number, _, value in m.manifest if number == FRAGMENTS)
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(live) - 1, 16) + struct.pack("<%dH" % len(live), *live)
    m.indices = [put(e, BITMAP, 2, bitmap) for e in m.indices if get(e, NAME) != FRI]
    for word in (READER_FLAGS, WRITER_FLAGS):
        m.manifest = put(m.manifest, word, 0, get(m.manifest, word, 0) & ~TAGGED)
    m.write()
    return live
