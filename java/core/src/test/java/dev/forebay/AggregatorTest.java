package dev.forebay;

import static dev.forebay.Keys.bytes;
import static dev.forebay.Keys.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.arrow.vector.VarCharVector;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Groups in memory and in a database, held against maps of Java's. */
class AggregatorTest {
    private static final String[] KEY = {"city", "day", "moment"};

    @TempDir
    Path dir;

    private static AggregatorOptions asked() {
        return new AggregatorOptions()
                .key(KEY)
                .agg("n", Functions.count())
                .agg("all", Functions.of("sum", "sold"))
                .agg("sums", Functions.of("sum", "price"))
                .agg("least", Functions.of("min", "rating"))
                .agg("dearest", Functions.of("max", "price"))
                .agg("same", Functions.of("sum", "sold"));
    }

    private Database open() {
        return Database.open(dir.resolve("db"), new Options().set("memory", "16M"));
    }

    private static List<Object> key(Sale sale) {
        List<Object> key = new ArrayList<>();
        key.add(sale.city());
        key.add(sale.day());
        key.add(sale.moment());
        return key;
    }

    /** What functions answer for the rows of each group, by Java. */
    private static Map<List<Object>, Map<String, Object>> expected(List<Sale> rows) {
        Map<List<Object>, List<Sale>> groups = new HashMap<>();
        rows.forEach(sale -> groups.computeIfAbsent(key(sale), of -> new ArrayList<>()).add(sale));
        Map<List<Object>, Map<String, Object>> answers = new HashMap<>();
        groups.forEach((key, sales) -> {
            Map<String, Object> answer = new HashMap<>();
            List<BigDecimal> prices = sales.stream().map(Sale::price).filter(Objects::nonNull).toList();
            Stream<Long> sold = sales.stream().map(Sale::sold).filter(Objects::nonNull);
            BigDecimal all = sold.map(BigDecimal::valueOf).reduce(BigDecimal::add).orElse(null);
            answer.put("n", (long) sales.size());
            answer.put("all", all);
            answer.put("same", all);
            answer.put("sums", prices.stream().reduce(BigDecimal::add).orElse(null));
            answer.put("dearest", prices.stream().max(BigDecimal::compareTo).orElse(null));
            // What is not a number is the greatest, and the two zeros are one.
            answer.put("least", sales.stream().map(Sale::rating).filter(Objects::nonNull).map(rating -> rating + 0.0)
                    .min(Double::compare).orElse(null));
            answers.put(key, answer);
        });
        return answers;
    }

    private static Map<List<Object>, Map<String, Object>> byKey(List<Map<String, Object>> rows) {
        Map<List<Object>, Map<String, Object>> answers = new HashMap<>();
        for (Map<String, Object> row : rows) {
            List<Object> key = new ArrayList<>();
            for (String column : KEY) {
                key.add(row.remove(column));
            }
            row.computeIfPresent("least", (name, least) -> (Double) least + 0.0);
            assertNull(answers.put(key, row), "each group comes once");
        }
        return answers;
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void groupsAreThoseOfMaps(long seed) {
        System.out.println("AggregatorTest, seed " + seed);
        Random random = new Random(seed);
        List<Sale> here = Rows.some(random, 3000);
        List<Sale> there = Rows.some(random, 2000);
        List<Sale> all = new ArrayList<>(here);
        all.addAll(there);
        Map<List<Object>, Map<String, Object>> expected = expected(all);
        try (Database db = open();
                Aggregator one = new Aggregator(asked());
                Aggregator other = new Aggregator(asked().set("threads", "2"));
                StoredAggregator stored = db.aggregator("sales", asked())) {
            assertEquals(3000L, (long) Rows.<Long>lent(here, one::update));
            assertEquals(2000, other.update(ArrowStream.ofIpc(Rows.ipc(there))));
            assertEquals(3000, stored.update(ArrowStream.ofIpc(Rows.ipc(here)), Durability.OS));
            assertEquals(expected(there).size(), stored.merge(other.states(), Durability.MEMORY));
            assertEquals(expected(there).size(), one.merge(other.states()));
            assertEquals(expected, byKey(Rows.read(one.result())));
            assertEquals(expected, byKey(Rows.exported(one.result())));
            assertEquals(expected, byKey(Rows.read(stored.result())));
            try (Aggregator copy = new Aggregator(asked())) {
                copy.merge(stored.states());
                assertEquals(expected, byKey(Rows.exported(copy.result())));
            }
            for (Groups groups : List.of(one, stored)) {
                expected.forEach((key, answers) -> {
                    Integer day = (Integer) key.get(1);
                    Long moment = (Long) key.get(2);
                    Map<String, Object> found = groups.get(
                            key.get(0), day == null ? null : LocalDate.ofEpochDay(day),
                            moment == null ? null : Instant.EPOCH.plusNanos(moment * 1000));
                    found.computeIfPresent("least", (name, least) -> (Double) least + 0.0);
                    assertEquals(answers, found, () -> "" + key);
                });
                assertNull(groups.get("nowhere", null, null));
            }
            assertTrue(one.memoryBytes() > 0);
        }
    }

    @Test
    void whatIsCommittedIsKeptWithItsMetadata() {
        Random random = new Random(7);
        List<Sale> first = Rows.some(random, 500);
        List<Sale> second = Rows.some(random, 500);
        try (Database db = open()) {
            StoredAggregator sales = db.aggregator("sales", asked().set("deletes", "true").schema(ArrowStream.ofIpc(Rows.ipc(first))));
            assertNull(sales.metadata());
            assertEquals(List.of(), Rows.read(sales.result()));
            Table table = db.table("t");
            WriteBatch batch = new WriteBatch();
            batch.put(table, bytes("k"), bytes("v"));
            long sequence = sales.commit(ArrowStream.ofIpc(Rows.ipc(first)), batch, Durability.DISK, bytes("500"));
            assertTrue(sequence > 0 && batch.size() == 0 && db.durableSequence() >= sequence);
            assertEquals("v500", text(table.get(bytes("k"))) + text(sales.metadata()));
            sales.commit(null, null, Durability.OS, bytes("still 500"));
        }
        try (Database db = open()) {
            StoredAggregator sales = db.aggregator("sales", new AggregatorOptions());
            assertEquals("still 500", text(sales.metadata()));
            assertEquals(expected(first), byKey(Rows.read(sales.result())));
            Rows.lent(second, rows -> sales.commit(rows, Durability.OS, bytes("1000")));
            List<Sale> all = new ArrayList<>(first);
            all.addAll(second);
            assertEquals(expected(all), byKey(Rows.exported(sales.result())));
            Sale one = first.get(0);
            Object[] key = {
                one.city(), one.day() == null ? null : LocalDate.ofEpochDay(one.day()),
                one.moment() == null ? null : Instant.EPOCH.plusNanos(one.moment() * 1000)
            };
            sales.delete(Durability.OS, key);
            assertNull(sales.get(key));
            ForebayException other = assertThrows(ForebayException.InvalidArgument.class,
                    () -> db.aggregator("sales", new AggregatorOptions().key(KEY).agg("n", "count")));
            assertTrue(other.getMessage().contains("with [\"count\"] are asked for"), other.getMessage());
            assertThrows(ForebayException.NotFound.class, () -> db.aggregator("others", new AggregatorOptions()));
        }
    }

    /** The handle had the tables of later groups of that name, and was refused for ever. */
    @Test
    void anAggregatorGoesOnWhereARollbackBringsBackWhatWasDropped() {
        List<Sale> rows = Rows.some(new Random(11), 20);
        List<Sale> twice = new ArrayList<>(rows);
        twice.addAll(rows);
        try (Database db = open()) {
            StoredAggregator before = db.aggregator("sales", asked());
            before.commit(ArrowStream.ofIpc(Rows.ipc(rows)), Durability.OS, bytes("20"));
            db.savepoint("s");
            db.dropTable("sales");
            db.dropTable("sales.schema");
            StoredAggregator sales = db.aggregator("sales", asked());
            sales.commit(ArrowStream.ofIpc(Rows.ipc(rows.subList(0, 1))), Durability.OS, bytes("1"));
            assertEquals("1", text(sales.metadata()));
            db.rollback("s");
            assertEquals("20", text(sales.metadata()));
            assertEquals(expected(rows), byKey(Rows.read(sales.result())));
            assertEquals(20, sales.update(ArrowStream.ofIpc(Rows.ipc(rows)), Durability.OS));
            assertEquals(expected(twice), byKey(Rows.read(sales.result())));
            // What is dropped, and not made again, is not made by who holds it still.
            db.dropTable("sales");
            db.dropTable("sales.schema");
            assertThrows(ForebayException.NotFound.class,
                    () -> sales.update(ArrowStream.ofIpc(Rows.ipc(rows)), Durability.OS));
            assertFalse(db.tables().containsKey("sales"));
        }
    }

    private static String city(long row) {
        return "a city of a longer name " + Long.toHexString(row * 0x9E3779B97F4A7C15L);
    }

    @Test
    void moreGroupsThanThereIsMemoryForGoToFiles() throws IOException {
        Path spill = Files.createDirectory(dir.resolve("spill"));
        List<Sale> rows = new ArrayList<>();
        for (int row = 0; row < 300_000; row++) {
            rows.add(new Sale(city(row), null, null, null, (long) row, null));
        }
        AggregatorOptions options = new AggregatorOptions().key("city").agg("last", "max:sold");
        ArrowStream answers;
        try (Aggregator groups = new Aggregator(options.set("memory", "4M").set("spill", spill.toString()))) {
            groups.update(ArrowStream.ofIpc(Rows.ipc(rows)));
            try (Stream<Path> files = Files.list(spill)) {
                assertEquals(1, files.count());
            }
            assertEquals(Map.of("last", 77_777L), groups.get(city(77_777)));
            answers = groups.result();
        }
        assertEquals(300_000, Rows.read(answers).size(), "a stream goes on");
        try (Stream<Path> files = Files.list(spill)) {
            assertEquals(0, files.count());
        }
        ForebayException full = assertThrows(ForebayException.InvalidArgument.class, () -> {
            try (Aggregator groups = new Aggregator(new AggregatorOptions().key("city").agg("n", "count").set("memory", "4M"))) {
                groups.update(ArrowStream.ofIpc(Rows.ipc(rows)));
            }
        });
        assertTrue(full.getMessage().contains("memory"), full.getMessage());
    }

    /** Vectors take any bytes for a text. */
    @Test
    void whatOtherLibrariesMadeIsChecked() {
        byte[] none = {(byte) 0xC3, '('};
        List<Sale> rows = Rows.some(new Random(2), 10);
        try (Aggregator groups = new Aggregator(asked())) {
            for (boolean isStream : new boolean[] {false, true}) {
                ForebayException told = assertThrows(ForebayException.InvalidArgument.class,
                        () -> Rows.lent(rows, root -> ((VarCharVector) root.getVector("city")).setSafe(3, none), isStream, groups::update));
                assertTrue(told.getMessage().contains("UTF8") || told.getMessage().contains("UTF-8"), told.getMessage());
            }
            assertEquals(List.of(), Rows.read(groups.result()));
        }
    }

    @Test
    void misuseIsAnException() throws IOException {
        Random random = new Random(1);
        byte[] ipc = Rows.ipc(Rows.some(random, 10));
        Class<ForebayException.InvalidArgument> invalid = ForebayException.InvalidArgument.class;
        assertThrows(invalid, () -> new Aggregator(new AggregatorOptions().key("city")));
        assertThrows(invalid, () -> new Aggregator(asked().set("memry", "4M")));
        assertThrows(invalid, () -> new Aggregator(asked().set("threads", "many")));
        for (long address : new long[] {0, 1, -3}) {
            assertThrows(invalid, () -> ArrowStream.ofArray(address, address));
            assertThrows(invalid, () -> ArrowStream.ofStream(address));
            assertThrows(invalid, () -> ArrowStream.ofIpc(ipc).export(address));
        }
        assertThrows(invalid, () -> ArrowStream.ofIpc(new byte[] {1, 2, 3}));
        assertThrows(NullPointerException.class, () -> ArrowStream.ofIpc(null));
        assertEquals(List.of("price", "net: \"x\""), Functions.columns(Functions.of("arg_max", "price", "net: \"x\"")));
        assertEquals("top_k:price:10", Functions.of("top_k", "price", 10));
        Aggregator groups = new Aggregator(asked());
        assertThrows(invalid, groups::result);
        assertThrows(invalid, () -> groups.get("x", null, null));
        ArrowStream once = ArrowStream.ofIpc(ipc);
        groups.update(once);
        assertThrows(ForebayException.Closed.class, () -> groups.update(once));
        ArrowStream half = groups.result();
        InputStream bytes = half.ipc();
        assertTrue(bytes.read() >= 0);
        assertThrows(invalid, () -> groups.merge(half));
        assertThrows(invalid, () -> groups.merge(groups.result()), "answers are no states");
        assertThrows(invalid, () -> groups.get("x"));
        assertThrows(invalid, () -> groups.get("x", "not a day", null));
        assertThrows(invalid, () -> groups.get(new Object(), null, null));
        assertThrows(invalid, () -> groups.get("x", null, Instant.EPOCH.plusNanos(1)), "a column of microseconds has none");
        try (Aggregator byPrice = new Aggregator(new AggregatorOptions().key("price").agg("n", "count"))) {
            byPrice.update(ArrowStream.ofIpc(ipc));
            assertThrows(invalid, () -> byPrice.get(new BigDecimal("1E999999999")));
        }
        ForebayException told = assertThrows(invalid,
                () -> new Aggregator(asked().agg("x", "sum:nowhere")).update(ArrowStream.ofIpc(ipc)));
        assertTrue(told.getMessage().contains("nowhere"), told.getMessage());
        // Broken bytes are an error, whatever they are.
        for (int round = 0; round < 400; round++) {
            byte[] broken = ipc.clone();
            for (int flip = 0; flip < 3; flip++) {
                broken[random.nextInt(broken.length)] ^= (byte) (1 << random.nextInt(8));
            }
            try (Aggregator some = new Aggregator(asked())) {
                some.update(ArrowStream.ofIpc(broken));
            } catch (ForebayException expected) {
                assertFalse(expected.getMessage().isEmpty());
            }
        }
        groups.close();
        groups.close();
        assertThrows(ForebayException.Closed.class, groups::states);
        assertThrows(ForebayException.Closed.class, () -> groups.update(ArrowStream.ofIpc(ipc)));
        Database db = open();
        StoredAggregator stored = db.aggregator("sales", asked());
        stored.update(ArrowStream.ofIpc(ipc));
        ArrowStream answers = stored.result();
        assertFalse(Rows.exported(stored.result(), db::close).isEmpty(), "what was exported can be read on");
        assertThrows(ForebayException.Closed.class, () -> Rows.read(answers));
        assertThrows(ForebayException.Closed.class, stored::metadata);
        assertThrows(ForebayException.Closed.class, () -> stored.update(ArrowStream.ofIpc(ipc)));
        assertThrows(ForebayException.Closed.class, () -> db.aggregator("sales", asked()));
    }
}
