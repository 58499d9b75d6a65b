package dev.forebay;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.ArrowArrayStream;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.util.Text;

/** Rows of tests, in and out of Arrow's vectors. */
final class Rows {
    private Rows() {}

    static List<Sale> some(Random random, int count) {
        List<Sale> rows = new ArrayList<>();
        double[] odd = {Double.NaN, Double.POSITIVE_INFINITY, -0.0};
        for (int row = 0; row < count; row++) {
            rows.add(new Sale(
                    rarely(random) ? null : "city " + (random.nextBoolean() ? 1 : random.nextInt(40)),
                    rarely(random) ? null : random.nextInt(3) - 1,
                    rarely(random) ? null : 1_000_000L * random.nextInt(2) - 1,
                    rarely(random) ? null : BigDecimal.valueOf(random.nextInt(2000) - 1000, 2),
                    rarely(random) ? null : random.nextLong() >> random.nextInt(60),
                    rarely(random) ? null : rarely(random) ? odd[random.nextInt(3)] : random.nextGaussian()));
        }
        return rows;
    }

    private static boolean rarely(Random random) {
        return random.nextInt(12) == 0;
    }

    /** The vectors of rows. */
    static VectorSchemaRoot root(List<Sale> rows, BufferAllocator allocator) {
        VarCharVector city = new VarCharVector("city", allocator);
        DateDayVector day = new DateDayVector("day", allocator);
        TimeStampMicroTZVector moment = new TimeStampMicroTZVector("moment", allocator, "UTC");
        DecimalVector price = new DecimalVector("price", allocator, 10, 2);
        BigIntVector sold = new BigIntVector("sold", allocator);
        Float8Vector rating = new Float8Vector("rating", allocator);
        List<FieldVector> columns = List.of(city, day, moment, price, sold, rating);
        columns.forEach(column -> column.setInitialCapacity(rows.size()));
        columns.forEach(FieldVector::allocateNew);
        for (int at = 0; at < rows.size(); at++) {
            Sale sale = rows.get(at);
            if (sale.city() != null) {
                city.setSafe(at, sale.city().getBytes(StandardCharsets.UTF_8));
            }
            if (sale.day() != null) {
                day.setSafe(at, sale.day());
            }
            if (sale.moment() != null) {
                moment.setSafe(at, sale.moment());
            }
            if (sale.price() != null) {
                price.setSafe(at, sale.price());
            }
            if (sale.sold() != null) {
                sold.setSafe(at, sale.sold());
            }
            if (sale.rating() != null) {
                rating.setSafe(at, sale.rating());
            }
        }
        VectorSchemaRoot root = new VectorSchemaRoot(columns);
        root.setRowCount(rows.size());
        return root;
    }

    /** Rows as an IPC stream. */
    static byte[] ipc(List<Sale> rows) {
        try (BufferAllocator allocator = new RootAllocator(); VectorSchemaRoot root = root(rows, allocator)) {
            return ipc(root);
        }
    }

    private static byte[] ipc(VectorSchemaRoot root) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ArrowStreamWriter writer = new ArrowStreamWriter(root, null, Channels.newChannel(out))) {
            writer.writeBatch();
            writer.end();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return out.toByteArray();
    }

    /** Gives rows to a call by the C data interface, and sees that all of them is released. */
    static <T> T lent(List<Sale> rows, Function<ArrowStream, T> call) {
        return lent(rows, root -> { }, false, call);
    }

    /** The same of vectors that are changed first, as an array or as a stream of one. */
    static <T> T lent(List<Sale> rows, Consumer<VectorSchemaRoot> change, boolean isStream, Function<ArrowStream, T> call) {
        try (BufferAllocator allocator = new RootAllocator(); VectorSchemaRoot root = root(rows, allocator)) {
            change.accept(root);
            if (isStream) {
                return streamed(root, allocator, call);
            }
            try (ArrowArray array = ArrowArray.allocateNew(allocator); ArrowSchema schema = ArrowSchema.allocateNew(allocator)) {
                Data.exportVectorSchemaRoot(allocator, root, null, array, schema);
                return call.apply(ArrowStream.ofArray(array.memoryAddress(), schema.memoryAddress()));
            }
        }
    }

    private static <T> T streamed(VectorSchemaRoot root, BufferAllocator allocator, Function<ArrowStream, T> call) {
        try (ArrowReader reader = new ArrowStreamReader(new ByteArrayInputStream(ipc(root)), allocator);
                ArrowArrayStream stream = ArrowArrayStream.allocateNew(allocator)) {
            Data.exportArrayStream(allocator, reader, stream);
            return call.apply(ArrowStream.ofStream(stream.memoryAddress()));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** All rows of a stream, by IPC. */
    static List<Map<String, Object>> read(ArrowStream stream) {
        try (BufferAllocator allocator = new RootAllocator();
                ArrowReader reader = new ArrowStreamReader(stream.ipc(), allocator)) {
            return all(reader);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The same by the C data interface. */
    static List<Map<String, Object>> exported(ArrowStream stream) {
        return exported(stream, () -> {});
    }

    /** The same where something happens once it is exported. */
    static List<Map<String, Object>> exported(ArrowStream stream, Runnable then) {
        try (BufferAllocator allocator = new RootAllocator();
                ArrowArrayStream room = ArrowArrayStream.allocateNew(allocator)) {
            stream.export(room.memoryAddress());
            then.run();
            try (ArrowReader reader = Data.importArrayStream(allocator, room)) {
                return all(reader);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static List<Map<String, Object>> all(ArrowReader reader) throws IOException {
        List<Map<String, Object>> rows = new ArrayList<>();
        while (reader.loadNextBatch()) {
            VectorSchemaRoot root = reader.getVectorSchemaRoot();
            for (int at = 0; at < root.getRowCount(); at++) {
                Map<String, Object> row = new LinkedHashMap<>();
                for (FieldVector column : root.getFieldVectors()) {
                    Object value = column.getObject(at);
                    row.put(column.getName(), value instanceof Text text ? text.toString() : value);
                }
                rows.add(row);
            }
        }
        return rows;
    }
}
