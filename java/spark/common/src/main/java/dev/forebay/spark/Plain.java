package dev.forebay.spark;

import java.util.function.Function;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;

/**
 * Values as functions over rows see them. Of dates, times and texts Spark would make objects that have not every value: days
 * of 1582, times before 1900, bytes that are no UTF-8. So those come as the numbers and bytes that they are.
 */
final class Plain {
    private Plain() {}

    /** A column's values, plain. */
    static Column in(Column column, DataType type) {
        if (type instanceof StringType) {
            return column.cast(DataTypes.BinaryType);
        }
        if (type instanceof DateType) {
            return functions.unix_date(column);
        }
        return type instanceof TimestampType ? functions.unix_micros(column) : column;
    }

    /** The values of a plain column, as they were. */
    static Column out(Column column, DataType type) {
        if (type instanceof StringType) {
            return column.cast(type);
        }
        if (type instanceof DateType) {
            return functions.date_from_unix_date(column);
        }
        return type instanceof TimestampType ? functions.timestamp_micros(column) : column;
    }

    private static DataType of(DataType type) {
        if (type instanceof StringType) {
            return DataTypes.BinaryType;
        }
        if (type instanceof DateType) {
            return DataTypes.IntegerType;
        }
        return type instanceof TimestampType ? DataTypes.LongType : type;
    }

    /** The same columns, plain, each called by its place. */
    static StructType of(StructType columns) {
        StructType plain = new StructType();
        for (int at = 0; at < columns.length(); at++) {
            StructField field = columns.fields()[at];
            plain = plain.add(GroupStage.place(at), of(field.dataType()), field.nullable());
        }
        return plain;
    }

    /** From a plain value to Spark's own for a type. */
    static Function<Object, Object> inner(DataType type) {
        if (type instanceof StringType) {
            return bytes -> UTF8String.fromBytes((byte[]) bytes);
        }
        Function1<Object, Object> convert = CatalystTypeConverters.createToCatalystConverter(of(type));
        return convert::apply;
    }

    /** From a column of rows of Spark's own to plain values. */
    static Function<InternalRow, Object> outer(DataType type, int at) {
        if (type instanceof StringType) {
            return row -> row.isNullAt(at) ? null : row.getUTF8String(at).getBytes();
        }
        DataType plain = of(type);
        Function1<Object, Object> convert = CatalystTypeConverters.createToScalaConverter(plain);
        return row -> row.isNullAt(at) ? null : convert.apply(row.get(at, plain));
    }
}
