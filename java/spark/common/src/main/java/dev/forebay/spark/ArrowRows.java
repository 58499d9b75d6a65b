package dev.forebay.spark;

import dev.forebay.ArrowStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;

/** Rows of Spark's as streams of Arrow's, and back. Spark's own writer fills vectors, so types are as it has them. */
final class ArrowRows {
    /** A batch ends at so many rows, or with the row by which its values come to so many bytes. */
    private static final int ROWS_MAX = 16 << 10;

    private static final long BYTES_MAX = 4 << 20;
    /** What a value takes that has no length of its own. */
    private static final int VALUE_BYTES = 16;

    private ArrowRows() {}

    /** The types of columns, as Spark's writer fills them. */
    static Schema schema(StructType columns) {
        return Encoders.ofColumns(columns);
    }

    /** Those of a stream, which is closed then. */
    static Schema schema(ArrowStream stream) {
        try (BufferAllocator allocator = allocator(); ArrowStreamReader reader = new ArrowStreamReader(stream.ipc(), allocator)) {
            return reader.getVectorSchemaRoot().getSchema();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A stream of no rows. */
    static byte[] none(Schema schema) {
        try (BufferAllocator allocator = allocator(); VectorSchemaRoot root = VectorSchemaRoot.create(schema, allocator)) {
            return written(root, false);
        }
    }

    /** Shows {@link Plain} rows by batches, each a stream. */
    static void each(Iterator<Row> rows, StructType columns, Schema schema, Consumer<byte[]> see) {
        List<Function<Object, Object>> inner =
                Arrays.stream(columns.fields()).map(field -> Plain.inner(field.dataType())).toList();
        try (BufferAllocator allocator = allocator(); VectorSchemaRoot root = VectorSchemaRoot.create(schema, allocator)) {
            ArrowWriter writer = ArrowWriter.create(root);
            int count = 0;
            long bytes = 0;
            while (rows.hasNext()) {
                Row row = rows.next();
                Object[] values = new Object[inner.size()];
                for (int at = 0; at < values.length; at++) {
                    Object value = row.get(at);
                    values[at] = value == null ? null : inner.get(at).apply(value);
                    bytes += value instanceof byte[] some ? some.length : VALUE_BYTES;
                }
                writer.write(new GenericInternalRow(values));
                count += 1;
                if (bytes >= BYTES_MAX || count == ROWS_MAX) {
                    show(writer, see);
                    count = 0;
                    bytes = 0;
                }
            }
            if (count > 0) {
                show(writer, see);
            }
        }
    }

    private static void show(ArrowWriter writer, Consumer<byte[]> see) {
        writer.finish();
        see.accept(written(writer.root(), true));
        writer.reset();
    }

    private static byte[] written(VectorSchemaRoot root, boolean hasRows) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ArrowStreamWriter writer = new ArrowStreamWriter(root, null, Channels.newChannel(out))) {
            writer.start();
            if (hasRows) {
                writer.writeBatch();
            }
            writer.end();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return out.toByteArray();
    }

    /** The rows of a stream, {@link Plain}. It is closed at its end, or with the task, and what it was made of ends then. */
    static Iterator<Row> read(ArrowStream stream, StructType columns, Runnable end) {
        Rows rows = new Rows(stream, columns, end);
        atEnd(rows::close);
        return rows;
    }

    /** Does something once the task is over, whatever became of it; what was said last comes first. */
    static void atEnd(Runnable act) {
        TaskContext.get().addTaskCompletionListener((TaskCompletionListener) task -> act.run());
    }

    private static BufferAllocator allocator() {
        return ArrowUtils.rootAllocator().newChildAllocator("forebay", 0, Long.MAX_VALUE);
    }

    /** A task that ends may close them while another thread of its own reads. */
    private static final class Rows implements Iterator<Row> {
        private final BufferAllocator allocator = allocator();
        private final ArrowStreamReader reader;
        private final List<Function<InternalRow, Object>> outer;
        private final Runnable end;
        private Iterator<InternalRow> batch = Collections.emptyIterator();
        private boolean isOver;

        Rows(ArrowStream stream, StructType columns, Runnable end) {
            this.end = end;
            reader = new ArrowStreamReader(stream.ipc(), allocator);
            outer = IntStream.range(0, columns.length())
                    .mapToObj(at -> Plain.outer(columns.fields()[at].dataType(), at)).toList();
        }

        @Override
        public synchronized boolean hasNext() {
            while (!isOver && !batch.hasNext()) {
                fetch();
            }
            return !isOver;
        }

        private void fetch() {
            try {
                if (!reader.loadNextBatch()) {
                    close();
                    return;
                }
                VectorSchemaRoot root = reader.getVectorSchemaRoot();
                ColumnVector[] vectors =
                        root.getFieldVectors().stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
                batch = new ColumnarBatch(vectors, root.getRowCount()).rowIterator();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        @Override
        public synchronized Row next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            InternalRow row = batch.next();
            return RowFactory.create(outer.stream().map(column -> column.apply(row)).toArray());
        }

        synchronized void close() {
            if (isOver) {
                return;
            }
            isOver = true;
            try (allocator) {
                reader.close();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            } finally {
                end.run();
            }
        }
    }
}
