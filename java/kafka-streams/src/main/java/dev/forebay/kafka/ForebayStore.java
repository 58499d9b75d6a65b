package dev.forebay.kafka;

import dev.forebay.ForebayException;
import dev.forebay.WriteBatch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What all stores have: a database, and what a commit keeps in it. One thread writes; any number may read, also while the
 * store is closed, which ends their calls with an {@code InvalidStateStoreException}.
 */
abstract class ForebayStore implements StateStore {
    static final String FROM_BEHIND_TO = "Returning empty iterator for fetch with invalid key range: from > to. "
            + "This may be due to range arguments set in the wrong order, "
            + "or serdes that don't preserve ordering when lexicographically comparing the serialized bytes. "
            + "Note that the built-in numerical serdes do not follow this for negative numbers";
    private static final Logger LOG = LoggerFactory.getLogger(ForebayStore.class);
    private static final String FOLDER = "forebay";
    private static final String OFFSETS_BEFORE_4_3 = ".checkpoint";

    private final String name;
    final Format format;
    /** Those that are not closed. */
    private final Set<Entries<?>> iterators = ConcurrentHashMap.newKeySet();

    StateStoreContext context;
    StateDatabase database;
    /** Its own lock: it is what the data are, also to a query that comes in between. */
    private Position position = Position.emptyPosition();
    private Map<TopicPartition, Long> offsets = Map.of();
    private boolean isConsistencyEnabled;
    private volatile boolean isOpen;
    /** Whether Kafka Streams has asked where to restore from. */
    private boolean isAsked;

    ForebayStore(String name, Format format) {
        this.name = name;
        this.format = format;
    }

    @Override
    public final void init(StateStoreContext context, StateStore root) {
        this.context = context;
        isAsked = false;
        Path path = context.stateDir().toPath().resolve(FOLDER).resolve(name);
        Map<String, Object> config = context.appConfigs();
        isConsistencyEnabled = InternalConfig.getBoolean(config, InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, false);
        try {
            database = StateDatabase.open(path, Settings.of(config), hasChangelog());
        } catch (ForebayException | IOException error) {
            throw new ProcessorStateException("Error opening store " + name + " at " + path, error);
        }
        try {
            leaveOtherFormats();
            Committed committed = Committed.of(database.committed(), name);
            offsets = committed.offsets();
            position = committed.position();
            open(committed.streamTime());
        } catch (RuntimeException | Error error) {
            try {
                database.close();
            } catch (RuntimeException second) {
                error.addSuppressed(second);
            }
            if (error instanceof ForebayException failure) {
                throw told("opening", failure);
            }
            throw error;
        }
        isOpen = true;
        StoreMetrics.add(context, metricsScope(), name, database);
        if (root != null) {
            context.register(root, (RecordBatchingStateRestoreCallback) this::restore);
        }
    }

    /** Opens tables. The time is the latest that the last commit had seen, or -1. */
    abstract void open(long streamTime);

    abstract String metricsScope();

    /** The latest time that was seen, or -1. */
    abstract long streamTime();

    /** Adds a record of the changelog, unless it has expired. Returns whether it was. */
    abstract boolean restore(WriteBatch batch, byte[] key, byte[] value);

    /** Before records are restored: their keys. */
    void beforeRestore(Collection<ConsumerRecord<byte[], byte[]>> records) {}

    /** All of it as one batch. */
    final void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        synchronized (position) {
            try {
                beforeRestore(records);
                WriteBatch batch = new WriteBatch();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (restore(batch, record.key(), record.value())) {
                        ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(record, isConsistencyEnabled, position);
                    }
                }
                if (batch.size() > 0) {
                    database.write(batch);
                }
            } catch (ForebayException error) {
                throw told("restoring", error);
            }
        }
    }

    /** A write of the record at hand. */
    final void write(Runnable write, int records) {
        synchronized (position) {
            try {
                write.run();
            } catch (ForebayException error) {
                throw told("writing to", error);
            }
            database.wrote(records);
            StoreQueryUtils.updatePosition(position, context);
        }
    }

    @Override
    public final void commit(Map<TopicPartition, Long> changelogOffsets) {
        if (!isOpen || isOfAnotherStore(changelogOffsets)) {
            return;
        }
        if (changelogOffsets.isEmpty()) {
            offsets = Map.of();
        } else {
            Map<TopicPartition, Long> merged = new HashMap<>(offsets);
            changelogOffsets.forEach((partition, offset) -> {
                if (offset == null) {
                    merged.remove(partition);
                } else {
                    merged.put(partition, offset);
                }
            });
            offsets = merged;
        }
        keep();
    }

    /**
     * Whether offsets are of what another store had here. Kafka Streams before 4.3 wrote them to a file, which is brought to
     * stores before they are asked for theirs. Those of this one belong to its data, and others do not.
     */
    private boolean isOfAnotherStore(Map<TopicPartition, Long> changelogOffsets) {
        if (isAsked || changelogOffsets.isEmpty() || !Files.exists(context.stateDir().toPath().resolve(OFFSETS_BEFORE_4_3))) {
            return false;
        }
        LOG.info("Store {} is restored from its own offsets {}, and not from another store's", name, offsets);
        return true;
    }

    private boolean hasChangelog() {
        return context instanceof InternalProcessorContext<?, ?> host && host.changelogFor(name) != null;
    }

    private void keep() {
        synchronized (position) {
            try {
                database.commit(new Committed(offsets, position, streamTime()).bytes());
            } catch (ForebayException error) {
                throw told("committing", error);
            }
        }
    }

    /** Asked for by other programs than the host, which commits. Under exactly-once what was not committed must not last. */
    @Override
    @SuppressWarnings("deprecation")
    public final void flush() {
        if (!isOpen || database.isExactlyOnce()) {
            return;
        }
        keep();
        try {
            database.makeDurable();
        } catch (ForebayException error) {
            throw told("flushing", error);
        }
    }

    @Override
    public final Long committedOffset(TopicPartition partition) {
        checkOpen();
        isAsked = true;
        return offsets.get(partition);
    }

    @Override
    @SuppressWarnings("deprecation")
    public final boolean managesOffsets() {
        return true;
    }

    @Override
    public final void close() {
        if (!isOpen) {
            return;
        }
        isOpen = false;
        StoreMetrics.remove(context, name);
        if (!iterators.isEmpty()) {
            LOG.warn("Closing {} open iterators for store {}", iterators.size(), name);
            List.copyOf(iterators).forEach(Entries::close);
        }
        try {
            database.close();
        } catch (ForebayException error) {
            throw told("closing", error);
        }
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final boolean persistent() {
        return true;
    }

    @Override
    public final boolean isOpen() {
        return isOpen;
    }

    @Override
    public final Position getPosition() {
        return position;
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        return StoreQueryUtils.handleBasicQueries(query, bound, config, this, position, context);
    }

    final void checkOpen() {
        if (!isOpen) {
            throw new InvalidStateStoreException("Store " + name + " is currently closed");
        }
    }

    /** Closed with the store. */
    final <T extends Entries<?>> T keep(T entries) {
        checkOpen();
        iterators.add(entries);
        return entries;
    }

    final void forget(Entries<?> entries) {
        iterators.remove(entries);
    }

    /** What the host makes of an exception: a store that is closed, or a failure that ends the task. */
    final RuntimeException told(String act, ForebayException error) {
        if (error instanceof ForebayException.Closed) {
            return new InvalidStateStoreException("Store " + name + " is currently closed", error);
        }
        return new ProcessorStateException("Error while " + act + " store " + name, error);
    }

    /**
     * Values of another format are not read as ones of this. They go, and their offset with them, where the host can restore
     * the store from its changelog; else they are told.
     */
    private void leaveOtherFormats() {
        for (String table : database.tables()) {
            for (Format other : Format.values()) {
                if (other != format && table.startsWith(other.text)) {
                    if (!hasChangelog()) {
                        throw new ProcessorStateException("Store " + name + " has values of the format " + other.text
                                + ", is opened as " + format.text + ", and has no changelog to make them anew from. Open it as "
                                + other.text + ", or remove its local state.");
                    }
                    LOG.info("Store {} goes over from the format {} to {}: it is restored whole", name, other.text, format.text);
                    database.clear();
                    return;
                }
            }
        }
    }
}
