package dev.forebay.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import org.apache.hadoop.fs.Path;

/** Names of files by what is in them: the SHA-256, in hex. */
final class Content {
    private Content() {}

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException("every Java platform has SHA-256", error);
        }
    }

    static String name(MessageDigest digest) {
        return HexFormat.of().formatHex(digest.digest());
    }

    static String nameOf(java.nio.file.Path file) throws IOException {
        MessageDigest digest = sha256();
        try (InputStream in = Files.newInputStream(file);
                OutputStream out = new DigestOutputStream(OutputStream.nullOutputStream(), digest)) {
            in.transferTo(out);
        }
        return name(digest);
    }

    /** A name that stands in a manifest, which must not lead out of a directory. */
    static String plainName(String name, Path manifest) throws IOException {
        if (name.isEmpty() || name.startsWith("/") || name.contains("\\") || name.contains("..")) {
            throw new Manifest.Damaged(
                    "the snapshot " + manifest + " names a file '" + name + "', which is not a file's name", null);
        }
        return name;
    }
}
