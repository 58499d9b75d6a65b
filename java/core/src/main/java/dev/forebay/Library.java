package dev.forebay;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;

/**
 * Loads the native half: the file that the property {@code forebay.library} names; else the one that the jar has for this
 * platform, by way of a file in {@code forebay.tmpdir} or the usual folder for such files; else what
 * {@code java.library.path} has.
 */
final class Library {
    private Library() {}

    static void load() {
        String named = System.getProperty("forebay.library");
        if (named != null) {
            System.load(Path.of(named).toAbsolutePath().toString());
            return;
        }
        List<String> tried = new ArrayList<>();
        String file = System.mapLibraryName("forebay_jni");
        for (String platform : platforms(System.getProperty("os.name"), System.getProperty("os.arch"))) {
            if (isLoaded("natives/" + platform + "/" + file, tried)) {
                return;
            }
        }
        try {
            System.loadLibrary("forebay_jni");
        } catch (UnsatisfiedLinkError error) {
            UnsatisfiedLinkError told = new UnsatisfiedLinkError(
                    "the native half of dev.forebay was not found; name its file by -Dforebay.library=FILE. Tried: " + tried);
            told.initCause(error);
            throw told;
        }
    }

    /** One of another version may have other calls, or the same that mean something else. */
    static void check(Supplier<byte[]> version) {
        String ours = jarVersion();
        String theirs;
        try {
            theirs = new String(version.get(), UTF_8);
        } catch (UnsatisfiedLinkError error) {
            theirs = "older";
        }
        if (!theirs.equals(ours)) {
            throw new UnsatisfiedLinkError("the native half of dev.forebay that was loaded has version " + theirs + ", and the jar "
                    + ours + "; name the file of that version by -Dforebay.library=FILE, or take the other away from java.library.path");
        }
    }

    private static String jarVersion() {
        try (InputStream version = Library.class.getResourceAsStream("version")) {
            return version == null ? "none" : new String(version.readAllBytes(), UTF_8).trim();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The folders that may have a library for this machine, the likeliest first. */
    static List<String> platforms(String system, String processor) {
        String os = system.toLowerCase(Locale.ROOT);
        String arch = switch (processor) {
            case "amd64", "x86_64" -> "x86_64";
            case "arm64", "aarch64" -> "aarch64";
            default -> processor;
        };
        if (os.startsWith("mac")) {
            return List.of("macos-" + arch);
        }
        if (os.startsWith("windows")) {
            return List.of("windows-" + arch);
        }
        String plain = os + "-" + arch;
        // With musl a library for glibc does not load, nor the other way round.
        boolean hasMusl = Files.exists(Path.of("/lib/ld-musl-" + arch + ".so.1"));
        return hasMusl ? List.of(plain + "-musl", plain) : List.of(plain, plain + "-musl");
    }

    private static boolean isLoaded(String resource, List<String> tried) {
        try (InputStream library = Library.class.getResourceAsStream(resource)) {
            if (library == null) {
                tried.add(resource + " is not in the jar");
                return false;
            }
            String folder = System.getProperty("forebay.tmpdir", System.getProperty("java.io.tmpdir"));
            Path copy = Files.createTempFile(Path.of(folder), "forebay-", System.mapLibraryName(""));
            try {
                Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
                System.load(copy.toString());
                return true;
            } finally {
                // What is loaded needs no name; where it does, the file goes at the end.
                if (!copy.toFile().delete()) {
                    copy.toFile().deleteOnExit();
                }
            }
        } catch (IOException | UnsatisfiedLinkError error) {
            tried.add(resource + ": " + error.getMessage() + " (a folder that lets libraries run: -Dforebay.tmpdir=FOLDER)");
            return false;
        }
    }
}
