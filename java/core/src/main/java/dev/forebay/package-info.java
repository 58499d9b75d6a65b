/**
 * Forebay: a write-optimised storage engine, embedded.
 *
 * <pre>{@code
 * try (Database db = Database.open(Path.of("state.db"), new Options().set("memory", "256M"))) {
 *     Table users = db.table("users", TableOptions.layout("wb-tree:ordered"));
 *     WriteBatch batch = new WriteBatch();
 *     batch.put(users, "ada".getBytes(UTF_8), "1815".getBytes(UTF_8));
 *     db.write(batch);
 *     byte[] year = users.get("ada".getBytes(UTF_8));
 * }
 * }</pre>
 *
 * <p>Misuse ends with an exception, never with the process: what is closed, what outlives its database, what several
 * threads use. Every failure is a {@link dev.forebay.ForebayException}.
 */
package dev.forebay;
