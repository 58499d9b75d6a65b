package dev.forebay.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipInputStream;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.Status;
import org.rocksdb.StringAppendOperator;

/**
 * A snapshot by Spark's provider with RocksDB, which this provider reads where it has taken a checkpoint over: keys and
 * values have the same bytes in both. It is a zip file of RocksDB's small files and of one that names the large ones,
 * which snapshots share.
 *
 * <p>Reading one takes room on this executor for its files until all is brought in.
 */
final class RocksDbSnapshot {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** What the description of a snapshot is called, and how it begins. */
    private static final String DESCRIPTION = "metadata";
    private static final String DESCRIPTION_FORMAT = "v[12]";
    /** Where RocksDB looks for logs that are whole. */
    private static final String ARCHIVE = "archive";
    /** One pass needs little, which is beside the pool's memory. */
    private static final long CACHE_BYTES = 8 << 20;
    private static final int OPEN_FILES_MAX = 64;

    private final Plan plan;
    private final org.apache.hadoop.fs.Path source;
    private final Path directory;
    private long keys;
    private long internalKeys;

    /** A directory for its files, which is not there yet and is gone in the end. */
    RocksDbSnapshot(Plan plan, Naming.Version version, Path directory) {
        this.plan = plan;
        this.source = plan.naming().path(new Naming.Snapshot(version, Naming.Maker.ROCKSDB));
        this.directory = directory;
    }

    /** Fills a database that has nothing yet. */
    void bringInto(StateDatabase database) throws IOException {
        try {
            Files.createDirectories(directory);
            unpack();
            JsonNode description = description();
            fetch(description.path("sstFiles"), directory);
            fetch(description.path("logFiles"), directory.resolve(ARCHIVE));
            makeFamilies(database, description);
            copy(database);
            database.restoreCounts(keys, internalKeys);
        } finally {
            Directories.remove(directory);
        }
    }

    private void unpack() throws IOException {
        try (ZipInputStream zip = new ZipInputStream(new BufferedInputStream(plan.remote().open(source), 1 << 16))) {
            for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
                Files.copy(zip, place(directory, entry.getName()));
            }
        } catch (ZipException | EOFException error) {
            throw damaged("it is no whole zip file", error);
        }
    }

    /** Where a file goes, which must not lead out of the directory. */
    private Path place(Path folder, String name) throws IOException {
        Path path = folder.resolve(Content.plainName(name, source));
        Files.createDirectories(path.getParent());
        return path;
    }

    private JsonNode description() throws IOException {
        Path path = directory.resolve(DESCRIPTION);
        if (!Files.exists(path)) {
            throw damaged("it has no file '" + DESCRIPTION + "'", null);
        }
        try (BufferedReader reader = Files.newBufferedReader(path)) {
            String format = reader.readLine();
            if (format == null || !format.matches(DESCRIPTION_FORMAT)) {
                throw damaged("its format is " + format + ", and v1 and v2 are read", null);
            }
            return JSON.readTree(reader);
        } catch (JsonProcessingException error) {
            throw damaged("its description is no JSON", error);
        } finally {
            Files.delete(path);
        }
    }

    private void fetch(JsonNode files, Path folder) throws IOException {
        for (JsonNode file : files) {
            boolean isTable = file.has("dfsSstFileName");
            String name = Content.plainName(file.path(isTable ? "dfsSstFileName" : "dfsLogFileName").asText(), source);
            Path path = place(folder, file.path("localFileName").asText());
            org.apache.hadoop.fs.Path shared = plan.naming().rocksDbFile(name);
            try (var in = plan.remote().open(shared)) {
                long bytes = Files.copy(in, path);
                if (bytes != file.path("sizeBytes").asLong()) {
                    throw damaged("its file " + shared + " has " + bytes + " bytes, and had " + file.path("sizeBytes"), null);
                }
            }
        }
    }

    /** Families keep their numbers, which stand in keys. */
    private void makeFamilies(StateDatabase database, JsonNode description) throws IOException {
        Plan.Shape first = plan.shape();
        // Without families it names the first one, or none.
        int count = description.path("columnFamilyMapping").size();
        if (first.hasFamilies() ? count == 0 : count > 1) {
            throw new IllegalStateException("the snapshot " + source + " has " + count
                    + " column families, and the query's operator wants them otherwise: run it as it was run before");
        }
        List<Family.Shape> shapes = new ArrayList<>();
        short firstId = (short) description.path("columnFamilyMapping").path(first.defaultName()).asInt();
        shapes.add(new Family.Shape(first.defaultName(), firstId, false, first.order(), first.values()));
        for (Map.Entry<String, JsonNode> family : description.path("columnFamilyMapping").properties()) {
            short id = (short) family.getValue().asInt();
            boolean isInternal = description.path("columnFamilyTypeMap").path(family.getKey()).asBoolean();
            if (id != firstId) {
                shapes.add(new Family.Shape(family.getKey(), id, isInternal, Family.Order.KEY, Family.Values.UNKNOWN));
            }
        }
        database.restoreEmpty(shapes, description.path("maxColumnFamilyId").asInt());
    }

    private void copy(StateDatabase database) throws IOException {
        RocksDB.loadLibrary();
        try (StringAppendOperator append = new StringAppendOperator((char) Family.DELIMITER);
                LRUCache cache = new LRUCache(CACHE_BYTES);
                Options options = new Options().setMergeOperator(append).setMaxOpenFiles(OPEN_FILES_MAX).setTableFormatConfig(
                        new BlockBasedTableConfig().setBlockCache(cache).setCacheIndexAndFilterBlocks(true));
                RocksDB from = RocksDB.openReadOnly(options, directory.toString());
                ReadOptions once = new ReadOptions().setFillCache(false).setVerifyChecksums(true);
                RocksIterator entries = from.newIterator(once)) {
            for (entries.seekToFirst(); entries.isValid(); entries.next()) {
                take(database, entries.key(), entries.value());
            }
            entries.status();
        } catch (RocksDBException error) {
            if (error.getStatus() != null && error.getStatus().getCode() == Status.Code.IOError) {
                throw new IOException("the snapshot " + source + " cannot be read here: " + error.getMessage(), error);
            }
            throw damaged("RocksDB says: " + error.getMessage(), error);
        }
        database.endBringing();
    }

    private void take(StateDatabase database, byte[] key, byte[] value) throws IOException {
        if (plan.shape().hasFamilies() && key.length < Family.ID_BYTES) {
            throw damaged("a key in it has no column family", null);
        }
        Family family = plan.shape().family(database, key);
        if (family == null) {
            throw damaged("a key in it is of column family " + Family.idOf(key) + ", which it does not name", null);
        }
        database.bring(family, plan.shape().key(key), value);
        if (family.shape.internal()) {
            internalKeys += 1;
        } else {
            keys += 1;
        }
    }

    private IOException damaged(String reason, Exception cause) {
        return new Manifest.Damaged("the snapshot " + source + " cannot be read: " + reason, cause);
    }
}
