package dev.forebay.spark;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import org.apache.hadoop.conf.Configuration;

import dev.forebay.Pool;
import dev.forebay.Scan;

/** One store on one executor, with keys and values that can be read. Several may have the same place for checkpoints. */
final class Executor implements AutoCloseable {
    static final Pool POOL = new Pool(64 << 20, 2);
    static final String LISTS = "lists";
    /** Keys and values are bytes here. */
    private static final Plan.Rows ROWS = new Plan.Rows() {
        @Override
        public byte[] key(byte[] row) {
            return row;
        }

        @Override
        public byte[] value(byte[] row) {
            return row;
        }
    };

    final VersionedState state;
    final Plan plan;
    private final Plan.Shape shape;
    final Path local;

    /** How often there are snapshots, what is kept, and what time it is. */
    record Options(boolean hasFamilies, boolean hasIds, int deltas, int kept, long graceMilliseconds, LongSupplier clock) {
        Options(boolean hasFamilies, boolean hasIds, int deltas, int kept, long graceMilliseconds) {
            this(hasFamilies, hasIds, deltas, kept, graceMilliseconds, System::currentTimeMillis);
        }
    }

    Executor(Path checkpoints, Options options, UnaryOperator<RemoteFiles> around) throws Exception {
        local = Files.createTempDirectory("executor");
        org.apache.hadoop.fs.Path root = new org.apache.hadoop.fs.Path(checkpoints.toUri());
        shape = new Plan.Shape("default", Family.Order.KEY, Family.Values.ONE, options.hasFamilies(), options.hasIds());
        Settings settings = new Settings(64 << 20, 2, true, 1000, options.graceMilliseconds(), "wb-tree", "wb-tree:ordered", "lz4", 8, true);
        RemoteFiles remote = around.apply(SparkFiles.of(root, "lz4", new Configuration()));
        plan = new Plan(remote, new Naming(root), local, settings, POOL, shape,
                new Plan.Retention(options.deltas(), options.kept(), -1, 0), ROWS, options.clock());
        state = new VersionedState(plan, uploaded -> { });
    }

    void load(Naming.Version version) throws Exception {
        state.load(version.number(), version.number() == 0 ? Optional.empty() : version.id(), Access.WRITE);
    }

    /** Makes the family of lists, as an operator does in every task. */
    void makeLists() {
        if (state.database().createFamily(LISTS, false, Family.Order.HASH, Family.Values.LIST)) {
            state.forceSnapshot();
        }
    }

    private byte[] named(String family, String key) {
        return shape.hasFamilies() ? state.database().family(family).named(bytes(key)) : bytes(key);
    }

    void put(String family, String key, String value) {
        state.database().put(state.database().family(family), bytes(key), bytes(value));
        state.changelog().put(named(family, key), bytes(value));
    }

    void delete(String family, String key) {
        state.database().delete(state.database().family(family), bytes(key));
        state.changelog().delete(named(family, key));
    }

    void merge(String family, String key, String operand) {
        state.database().merge(state.database().family(family), bytes(key), bytes(operand));
        state.changelog().merge(named(family, key), bytes(operand));
    }

    String get(String family, String key) {
        byte[] value = state.database().get(state.database().family(family), bytes(key));
        return value == null ? null : text(value);
    }

    Naming.Version commit() throws Exception {
        VersionedState.Committed committed = state.commit();
        return new Naming.Version(committed.version(), committed.id());
    }

    /** All that is there, as {@code family/key}. */
    Map<String, String> contents() {
        Map<String, String> contents = new TreeMap<>();
        for (Family family : state.database().families()) {
            Scan scan = state.database().scan(family);
            while (scan.advance()) {
                contents.put(family.shape.name() + "/" + text(scan.key()), text(scan.value()));
            }
            state.database().close(scan);
        }
        return contents;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** Closes as an executor that ends in order does: what waits to be uploaded is lost all the same. */
    @Override
    public void close() {
        state.close();
    }
}
