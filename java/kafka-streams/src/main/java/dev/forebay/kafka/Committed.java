package dev.forebay.kafka;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.PositionSerde;

/**
 * What a store keeps with its data at a commit: how far the changelog is in it, how far the input, and the latest time
 * that it has seen. The bytes are the metadata of a batch.
 */
record Committed(Map<TopicPartition, Long> offsets, Position position, long streamTime) {
    private static final byte VERSION = 1;

    static Committed none() {
        return new Committed(Map.of(), Position.emptyPosition(), -1);
    }

    byte[] bytes() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        try {
            out.writeByte(VERSION);
            out.writeLong(streamTime);
            out.writeInt(offsets.size());
            // In one order, so that equal ones have equal bytes.
            Map<String, Map.Entry<TopicPartition, Long>> sorted = new TreeMap<>();
            offsets.entrySet().forEach(offset -> sorted.put(offset.getKey().toString(), offset));
            for (Map.Entry<TopicPartition, Long> offset : sorted.values()) {
                out.writeUTF(offset.getKey().topic());
                out.writeInt(offset.getKey().partition());
                out.writeLong(offset.getValue());
            }
            ByteBuffer position = PositionSerde.serialize(position());
            out.write(position.array(), position.arrayOffset(), position.limit());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return bytes.toByteArray();
    }

    /** Of bytes, or of null where nothing was committed. */
    static Committed of(byte[] bytes, String store) {
        if (bytes == null) {
            return none();
        }
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            byte version = in.readByte();
            if (version != VERSION) {
                throw new ProcessorStateException("The offsets of store " + store + " have version " + version
                        + ", which this build does not read; it reads " + VERSION + ". Remove the local state, or take a newer build.");
            }
            long streamTime = in.readLong();
            Map<TopicPartition, Long> offsets = new TreeMap<>((one, other) -> one.toString().compareTo(other.toString()));
            for (int left = in.readInt(); left > 0; left--) {
                TopicPartition partition = new TopicPartition(in.readUTF(), in.readInt());
                offsets.put(partition, in.readLong());
            }
            return new Committed(offsets, PositionSerde.deserialize(ByteBuffer.wrap(in.readAllBytes())), streamTime);
        } catch (IOException error) {
            throw new ProcessorStateException("The offsets of store " + store + " cannot be read; remove its local state.", error);
        }
    }
}
