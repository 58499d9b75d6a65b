package dev.forebay.spark;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.RocksDBDataEncoder;
import org.apache.spark.sql.execution.streaming.state.RocksDBKeyStateEncoder;
import org.apache.spark.sql.execution.streaming.state.RocksDBStateEncoder;
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider$;
import org.apache.spark.sql.execution.streaming.state.RocksDBValueStateEncoder;
import org.apache.spark.sql.execution.streaming.state.StateRowEncoderCacheKey;
import org.apache.spark.sql.execution.streaming.state.StateSchemaProvider;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** Rows of a family as bytes and back, by Spark's own encoders, whose keys have the order of their bytes. */
record Coder(RocksDBKeyStateEncoder keys, RocksDBValueStateEncoder values, Family.Order order, Family.Values list) {

    /** What rows are encoded as, and for whom. */
    record Context(
            String runId, StateStoreId id, String encoding, boolean hasFamilies, Option<StateSchemaProvider> schemas) {}

    /** Whether a key has one value or a list is the third thing, beside key and value. */
    static Coder of(Context context, String family, KeyStateEncoderSpec spec, StructType valueSchema, boolean isList) {
        StateStoreId id = context.id();
        StateRowEncoderCacheKey cached = new StateRowEncoderCacheKey(
                context.runId(), id.operatorId(), id.partitionId(), id.storeName(), family);
        RocksDBDataEncoder data = RocksDBStateStoreProvider$.MODULE$.getDataEncoder(
                context.encoding(), cached, spec, valueSchema, context.schemas(), Option.apply(family));
        RocksDBKeyStateEncoder keys = RocksDBStateEncoder.getKeyEncoder(data, spec, context.hasFamilies());
        Family.Order order = spec instanceof NoPrefixKeyStateEncoderSpec ? Family.Order.HASH : Family.Order.KEY;
        return new Coder(keys, Encoders.ofValues(data, valueSchema, isList), order,
                isList ? Family.Values.LIST : Family.Values.ONE);
    }

    /** The same from the bytes of rows. */
    Plan.Rows rows(StructType keySchema, StructType valueSchema) {
        return new Plan.Rows() {
            @Override
            public byte[] key(byte[] bytes) {
                return Coder.this.key(row(keySchema, bytes));
            }

            @Override
            public byte[] value(byte[] bytes) {
                return Coder.this.value(row(valueSchema, bytes));
            }
        };
    }

    /** Before Spark 2.3 rows could have four bytes behind their end. */
    private static UnsafeRow row(StructType schema, byte[] bytes) {
        UnsafeRow row = new UnsafeRow(schema.fields().length);
        row.pointTo(bytes, bytes.length / Long.BYTES * Long.BYTES);
        return row;
    }

    byte[] key(UnsafeRow row) {
        return keys.encodeKey(row);
    }

    byte[] value(UnsafeRow row) {
        return values.encodeValue(row);
    }

    /** Values as one, each behind the other. */
    byte[] list(UnsafeRow[] rows) {
        byte[][] all = new byte[rows.length][];
        long length = Math.max(0, rows.length - 1);
        for (int place = 0; place < rows.length; place++) {
            all[place] = value(rows[place]);
            length += all[place].length;
        }
        byte[] out = new byte[Math.toIntExact(length)];
        int end = 0;
        for (byte[] value : all) {
            if (end > 0) {
                out[end++] = Family.DELIMITER;
            }
            System.arraycopy(value, 0, out, end, value.length);
            end += value.length;
        }
        return out;
    }
}
