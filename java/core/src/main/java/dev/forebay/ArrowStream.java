package dev.forebay;

import java.io.InputStream;
import java.lang.ref.Reference;
import java.util.Objects;

/**
 * Record batches of Arrow's, on their way in or out: rows, states, answers. They come and go as structures of Arrow's C data
 * interface, by their addresses, or as the bytes of Arrow's IPC stream format; this package needs no library of Arrow's for
 * either. With arrow-java:
 *
 * <pre>{@code
 * Data.exportVectorSchemaRoot(allocator, root, null, array, schema);
 * groups.update(ArrowStream.ofArray(array.memoryAddress(), schema.memoryAddress()));
 *
 * groups.result().export(stream.memoryAddress());
 * ArrowReader answers = Data.importArrayStream(allocator, stream);
 * // or, without the C data interface:
 * ArrowReader same = new ArrowStreamReader(groups.result().ipc(), allocator);
 * }</pre>
 *
 * <p>A stream is read once, by the call that is given it; afterwards it is closed. Until then it holds what it is made of. An
 * address has to be that of such a structure, whose buffers are as long as it says: nobody can check that, and another one
 * may end the process. All else is checked.
 */
public final class ArrowStream extends Native implements AutoCloseable {
    /** Who must not be let go of before. */
    private final Object of;

    ArrowStream(Object of, long number) {
        super(number);
        this.of = of;
    }

    /** The batch of an {@code ArrowArray} and its {@code ArrowSchema}. Both are moved out, and are released there. */
    public static ArrowStream ofArray(long array, long schema) {
        return new ArrowStream(null, streamOfArray(array, schema));
    }

    /** The batches of an {@code ArrowArrayStream}, which is moved out, and is released there. */
    public static ArrowStream ofStream(long stream) {
        return new ArrowStream(null, streamOfStream(stream));
    }

    /** The batches of an IPC stream, as {@code ArrowStreamWriter} writes it. */
    public static ArrowStream ofIpc(byte[] ipc) {
        return new ArrowStream(null, streamOfBytes(Objects.requireNonNull(ipc, "ipc")));
    }

    /**
     * Moves it to an {@code ArrowArrayStream} of yours, which has room and holds nothing yet. Whoever takes it from there
     * releases it. It may be read on after what it is of was closed, and holds memory and files until it is released.
     */
    public void export(long stream) {
        try {
            exportStream(number, stream);
        } finally {
            letGo();
            Reference.reachabilityFence(of);
        }
    }

    /** The same as the bytes of an IPC stream, which are made while they are read. */
    public InputStream ipc() {
        return new InputStream() {
            private byte[] bytes = new byte[0];
            private int place;

            private boolean hasNext() {
                while (bytes != null && place == bytes.length) {
                    bytes = ArrowStream.this.next();
                    place = 0;
                }
                return bytes != null;
            }

            @Override
            public int read() {
                return hasNext() ? bytes[place++] & 0xFF : -1;
            }

            @Override
            public int read(byte[] into, int offset, int length) {
                Objects.checkFromIndexSize(offset, length, into.length);
                if (length == 0) {
                    return 0;
                }
                if (!hasNext()) {
                    return -1;
                }
                int count = Math.min(length, bytes.length - place);
                System.arraycopy(bytes, place, into, offset, count);
                place += count;
                return count;
            }

            @Override
            public void close() {
                bytes = null;
                ArrowStream.this.close();
            }
        };
    }

    /** The next bytes, or null at the end. */
    private byte[] next() {
        try {
            return streamBytes(number);
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(of);
        }
    }

    /** Lets go of what it holds. Again does nothing. */
    @Override
    public void close() {
        letGo();
    }
}
