package dev.forebay.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.security.DigestInputStream;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.Path;

/**
 * What a snapshot is made of, and which snapshot it is based on: the one before it in the same history, or none. Files of
 * the database are named by their content and shared by snapshots; small ones that each snapshot has anew stand in here.
 *
 * <p>In bytes: {@code FBSS}, a format number, the length of a JSON object and the object, the small files one after the
 * other, and the SHA-256 of all that.
 */
record Manifest(
        long keys,
        long internalKeys,
        int idMax,
        List<Family.Shape> families,
        String base,
        List<Shared> shared,
        List<Inline> inline) {
    private static final int MAGIC = 0x46425353;
    private static final int FORMAT = 1;
    private static final int LENGTH_MAX = 1 << 30;
    private static final ObjectMapper JSON = new ObjectMapper();

    /** It, or a file that it names, is not what was written. */
    static final class Damaged extends IOException {
        private static final long serialVersionUID = 1;

        Damaged(String text, Throwable cause) {
            super(text, cause);
        }
    }

    /** A file of the database, and the name that its content has. */
    record Shared(String name, long bytes, Long digest, String content) {}

    /** A file of the database that is in here. */
    record Inline(String name, byte[] content) {}

    void write(OutputStream out) throws IOException {
        DigestOutputStream digested = new DigestOutputStream(out, Content.sha256());
        DataOutputStream data = new DataOutputStream(digested);
        byte[] head = JSON.writeValueAsBytes(json());
        data.writeInt(MAGIC);
        data.writeInt(FORMAT);
        data.writeInt(head.length);
        data.write(head);
        for (Inline file : inline) {
            data.write(file.content());
        }
        data.flush();
        out.write(digested.getMessageDigest().digest());
    }

    private ObjectNode json() {
        ObjectNode json = JSON.createObjectNode();
        json.put("keys", keys).put("internalKeys", internalKeys).put("idMax", idMax).put("base", base);
        for (Family.Shape shape : families) {
            json.withArray("families").addObject().put("name", shape.name()).put("id", shape.id())
                    .put("internal", shape.internal()).put("order", shape.order().name())
                    .put("values", shape.values().name());
        }
        for (Shared file : shared) {
            json.withArray("shared").addObject().put("name", file.name()).put("bytes", file.bytes())
                    .put("digest", file.digest()).put("content", file.content());
        }
        for (Inline file : inline) {
            json.withArray("inline").addObject().put("name", file.name()).put("bytes", file.content().length);
        }
        return json;
    }

    /** Reads one, or throws with the file's name. */
    static Manifest read(InputStream in, Path path) throws IOException {
        try {
            return parsed(in, path);
        } catch (EOFException | JsonProcessingException error) {
            throw new Damaged("the snapshot " + path + " cannot be read: its bytes are not those that were written", error);
        }
    }

    private static Manifest parsed(InputStream in, Path path) throws IOException {
        DigestInputStream digested = new DigestInputStream(in, Content.sha256());
        DataInputStream data = new DataInputStream(digested);
        if (data.readInt() != MAGIC) {
            throw damaged(path, "it is no snapshot of Forebay's");
        }
        int format = data.readInt();
        if (format != FORMAT) {
            throw damaged(path, "its format is " + format + ", and this build reads " + FORMAT
                    + ": use the build that wrote it, or a later one");
        }
        JsonNode json = JSON.readTree(bytes(data, data.readInt(), path));
        List<Inline> inline = new ArrayList<>();
        for (JsonNode file : json.path("inline")) {
            inline.add(new Inline(Content.plainName(file.path("name").asText(), path), bytes(data, file.path("bytes").asInt(), path)));
        }
        byte[] expected = digested.getMessageDigest().digest();
        byte[] stored = in.readNBytes(expected.length);
        if (!MessageDigest.isEqual(expected, stored)) {
            throw damaged(path, "its bytes are not those that were written");
        }
        return new Manifest(json.path("keys").asLong(), json.path("internalKeys").asLong(), json.path("idMax").asInt(),
                families(json), json.path("base").asText(), shared(json, path), inline);
    }

    private static List<Family.Shape> families(JsonNode json) {
        List<Family.Shape> families = new ArrayList<>();
        for (JsonNode family : json.path("families")) {
            families.add(new Family.Shape(family.path("name").asText(), (short) family.path("id").asInt(),
                    family.path("internal").asBoolean(), Family.Order.valueOf(family.path("order").asText()),
                    Family.Values.valueOf(family.path("values").asText())));
        }
        return families;
    }

    private static List<Shared> shared(JsonNode json, Path path) throws IOException {
        List<Shared> shared = new ArrayList<>();
        for (JsonNode file : json.path("shared")) {
            JsonNode digest = file.path("digest");
            shared.add(new Shared(Content.plainName(file.path("name").asText(), path), file.path("bytes").asLong(),
                    digest.isNull() ? null : digest.asLong(), Content.plainName(file.path("content").asText(), path)));
        }
        return shared;
    }

    private static byte[] bytes(DataInputStream data, int length, Path path) throws IOException {
        if (length < 0 || length > LENGTH_MAX) {
            throw damaged(path, "a length of " + length + " stands in it");
        }
        byte[] bytes = data.readNBytes(length);
        if (bytes.length != length) {
            throw damaged(path, "it ends too early");
        }
        return bytes;
    }

    private static IOException damaged(Path path, String reason) {
        return new Damaged("the snapshot " + path + " cannot be read: " + reason, null);
    }

    /** The contents that it needs. */
    List<String> contents() {
        return shared.stream().map(Shared::content).toList();
    }

    @Override
    public boolean equals(Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }

    @Override
    public String toString() {
        return "Manifest" + Arrays.asList(keys, internalKeys, idMax, families, shared);
    }
}
