package dev.forebay;

import static dev.forebay.Keys.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Every native with anything: numbers of another kind, closed or made up, and arrays of anything. */
class NativesTest {
    /**
     * These would write into folders of any name, make background work too slow to end, or print; or they take addresses,
     * which nobody can check.
     */
    private static final Set<String> LEFT_OUT = Set.of(
            "panic", "open", "destroy", "openBackups", "restore", "checkpoint", "takeBackup", "backgroundRate", "poolRate",
            "streamOfArray", "streamOfStream", "exportStream");

    private static final String MAKERS = "open.*|new.*|snapshot.*|cursor|begin.*|changes|streamOf.*|aggregatorRows";
    private static final int CALLS = 6000;

    @TempDir
    Path dir;

    private Random random;
    private final List<Long> numbers = new ArrayList<>();

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void anythingEndsWithAnAnswerOrAnException(long seed) throws IllegalAccessException {
        System.out.println("NativesTest, seed " + seed);
        random = new Random(seed);
        List<Method> natives = new ArrayList<>();
        for (Method method : Native.class.getDeclaredMethods()) {
            if (Modifier.isNative(method.getModifiers()) && !LEFT_OUT.contains(method.getName())) {
                natives.add(method);
            }
        }
        natives.sort(Comparator.comparing(Method::getName));
        assertTrue(natives.size() > 40);
        int answers = 0;
        for (int call = 0; call < CALLS; call++) {
            if (call % 100 == 0) {
                begin();
            }
            answers += isAnswered(natives.get(random.nextInt(natives.size()))) ? 1 : 0;
        }
        assertTrue(answers > CALLS / 20, answers + " calls were answered");
        numbers.forEach(Native::close);
        try (Database db = Database.open(dir.resolve("db"))) {
            assertEquals(List.of(), db.verify());
        }
    }

    /** Numbers of all kinds, those of before being closed. */
    private void begin() {
        numbers.forEach(Native::close);
        long db = Native.open(bytes(dir.resolve("db").toString()), new byte[0], 0, null, null);
        byte[] ordered = Items.of(List.of(bytes("layout"), bytes("wb-tree:ordered")));
        long table = Native.openTable(db, bytes("ordered"), ordered);
        for (int index = 0; index < 100; index++) {
            Native.put(table, bytes("key " + index), new byte[100]);
        }
        byte[] block = Native.scanRange(table, 0, null, null, 0);
        numbers.addAll(List.of(db, table, Native.openTable(db, bytes("hashed"), new byte[0]), Native.snapshot(db)));
        numbers.addAll(List.of((long) Items.LONG.get(block, 0), Native.openPool(8 << 20, 1), 0L, -1L));
        byte[] key = Items.of(List.of(bytes("city")));
        byte[] aggs = Items.of(List.of(bytes("n"), bytes("count")));
        long groups = Native.newAggregator(new byte[0], key, aggs, 0);
        long stored = Native.openAggregator(db, bytes("groups"), new byte[0], key, aggs, 0);
        Native.aggregatorUpdate(groups, Native.streamOfBytes(Rows.ipc(Rows.some(random, 50))), -1);
        Native.aggregatorUpdate(stored, Native.streamOfBytes(Rows.ipc(Rows.some(random, 50))), -1);
        numbers.addAll(List.of(groups, stored, Native.aggregatorRows(stored, random.nextInt(2))));
        numbers.addAll(List.of(Native.cursor(table, 0), Native.beginTransaction(db), Native.changes(db, 0)));
    }

    private boolean isAnswered(Method method) throws IllegalAccessException {
        Object[] arguments = Arrays.stream(method.getParameterTypes()).map(this::anything).toArray();
        try {
            Object answer = method.invoke(null, arguments);
            if (answer instanceof Long number && method.getName().matches(MAKERS)) {
                numbers.add(number);
            }
            return true;
        } catch (InvocationTargetException failed) {
            assertTrue(failed.getCause() instanceof ForebayException, () -> method + ": " + failed.getCause());
            return false;
        }
    }

    private Object anything(Class<?> type) {
        if (type == long.class) {
            boolean isOld = random.nextInt(10) > 0;
            // The newest are open.
            int back = random.nextInt(Math.min(numbers.size(), random.nextBoolean() ? 16 : numbers.size()));
            return isOld ? numbers.get(numbers.size() - 1 - back) : (Object) random.nextLong();
        }
        if (type == int.class) {
            return random.nextInt(8) == 0 ? random.nextInt() : random.nextInt(4) - 1;
        }
        byte[] array = new byte[random.nextInt(30)];
        random.nextBytes(array);
        return switch (random.nextInt(6)) {
            case 0 -> null;
            case 1 -> array;
            case 2 -> bytes("ordered");
            case 3 -> Items.of(List.of(array, bytes("key 7")));
            case 4 -> bytes("key " + random.nextInt(100));
            default -> new byte[0];
        };
    }
}
