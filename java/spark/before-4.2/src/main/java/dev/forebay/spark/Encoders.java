package dev.forebay.spark;

import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.execution.streaming.state.RocksDBDataEncoder;
import org.apache.spark.sql.execution.streaming.state.RocksDBKeyStateEncoder;
import org.apache.spark.sql.execution.streaming.state.RocksDBStateEncoder;
import org.apache.spark.sql.execution.streaming.state.RocksDBValueStateEncoder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;

/** Rows as bytes, which Spark calls otherwise since 4.2. */
final class Encoders {
    private Encoders() {}

    static RocksDBValueStateEncoder ofValues(RocksDBDataEncoder data, StructType valueSchema, boolean isList) {
        return RocksDBStateEncoder.getValueEncoder(data, valueSchema, isList);
    }

    /** Spark asks for no ranges yet. */
    static boolean mayScanRanges(RocksDBKeyStateEncoder keys) {
        return false;
    }

    static boolean mayDeleteRanges(RocksDBKeyStateEncoder keys) {
        return false;
    }

    /** The types of columns that are plain. */
    static Schema ofColumns(StructType columns) {
        return ArrowUtils.toArrowSchema(columns, "UTC", true, false);
    }
}
