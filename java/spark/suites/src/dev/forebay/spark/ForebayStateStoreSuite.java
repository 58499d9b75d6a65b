package dev.forebay.spark;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreIterator;
import org.apache.spark.sql.execution.streaming.state.StateStoreSuiteBase;
import org.apache.spark.sql.execution.streaming.state.StateStoreTestsHelper;
import org.apache.spark.sql.execution.streaming.state.TestStateSchemaProvider;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.scalactic.source.Position;
import org.scalatest.Tag;
import scala.Function0;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's suite for any provider, but for six of its cases, which are of other providers' own: checksum files beside a
 * provider's files, checkpoints that Spark 4.0 wrote, and what goes by the name of the provider's class.
 */
public final class ForebayStateStoreSuite extends StateStoreSuiteBase<ForebayStateStoreProvider> {
    private static final List<String> NOT_OURS = List.of(
            "file checksum can be enabled and disabled for the same checkpoint",
            "checksum files are also cleaned up during maintenance",
            "overwrite state file without overwriting checksum file",
            "Load spark 4.0 golden checkpoint written without checksum",
            "SPARK-38320 - state store iterator behavior differences",
            "SPARK-18342: commit fails when rename fails");

    private final Random random = new Random(1);

    /** The suite's constructor calls it for each case. */
    @Override
    public void test(String name, Seq<Tag> tags, Function0<Object> body, Position position) {
        if (NOT_OURS.stream().noneMatch(name::startsWith)) {
            super.test(name, tags, body, position);
        }
    }

    private static String directory() {
        try {
            return Files.createTempDirectory(Path.of(System.getProperty("java.io.tmpdir")), "store").toString();
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private StateStoreId id() {
        return new StateStoreId(directory(), random.nextInt(1 << 20), 0, "default");
    }

    private ForebayStateStoreProvider make(StateStoreId id, StructType keys, KeyStateEncoderSpec spec, SQLConf conf,
            Configuration hadoop, boolean useColumnFamilies) {
        ForebayStateStoreProvider provider = new ForebayStateStoreProvider();
        hadoop.set("sql.streaming.runId", UUID.randomUUID().toString());
        provider.init(id, keys, StateStoreTestsHelper.valueSchema(), spec, useColumnFamilies, StateStoreConf.apply(conf),
                hadoop, false, Option.apply(new TestStateSchemaProvider()));
        return provider;
    }

    private ForebayStateStoreProvider make(StateStoreId id, SQLConf conf, Configuration hadoop, boolean useColumnFamilies) {
        StructType keys = StateStoreTestsHelper.keySchema();
        return make(id, keys, new NoPrefixKeyStateEncoderSpec(keys), conf, hadoop, useColumnFamilies);
    }

    @Override
    public ForebayStateStoreProvider newStoreProvider() {
        return newStoreProvider(id());
    }

    @Override
    public ForebayStateStoreProvider newStoreProvider(StateStoreId id) {
        return make(id, SQLConf.get(), new Configuration(), false);
    }

    @Override
    public ForebayStateStoreProvider newStoreProvider(StateStoreId id, boolean useColumnFamilies) {
        return make(id, SQLConf.get(), new Configuration(), useColumnFamilies);
    }

    @Override
    public ForebayStateStoreProvider newStoreProvider(StateStoreId id, Configuration hadoop) {
        return make(id, SQLConf.get(), hadoop, false);
    }

    @Override
    public ForebayStateStoreProvider newStoreProvider(int deltas, int inMemory) {
        return make(id(), getDefaultSQLConf(deltas, inMemory), new Configuration(), false);
    }

    @Override
    public ForebayStateStoreProvider newStoreProvider(StructType keys, KeyStateEncoderSpec spec, boolean useColumnFamilies) {
        return make(id(), keys, spec, SQLConf.get(), new Configuration(), useColumnFamilies);
    }

    @Override
    public ForebayStateStoreProvider newStoreProvider(boolean useColumnFamilies) {
        return newStoreProvider(id(), useColumnFamilies);
    }

    /** Since Spark 4.1, as is the next one. */
    public ForebayStateStoreProvider newStoreProviderWithClonedConf(StateStoreId id) {
        return make(id, SQLConf.get().clone(), new Configuration(), false);
    }

    public ForebayStateStoreProvider newStoreProviderNoInit() {
        return new ForebayStateStoreProvider();
    }

    @Override
    public scala.collection.immutable.Set<Tuple2<Tuple2<String, Object>, Object>> getLatestData(
            ForebayStateStoreProvider provider, boolean useColumnFamilies) {
        return getData(provider, -1, useColumnFamilies);
    }

    @Override
    public scala.collection.immutable.Set<Tuple2<Tuple2<String, Object>, Object>> getData(
            ForebayStateStoreProvider provider, int version, boolean useColumnFamilies) {
        ForebayStateStoreProvider fresh = newStoreProvider(provider.stateStoreId(), useColumnFamilies);
        Set<Tuple2<Tuple2<String, Object>, Object>> data = new HashSet<>();
        try {
            long read = version < 0 ? newest(provider.stateStoreId()) : version;
            StateStore store = fresh.open(read, Option.empty(), Access.WRITE, false);
            StateStoreIterator<UnsafeRowPair> rows = store.iterator("default");
            while (rows.hasNext()) {
                data.add(StateStoreTestsHelper.rowPairToDataPair(rows.next()));
            }
            store.abort();
        } finally {
            fresh.close();
        }
        return CollectionConverters.asScala(data).toSet();
    }

    /** The newest version that was committed, or 0. */
    private static long newest(StateStoreId id) {
        String[] names = new File(id.storeCheckpointLocation().toUri().getPath()).list();
        return names == null ? 0 : Arrays.stream(names).map(org.apache.hadoop.fs.Path::new)
                .map(path -> Naming.version(path, Naming.CHANGELOG)).flatMap(Optional::stream)
                .mapToLong(Naming.Version::number).max().orElse(0);
    }

    @Override
    public SQLConf getDefaultSQLConf(int deltas, int inMemory) {
        SQLConf conf = SQLConf.get().clone();
        conf.setConfString("spark.sql.streaming.stateStore.minDeltasForSnapshot", Integer.toString(deltas));
        return conf;
    }
}
