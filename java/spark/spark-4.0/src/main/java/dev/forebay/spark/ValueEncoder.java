package dev.forebay.spark;

import org.apache.spark.sql.execution.streaming.state.RocksDBDataEncoder;
import org.apache.spark.sql.execution.streaming.state.RocksDBStateEncoder;
import org.apache.spark.sql.execution.streaming.state.RocksDBValueStateEncoder;
import org.apache.spark.sql.types.StructType;

/** The encoder of values, whose making Spark 4.2 gives one argument more. */
final class ValueEncoder {
    private ValueEncoder() {}

    static RocksDBValueStateEncoder of(RocksDBDataEncoder data, StructType valueSchema, boolean isList) {
        return RocksDBStateEncoder.getValueEncoder(data, valueSchema, isList);
    }
}
