package dev.forebay.spark;

import dev.forebay.ArrowStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import scala.Function1;

/** Rows of Spark's as streams of Arrow's, and back. Spark's own writer fills vectors, so types are as it has them. */
final class ArrowRows {
    /** A batch ends at so many rows, or where its vectors come to so many bytes. */
    private static final int ROWS_MAX = 16 << 10;

    private static final long BYTES_MAX = 4 << 20;
    /** So often vectors are measured. */
    private static final int MEASURED_ROWS = 256;

    private ArrowRows() {}

    /** The types of columns, as Spark's writer fills them. */
    static Schema schema(StructType columns) {
        return ArrowUtils.toArrowSchema(columns, "UTC", true, false);
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

    /** Shows rows by batches, each a stream. */
    static void each(Iterator<Row> rows, StructType columns, Schema schema, Consumer<byte[]> see) {
        Function1<Object, Object> inner = CatalystTypeConverters.createToCatalystConverter(columns);
        try (BufferAllocator allocator = allocator(); VectorSchemaRoot root = VectorSchemaRoot.create(schema, allocator)) {
            ArrowWriter writer = ArrowWriter.create(root);
            int count = 0;
            while (rows.hasNext()) {
                writer.write((InternalRow) inner.apply(rows.next()));
                count += 1;
                boolean isLong = count % MEASURED_ROWS == 0 && writer.sizeInBytes() >= BYTES_MAX;
                if (isLong || count == ROWS_MAX) {
                    show(writer, see);
                    count = 0;
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

    /** The rows of a stream, which is closed at its end, or with the task. */
    static Iterator<Row> read(ArrowStream stream, StructType columns) {
        Rows rows = new Rows(stream, columns);
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

    private static final class Rows implements Iterator<Row> {
        private final BufferAllocator allocator = allocator();
        private final ArrowStreamReader reader;
        private final Function1<Object, Object> outer;
        private Iterator<InternalRow> batch = Collections.emptyIterator();
        private boolean isOver;

        Rows(ArrowStream stream, StructType columns) {
            reader = new ArrowStreamReader(stream.ipc(), allocator);
            outer = CatalystTypeConverters.createToScalaConverter(columns);
        }

        @Override
        public boolean hasNext() {
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
        public Row next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return (Row) outer.apply(batch.next());
        }

        void close() {
            if (isOver) {
                return;
            }
            isOver = true;
            try {
                reader.close();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            } finally {
                allocator.close();
            }
        }
    }
}
