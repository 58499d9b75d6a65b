package dev.forebay.kafka;

import dev.forebay.Direction;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.internals.SessionKeySchema;

/** A store of sessions. */
class ForebaySessionStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    ForebaySessionStore(SessionSupplier of) {
        super(of.name(), of.format(), Keys.SESSION, of.retentionPeriod(), of.emits(), of.segmentIntervalMs());
    }

    static ForebaySessionStore of(SessionSupplier supplier) {
        return supplier.format() == Format.HEADERS ? new Headers(supplier) : new ForebaySessionStore(supplier);
    }

    private static final class Headers extends ForebaySessionStore implements HeadersBytesStore {
        Headers(SessionSupplier of) {
            super(of);
        }
    }

    @Override
    String metricsScope() {
        return ForebayStores.SESSION_SCOPE;
    }

    @Override
    public void put(Windowed<Bytes> session, byte[] aggregate) {
        putBinary(SessionKeySchema.toBinary(session).get(), aggregate);
    }

    @Override
    public void remove(Windowed<Bytes> session) {
        put(session, null);
    }

    @Override
    public byte[] fetchSession(Bytes key, long sessionStart, long sessionEnd) {
        Objects.requireNonNull(key, "key cannot be null");
        return getBinary(SessionKeySchema.toBinary(key, sessionStart, sessionEnd).get());
    }

    /** Sessions that end in this time, of all keys. They are found until their table goes: so the host finds those that closed. */
    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(long earliestEnd, long latestEnd) {
        Ask ask = new Ask(null, null, earliestEnd, Long.MAX_VALUE, latestEnd, Direction.FORWARD);
        return find(ask, (parts, isWithin) -> new Entries<>(
                this, parts.iterator(), key -> isWithin.test(key) && keys.time(key) <= latestEnd, Keys::session));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes key, long earliestEnd, long latestStart) {
        return sessions(Objects.requireNonNull(key, "key cannot be null"), key, earliestEnd, latestStart, Direction.FORWARD);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(Bytes key, long earliestEnd, long latestStart) {
        return sessions(Objects.requireNonNull(key, "key cannot be null"), key, earliestEnd, latestStart, Direction.BACKWARD);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return sessions(keyFrom, keyTo, earliestEnd, latestStart, Direction.FORWARD);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return sessions(keyFrom, keyTo, earliestEnd, latestStart, Direction.BACKWARD);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> sessions(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart, Direction direction) {
        // They may end at any time.
        return entries(new Ask(keyFrom, keyTo, living(earliestEnd), latestStart, Long.MAX_VALUE, direction), Keys::session);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return findSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return backwardFindSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return findSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return backwardFindSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }
}
