package dev.forebay;

import static dev.forebay.Keys.bytes;
import static dev.forebay.Keys.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Several class loaders of one process, as servers of applications have them. */
class LoaderTest {
    @TempDir
    Path dir;

    /** Each has a library of its own, and goes once nobody has it: also while threads of the engine's are at their end. */
    @Test
    void aClassLoaderHasALibraryOfItsOwnAndCanGo() throws Exception {
        for (int round = 0; round < 3; round++) {
            WeakReference<ClassLoader> loader = used(dir.resolve("db" + round));
            for (int wait = 0; wait < 200 && loader.get() != null; wait++) {
                System.gc();
                Thread.sleep(20);
            }
            assertNull(loader.get(), "the loader was collected");
        }
        try (Database db = Database.open(dir.resolve("db0"))) {
            assertEquals("value", text(db.table("t").get(bytes("key"))));
        }
    }

    @Test
    void aLibraryOfAnotherVersionIsRefused() {
        Library.check(Native::version);
        Error told = assertThrows(UnsatisfiedLinkError.class, () -> Library.check(() -> bytes("9.9.9")));
        assertTrue(told.getMessage().contains("9.9.9") && told.getMessage().contains(text(Native.version())), told.getMessage());
        assertThrows(UnsatisfiedLinkError.class, () -> Library.check(() -> {
            throw new UnsatisfiedLinkError("version");
        }));
    }

    private static WeakReference<ClassLoader> used(Path path) throws Exception {
        URL[] places = {Database.class.getProtectionDomain().getCodeSource().getLocation()};
        try (URLClassLoader loader = new URLClassLoader(places, ClassLoader.getPlatformClassLoader())) {
            Class<?> databases = loader.loadClass(Database.class.getName());
            Object db = databases.getMethod("open", Path.class).invoke(null, path);
            Object table = databases.getMethod("table", String.class).invoke(db, "t");
            Method put = table.getClass().getMethod("put", byte[].class, byte[].class);
            put.invoke(table, bytes("key"), bytes("value"));
            // Round after round a database is closed, or forgotten.
            if (path.endsWith("db0")) {
                databases.getMethod("close").invoke(db);
                Throwable told = assertThrows(
                        InvocationTargetException.class, () -> put.invoke(table, bytes("key"), bytes("value"))).getCause();
                assertEquals("dev.forebay.ForebayException$Closed", told.getClass().getName());
                assertSame(loader, told.getClass().getClassLoader(), "the exception is of the caller's package");
            }
            return new WeakReference<>(loader);
        }
    }
}
