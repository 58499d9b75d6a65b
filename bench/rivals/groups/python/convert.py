"""Writes keys as Arrow and as Parquet files, for engines that read those. Keys come by standard input, a batch after
the other: how many and how many bytes (u32 each, little-endian), a byte for each key's length, all keys' bytes.

usage: convert.py words|numbers ARROW PARQUET
"""

import struct
import sys

import pyarrow
import pyarrow.compute
import pyarrow.parquet

HEAD = struct.Struct("<II")


def words(lengths, keys):
    ends = pyarrow.compute.cumulative_sum(pyarrow.Array.from_buffers(
        pyarrow.uint8(), len(lengths), [None, pyarrow.py_buffer(lengths)]
    ).cast(pyarrow.int32()))
    offsets = pyarrow.concat_arrays([pyarrow.array([0], pyarrow.int32()), ends])
    buffers = [None, offsets.buffers()[1], pyarrow.py_buffer(keys)]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(lengths), buffers).cast(pyarrow.string_view())


def numbers(lengths, keys):
    return pyarrow.Array.from_buffers(pyarrow.uint64(), len(lengths), [None, pyarrow.py_buffer(keys)])


def batches(kind):
    while head := sys.stdin.buffer.read(HEAD.size):
        rows, size = HEAD.unpack(head)
        lengths = sys.stdin.buffer.read(rows)
        yield kind(lengths, sys.stdin.buffer.read(size))


def main(kind, arrow, parquet):
    kind, type_ = {"words": (words, pyarrow.string_view()), "numbers": (numbers, pyarrow.uint64())}[kind]
    schema = pyarrow.schema([("key", type_)])
    # Keys are drawn at random: compressing them or looking for repeats would only cost the reader time.
    plain = pyarrow.parquet.ParquetWriter(parquet, schema, compression="none", use_dictionary=False)
    with plain, pyarrow.OSFile(arrow, "wb") as file, pyarrow.ipc.new_file(file, schema) as writer:
        for keys in batches(kind):
            batch = pyarrow.record_batch([keys], schema=schema)
            writer.write_batch(batch)
            plain.write_batch(batch)


main(*sys.argv[1:])
