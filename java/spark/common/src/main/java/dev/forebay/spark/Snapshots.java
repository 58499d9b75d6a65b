package dev.forebay.spark;

import dev.forebay.Checkpoint.CheckpointFile;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Snapshots where checkpoints are. All files of one are there before its manifest is, which comes at once or not at all:
 * who finds a manifest finds the snapshot. Files that an earlier snapshot of the same database has are not copied again.
 */
final class Snapshots {
    /** A file that each snapshot has anew stands in the manifest up to this length. */
    private static final long INLINE_BYTES_MAX = 1 << 20;
    /** How often a snapshot is uploaded of which files were deleted meanwhile. */
    private static final int UPLOADS_MAX = 3;

    /** What an upload took. */
    record Upload(Naming.Version version, long bytesCopied, long filesCopied, long filesReused, long milliseconds) {
        static final Upload NONE = new Upload(new Naming.Version(-1, Optional.empty()), 0, 0, 0, 0);
    }

    private final RemoteFiles remote;
    private final Naming naming;

    Snapshots(RemoteFiles remote, Naming naming) {
        this.remote = remote;
        this.naming = naming;
    }

    /** Uploads a snapshot. The caller removes the local one. */
    Upload upload(LocalSnapshot local) throws IOException {
        Incarnation incarnation = local.incarnation();
        if (incarnation.base().isPresent() && !remote.exists(naming.snapshot(incarnation.base().get()))) {
            incarnation.forget();
        }
        Upload upload = Upload.NONE;
        for (int attempt = 0; attempt < UPLOADS_MAX; attempt++) {
            Sent sent = uploadOnce(local, upload);
            upload = sent.upload();
            // No manifest named its files until now: somebody else may have deleted some.
            if (sent.isWritten() && isWhole(sent.manifest())) {
                incarnation.rebase(local.version(), sent.manifest());
                return upload;
            }
            remote.delete(naming.snapshot(local.version()));
            incarnation.forget();
        }
        throw new IOException("files of the snapshot " + naming.snapshot(local.version()) + " were deleted while it was"
                + " uploaded, " + UPLOADS_MAX + " times: set " + Settings.PREFIX + "fileGraceMs longer than an upload takes");
    }

    /** What was sent: whether the manifest was, too, no later look at its files can tell. */
    private record Sent(Upload upload, Manifest manifest, boolean isWritten) {}

    private Sent uploadOnce(LocalSnapshot local, Upload before) throws IOException {
        long begin = System.nanoTime();
        Transfer transfer = new Transfer(local);
        for (CheckpointFile file : local.checkpoint().files()) {
            transfer.take(file);
        }
        Manifest manifest = new Manifest(local.keys(), local.internalKeys(), local.idMax(), local.families(),
                local.incarnation().base().map(Naming.Version::toString).orElse(""), transfer.shared, transfer.inline);
        remote.makeDirectories(naming.root());
        // Nor may a crash leave a manifest that nobody has looked behind.
        boolean isWritten = isWhole(manifest);
        if (isWritten) {
            transfer.bytesCopied += write(naming.snapshot(local.version()), manifest::write);
        }
        long milliseconds = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        return new Sent(new Upload(local.version(), before.bytesCopied() + transfer.bytesCopied,
                before.filesCopied() + transfer.filesCopied + 1, transfer.filesReused, before.milliseconds() + milliseconds),
                manifest, isWritten);
    }

    /** The files of a snapshot on their way. */
    private final class Transfer {
        private final LocalSnapshot local;
        private final List<Manifest.Shared> shared = new ArrayList<>();
        private final List<Manifest.Inline> inline = new ArrayList<>();
        private boolean hasFolder;
        private long bytesCopied;
        private long filesCopied;
        private long filesReused;

        Transfer(LocalSnapshot local) {
            this.local = local;
        }

        void take(CheckpointFile file) throws IOException {
            Optional<Manifest.Shared> known = local.incarnation().known(file);
            if (known.isPresent()) {
                shared.add(known.get());
                filesReused += 1;
                return;
            }
            Path path = local.directory().resolve(file.name());
            if (file.digest().isEmpty() && file.bytes() <= INLINE_BYTES_MAX) {
                inline.add(new Manifest.Inline(file.name(), Files.readAllBytes(path)));
                return;
            }
            if (!hasFolder) {
                remote.makeDirectories(naming.files());
                hasFolder = true;
            }
            String content = Content.nameOf(path);
            bytesCopied += write(naming.file(content), out -> Files.copy(path, out));
            filesCopied += 1;
            Long digest = file.digest().isPresent() ? file.digest().getAsLong() : null;
            shared.add(new Manifest.Shared(file.name(), file.bytes(), digest, content));
        }
    }

    private interface Writing {
        void to(OutputStream out) throws IOException;
    }

    /** Writes a file, whole or not at all. Returns its length. */
    private long write(org.apache.hadoop.fs.Path path, Writing writing) throws IOException {
        RemoteFiles.Output out = remote.create(path);
        boolean isDone = false;
        try {
            Counting counted = new Counting(new BufferedOutputStream(out, 1 << 16));
            writing.to(counted);
            counted.flush();
            out.close();
            isDone = true;
            return counted.bytes;
        } finally {
            if (!isDone) {
                out.cancel();
            }
        }
    }

    private static final class Counting extends java.io.FilterOutputStream {
        long bytes;

        Counting(OutputStream out) {
            super(out);
        }

        @Override
        public void write(int one) throws IOException {
            out.write(one);
            bytes += 1;
        }

        @Override
        public void write(byte[] many, int offset, int length) throws IOException {
            out.write(many, offset, length);
            bytes += length;
        }
    }

    /** Whether all files of a snapshot are there. */
    private boolean isWhole(Manifest manifest) {
        if (manifest.shared().isEmpty()) {
            return true;
        }
        Set<String> there = new HashSet<>();
        remote.list(naming.files()).forEach(status -> there.add(status.getPath().getName()));
        return there.containsAll(manifest.contents());
    }

    Manifest read(Naming.Version version) throws IOException {
        org.apache.hadoop.fs.Path path = naming.snapshot(version);
        try (InputStream in = new BufferedInputStream(remote.open(path), 1 << 16)) {
            return Manifest.read(in, path);
        }
    }

    /**
     * Puts the files of a snapshot into a new directory. Those that an earlier life of the database left in its directory
     * are taken from there.
     */
    void download(Manifest manifest, Path directory, Path earlier, Incarnation before) throws IOException {
        Files.createDirectories(directory);
        for (Manifest.Inline file : manifest.inline()) {
            Path path = place(directory, file.name());
            Files.write(path, file.content());
        }
        for (Manifest.Shared file : manifest.shared()) {
            Path path = place(directory, file.name());
            if (!link(file, path, earlier, before)) {
                fetch(file, path);
            }
        }
    }

    private static Path place(Path directory, String name) throws IOException {
        Path path = directory.resolve(name);
        Files.createDirectories(path.getParent());
        return path;
    }

    private static boolean link(Manifest.Shared file, Path path, Path earlier, Incarnation before) throws IOException {
        boolean isSame = before.known(file.name()).filter(known -> known.content().equals(file.content())).isPresent();
        Path source = earlier.resolve(file.name());
        if (!isSame || file.digest() == null || !Files.exists(source) || Files.size(source) != file.bytes()) {
            return false;
        }
        try {
            Files.createLink(path, source);
            return true;
        } catch (IOException | UnsupportedOperationException error) {
            return false;
        }
    }

    private void fetch(Manifest.Shared file, Path path) throws IOException {
        org.apache.hadoop.fs.Path source = naming.file(file.content());
        String found;
        try (DigestInputStream in = new DigestInputStream(remote.open(source), Content.sha256())) {
            Files.copy(in, path);
            found = Content.name(in.getMessageDigest());
        }
        if (!found.equals(file.content())) {
            throw new Manifest.Damaged("the file " + source + " of a snapshot has other bytes than were written to it", null);
        }
    }
}
