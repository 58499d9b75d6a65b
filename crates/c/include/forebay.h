/*
 * Forebay for C: an embedded, write-optimised key-value engine.
 *
 * docs/guide/c.md lists the calls by what they are for, and tells more of each.
 *
 * Errors.  A call that can fail takes a forebay_error ** last. It returns false, NULL or 0 if it fails, and then puts
 *   an error there, which the caller frees with forebay_error_free. If it succeeds it puts NULL there, whatever was
 *   there before. Pass NULL if you do not want to know why.
 *
 * Ownership.  A handle that a call returns is freed by the _free call of its type, a database or follower by its _close.
 *   Plain memory that a call returns, char * or char **, is freed by forebay_free. What a call lends (const, and in
 *   entries and changes) is not freed: it stays as it is until the next call with the handle that lent it. Calls copy
 *   what they are passed. All frees take NULL.
 *
 * Threads.  A database, a pool, a table, an aggregator, a snapshot and a change server may be used by any number of
 *   threads at a time; batches, transactions, scans, cursors, changes, backups, followers and options by one at a time. Nothing may be used while, or after, it is
 *   freed. Tables, snapshots, scans and cursors can be read after their database is closed, and must be freed then, too.
 *
 * Pointers.  A pointer that must not be NULL and is gets an error; a call that takes no error does nothing and returns
 *   0 or NULL. Keys and values are bytes, and may hold any. A pointer to no bytes may be NULL. Names and paths end with
 *   a zero byte; names are UTF-8.
 */
#ifndef FOREBAY_H
#define FOREBAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct forebay_error forebay_error;
typedef struct forebay_options forebay_options;
typedef struct forebay_table_options forebay_table_options;
typedef struct forebay_output forebay_output;
typedef struct forebay_pool forebay_pool;
typedef struct forebay_db forebay_db;
typedef struct forebay_table forebay_table;
typedef struct forebay_aggregator forebay_aggregator;
typedef struct forebay_batch forebay_batch;
typedef struct forebay_snapshot forebay_snapshot;
typedef struct forebay_scan forebay_scan;
typedef struct forebay_cursor forebay_cursor;
typedef struct forebay_changes forebay_changes;
typedef struct forebay_change_server forebay_change_server;
typedef struct forebay_follower forebay_follower;
typedef struct forebay_backups forebay_backups;

/* Bytes. */
typedef struct forebay_slice {
    const char *data;
    size_t bytes;
} forebay_slice;

typedef struct forebay_entry {
    forebay_slice key;
    forebay_slice value;
} forebay_entry;

/* What a write survives once it is acknowledged. */
typedef enum forebay_durability {
    FOREBAY_MEMORY = 0, /* nothing, until the background sync */
    FOREBAY_OS = 1,     /* a crash of the process */
    FOREBAY_DISK = 2    /* a power loss */
} forebay_durability;

typedef enum forebay_direction { FOREBAY_FORWARD = 0, FOREBAY_BACKWARD = 1 } forebay_direction;

/* ---- Errors ---- */

/* What to do about an error. Later versions may have more. */
typedef enum forebay_code {
    FOREBAY_OK = 0,
    FOREBAY_ERROR_IO = 1,             /* the system refused: retry once the cause is gone */
    FOREBAY_ERROR_TOO_MANY_FILES = 2, /* raise ulimit -n, or lower open_files_max */
    FOREBAY_ERROR_CORRUPTION = 3,     /* stored bytes are damaged: restore, or rescue */
    FOREBAY_ERROR_TOO_LONG = 4,       /* operands merge to more than a value may have */
    FOREBAY_ERROR_INVALID = 5,        /* the call or an option is wrong */
    FOREBAY_ERROR_LOCKED = 6,         /* the database is open elsewhere, or here */
    FOREBAY_ERROR_NOT_FOUND = 7,      /* no such database, table or savepoint */
    FOREBAY_ERROR_NEWER_FORMAT = 8,   /* a newer Forebay made it */
    FOREBAY_ERROR_NO_SPACE = 9,       /* the disk is full, or what a table may take of it */
    FOREBAY_ERROR_CHANGES_GONE = 10,  /* copy the database anew, and follow it from there */
    FOREBAY_ERROR_PANICKED = 11,      /* a merge rule panicked */
    FOREBAY_ERROR_BUG = 12,           /* Forebay contradicts itself: please report it */
    FOREBAY_ERROR_POISONED = 13,      /* an earlier failure stopped all writes: reopen */
    FOREBAY_ERROR_OTHER = 14,
    FOREBAY_ERROR_CONFLICT = 15 /* others changed what a transaction has read: begin it anew */
} forebay_code;

/* A forebay_code; FOREBAY_OK of NULL. */
int forebay_error_code(const forebay_error *error);
/* The text, which names file, offset, key or option; it stays as long as the error. Empty of NULL. */
const char *forebay_error_message(const forebay_error *error);
void forebay_error_free(forebay_error *error);

/* ---- Options: by the names and words of the engine's options ("memory", "1GiB") ---- */

forebay_options *forebay_options_new(void);
bool forebay_options_set(forebay_options *options, const char *name, const char *value, forebay_error **error);
/* Encrypts the database by a key of 32 bytes that nobody can guess, known by a name that stands in its files; one that was
 * made so opens with that key only. Change no key while the database is open. */
bool forebay_options_set_key(forebay_options *options, const char *name, const void *key, size_t key_bytes,
                             forebay_error **error);
void forebay_options_free(forebay_options *options);

forebay_table_options *forebay_table_options_new(void);
bool forebay_table_options_set(forebay_table_options *options, const char *name, const char *value,
                               forebay_error **error);
void forebay_table_options_free(forebay_table_options *options);

/*
 * A merge rule: appends to out what a newer operand comes to with what is older, an operand or the value. It must be
 * associative, must ask nothing of a database, and is called by any thread. The context must outlive the database.
 */
typedef void (*forebay_merge)(void *context, const void *key, size_t key_bytes, const void *newer, size_t newer_bytes,
                              const void *older, size_t older_bytes, forebay_output *out);
/* The name is kept with the table, which opens with no other rule again: give its version with it, "append/1".
 * With the option merge_rule besides it is an error. */
bool forebay_table_options_merge_rule(forebay_table_options *options, const char *name, forebay_merge merge,
                                      void *context, forebay_error **error);
void forebay_output_append(forebay_output *out, const void *data, size_t bytes);

/* ---- Pools: one memory and a few threads for many databases ---- */

forebay_pool *forebay_pool_new(uint64_t memory_bytes, size_t threads, forebay_error **error);
/* Databases that are opened with these options are in the pool: set no memory, background_threads or background_rate
 * besides. */
bool forebay_options_set_pool(forebay_options *options, const forebay_pool *pool, forebay_error **error);
/* How many bytes a second flushes and merges of all of them go through: at least 65536, or 0 for no limit. */
bool forebay_pool_set_background_rate(const forebay_pool *pool, uint64_t bytes_a_second, forebay_error **error);
/* Who has what, as JSON, for forebay_free. */
char *forebay_pool_stats(const forebay_pool *pool, forebay_error **error);
/* The pool itself lasts as long as databases in it do. */
void forebay_pool_free(forebay_pool *pool);

/* ---- Databases ---- */

/* Opens the database in a directory, or makes it. options may be NULL. */
forebay_db *forebay_db_open(const char *path, const forebay_options *options, forebay_error **error);
/* Closes it and frees the handle, also if it returns false. */
bool forebay_db_close(forebay_db *db, forebay_error **error);
/* Removes a database that is not open. */
bool forebay_destroy(const char *path, forebay_error **error);
/* Copies what is intact of a damaged database to a new directory. Returns a report as JSON, for forebay_free. */
char *forebay_rescue(const char *source, const char *target, const forebay_options *options, forebay_error **error);

/* The names of all tables, and NULL behind them: one forebay_free for all. */
char **forebay_db_tables(forebay_db *db, forebay_error **error);
bool forebay_db_drop_table(forebay_db *db, const char *name, forebay_error **error);

/* Gives a table in use these options; those that are not set stay. */
bool forebay_db_alter(forebay_db *db, const char *name, const forebay_table_options *options, forebay_error **error);
/* Changes the option background_rate in use: bytes a second, at least 65536, or 0 for no limit. */
bool forebay_db_set_background_rate(forebay_db *db, uint64_t bytes_a_second, forebay_error **error);
/* The time that counts for entries that expire, in milliseconds since 1970. */
uint64_t forebay_db_unix_milliseconds(forebay_db *db);

/* Writes a batch: all of it or nothing. Empties it if that succeeded. sequence may be NULL: the last record's number. */
bool forebay_db_write(forebay_db *db, forebay_batch *batch, forebay_durability durability, uint64_t *sequence,
                      forebay_error **error);
/* Puts keys[i] with values[i], all of them or none. */
bool forebay_db_put_many(forebay_db *db, forebay_table *table, const forebay_slice *keys, const forebay_slice *values,
                         size_t count, forebay_durability durability, forebay_error **error);
/* Makes everything that was accepted so far, or up to a number, survive a power loss. */
bool forebay_db_sync(forebay_db *db, forebay_error **error);
bool forebay_db_wait_durable(forebay_db *db, uint64_t sequence, forebay_error **error);
uint64_t forebay_db_last_sequence(forebay_db *db);
uint64_t forebay_db_durable_sequence(forebay_db *db);
/* Writes buffered records to files, so that the next opening reads no log. */
bool forebay_db_flush(forebay_db *db, forebay_error **error);
/* Returns once background work has nothing left to do. */
bool forebay_db_wait_until_idle(forebay_db *db, forebay_error **error);

/* A copy in a new directory of the same file system. Returns its last number and its files, with digests by which the
 * next checkpoint's are known again, as JSON, for forebay_free. */
char *forebay_db_checkpoint(forebay_db *db, const char *path, forebay_error **error);
/* Keeps all tables as they are, under a name. sequence may be NULL. */
bool forebay_db_savepoint(forebay_db *db, const char *name, uint64_t *sequence, forebay_error **error);
/* The savepoints as JSON, oldest first, for forebay_free. */
char *forebay_db_savepoints(forebay_db *db, forebay_error **error);
forebay_snapshot *forebay_db_open_savepoint(forebay_db *db, const char *name, forebay_error **error);
bool forebay_db_rollback(forebay_db *db, const char *name, forebay_error **error);
bool forebay_db_drop_savepoint(forebay_db *db, const char *name, forebay_error **error);

/* Reads and checks every byte. Returns a report as JSON, for forebay_free. problems, their number, may be NULL. */
char *forebay_db_verify(forebay_db *db, size_t *problems, forebay_error **error);
/* What a database that was opened with "salvage" has passed over so far, as JSON, for forebay_free. */
char *forebay_db_damage(forebay_db *db, forebay_error **error);
/* Counters and gauges, and the shape of the tables, as JSON, for forebay_free. */
char *forebay_db_stats(forebay_db *db, forebay_error **error);
char *forebay_db_describe(forebay_db *db, forebay_error **error);

/* ---- Tables ---- */

/* Opens a table, or makes it. options may be NULL: hash order. */
forebay_table *forebay_table_open(forebay_db *db, const char *name, const forebay_table_options *options,
                                  forebay_error **error);
void forebay_table_free(forebay_table *table);
/* The same table, of which lookups, scans and cursors through this handle read so: "fill_cache=false,read_ahead=1M,
 * keys_only=true", or some of these. */
forebay_table *forebay_table_with(forebay_table *table, const char *reading, forebay_error **error);
/* Its layout as options write it, for forebay_free. */
char *forebay_table_layout(forebay_table *table, forebay_error **error);
bool forebay_table_set_layout(forebay_table *table, const char *layout, forebay_error **error);
/* Merges all of it, or what lies from one key on up to another; NULL with 0 bytes is no bound. A range in key order only. */
bool forebay_table_compact(forebay_table *table, forebay_error **error);
/* Merges all, and writes anew what is merged already: "all", or what is encrypted by "older-keys". */
bool forebay_table_rewrite(forebay_table *table, const char *what, forebay_error **error);
bool forebay_table_compact_range(forebay_table *table, const void *from, size_t from_bytes, const void *to,
                                 size_t to_bytes, forebay_error **error);
/* How many keys there are, exactly: it walks the table. snapshot may be NULL. */
bool forebay_table_count(forebay_table *table, const forebay_snapshot *snapshot, uint64_t *keys,
                         forebay_error **error);
/* The longest key and the longest value that it takes. */
size_t forebay_table_key_bytes_max(const forebay_table *table);
size_t forebay_table_value_bytes_max(const forebay_table *table);

/* Single writes, at the durability of the database's options. */
bool forebay_table_put(forebay_table *table, const void *key, size_t key_bytes, const void *value, size_t value_bytes,
                       forebay_error **error);
/* For a table with time_to_live. UINT64_MAX is forever. */
bool forebay_table_put_with_ttl(forebay_table *table, const void *key, size_t key_bytes, const void *value,
                                size_t value_bytes, uint64_t milliseconds, forebay_error **error);
/* The same until a time in milliseconds since 1970; UINT64_MAX is never, here and in the calls that follow. */
bool forebay_table_put_until(forebay_table *table, const void *key, size_t key_bytes, const void *value,
                             size_t value_bytes, uint64_t unix_milliseconds, forebay_error **error);
/* Changes when an entry expires, or has it stay. FOREBAY_ERROR_NOT_FOUND where there is none. */
bool forebay_table_expire(forebay_table *table, const void *key, size_t key_bytes, uint64_t unix_milliseconds,
                          forebay_error **error);
bool forebay_table_persist(forebay_table *table, const void *key, size_t key_bytes, forebay_error **error);
/* For a table with a merge rule. */
bool forebay_table_merge(forebay_table *table, const void *key, size_t key_bytes, const void *operand,
                         size_t operand_bytes, forebay_error **error);
bool forebay_table_delete(forebay_table *table, const void *key, size_t key_bytes, forebay_error **error);
/* Keys from one on up to another, which is not deleted; NULL with 0 bytes is no bound. In key order only. */
bool forebay_table_delete_range(forebay_table *table, const void *from, size_t from_bytes, const void *to,
                                size_t to_bytes, forebay_error **error);
/* Brings in keys that ascend, past the log, as files: all of them or none. In layouts of runs only. */
bool forebay_table_ingest(forebay_table *table, const forebay_slice *keys, const forebay_slice *values, size_t count,
                          forebay_error **error);

/*
 * The value of a key, for forebay_free, as of now or in a snapshot, which may be NULL. A zero byte stands behind it.
 * NULL for a key that is not there, without an error. value_bytes may be NULL.
 */
char *forebay_table_get(forebay_table *table, const forebay_snapshot *snapshot, const void *key, size_t key_bytes,
                        size_t *value_bytes, forebay_error **error);
/* The same, and when it expires: UINT64_MAX for never. unix_milliseconds may be NULL. */
char *forebay_table_get_with_expiry(forebay_table *table, const forebay_snapshot *snapshot, const void *key,
                                    size_t key_bytes, size_t *value_bytes, uint64_t *unix_milliseconds,
                                    forebay_error **error);
/* The values of many keys as of one moment; data is NULL for a key that is not there. For forebay_values_free. */
bool forebay_table_multi_get(forebay_table *table, const forebay_snapshot *snapshot, const forebay_slice *keys,
                             forebay_slice *values, size_t count, forebay_error **error);
void forebay_values_free(forebay_slice *values, size_t count);
/* About how much lies in a range, without reading it. In key order only. records and bytes may be NULL. */
bool forebay_table_approximate(forebay_table *table, const void *from, size_t from_bytes, const void *to,
                               size_t to_bytes, uint64_t *records, uint64_t *bytes, forebay_error **error);

/* ---- Batches: what is wrong with one of these calls is told by forebay_db_write ---- */

forebay_batch *forebay_batch_new(void);
void forebay_batch_put(forebay_batch *batch, forebay_table *table, const void *key, size_t key_bytes,
                       const void *value, size_t value_bytes);
void forebay_batch_put_with_ttl(forebay_batch *batch, forebay_table *table, const void *key, size_t key_bytes,
                                const void *value, size_t value_bytes, uint64_t milliseconds);
void forebay_batch_put_until(forebay_batch *batch, forebay_table *table, const void *key, size_t key_bytes,
                             const void *value, size_t value_bytes, uint64_t unix_milliseconds);
void forebay_batch_merge(forebay_batch *batch, forebay_table *table, const void *key, size_t key_bytes,
                         const void *operand, size_t operand_bytes);
void forebay_batch_delete(forebay_batch *batch, forebay_table *table, const void *key, size_t key_bytes);
void forebay_batch_delete_range(forebay_batch *batch, forebay_table *table, const void *from, size_t from_bytes,
                                const void *to, size_t to_bytes);
void forebay_batch_clear(forebay_batch *batch);
/* How many records it has, and how long it is. */
size_t forebay_batch_records(const forebay_batch *batch);
size_t forebay_batch_bytes(const forebay_batch *batch);
/* How long one may be. */
size_t forebay_batch_bytes_max(void);
void forebay_batch_free(forebay_batch *batch);

/* ---- Transactions: what they have read is still so when they are committed ---- */

/* A batch that reads, too, as of the moment when it began, beside what it has written: all calls of batches go with it,
 * but for forebay_db_write and forebay_aggregator_commit. To give it up, free it. */
forebay_batch *forebay_transaction_begin(forebay_db *db, forebay_error **error);
/* For forebay_free, and for forebay_values_free. */
char *forebay_transaction_get(forebay_batch *transaction, forebay_table *table, const void *key, size_t key_bytes,
                              size_t *value_bytes, forebay_error **error);
bool forebay_transaction_multi_get(forebay_batch *transaction, forebay_table *table, const forebay_slice *keys,
                                   forebay_slice *values, size_t count, forebay_error **error);
/* Keys from one on up to another; NULL with 0 bytes is no bound. */
forebay_scan *forebay_transaction_scan(forebay_batch *transaction, forebay_table *table, const void *from,
                                       size_t from_bytes, const void *to, size_t to_bytes,
                                       forebay_direction direction, forebay_error **error);
/* Writes all of it. FOREBAY_ERROR_CONFLICT where others have changed what it has read: nothing is written then. Once
 * it was tried it is over, and still to be freed; what was wrong with a call of its batch is told instead. sequence may be
 * NULL. */
bool forebay_transaction_commit(forebay_batch *transaction, forebay_durability durability, uint64_t *sequence,
                                forebay_error **error);
/* Gives a key a new value if it has the expected one; NULL with 0 bytes is no value, here and there. is_swapped tells
 * whether it had. At the durability of the database's options. */
bool forebay_table_compare_and_swap(forebay_table *table, const void *key, size_t key_bytes, const void *expected,
                                    size_t expected_bytes, const void *new_value, size_t new_value_bytes,
                                    bool *is_swapped, forebay_error **error);

/* ---- Aggregators: counts, sums, quantiles and more, added up for each key ---- */

/*
 * functions are those of the command, "count,sum:amount"; columns are what rows consist of, "amount,city", and may be
 * empty. layout may be NULL: hash order. See docs/guide/aggregates.md.
 */
forebay_aggregator *forebay_aggregator_open(forebay_db *db, const char *name, const char *functions,
                                            const char *columns, const char *layout, forebay_error **error);
/* Adds a row to a key's group: a text for each column, data NULL for no value. */
void forebay_batch_add(forebay_batch *batch, forebay_aggregator *aggregator, const void *key, size_t key_bytes,
                       const forebay_slice *row, size_t columns);
/* Writes a batch together with bytes of yours, such as how far an input was read. Empties it in any case. */
bool forebay_aggregator_commit(forebay_aggregator *aggregator, forebay_batch *batch, forebay_durability durability,
                               const void *metadata, size_t metadata_bytes, uint64_t *sequence, forebay_error **error);
/* Those bytes of the last commit that was kept, for forebay_free; NULL if there was none. */
char *forebay_aggregator_metadata(forebay_aggregator *aggregator, size_t *metadata_bytes, forebay_error **error);
/* The answers of a key as a JSON array, [3,17.5], for forebay_free; NULL for a key that is not there. */
char *forebay_aggregator_get(forebay_aggregator *aggregator, const forebay_snapshot *snapshot, const void *key,
                             size_t key_bytes, forebay_error **error);
/* Keys with their answers as JSON arrays, for forebay_scan_next. */
forebay_scan *forebay_aggregator_scan(forebay_aggregator *aggregator, const forebay_snapshot *snapshot,
                                      const void *from, size_t from_bytes, const void *to, size_t to_bytes,
                                      forebay_direction direction, forebay_error **error);
void forebay_aggregator_free(forebay_aggregator *aggregator);

/* ---- Snapshots ---- */

/* The database as it is now. It holds files until it is freed. */
forebay_snapshot *forebay_snapshot_new(forebay_db *db, forebay_error **error);
/* A table of that moment, also one that was dropped since. */
forebay_table *forebay_snapshot_table(const forebay_snapshot *snapshot, const char *name, forebay_error **error);
void forebay_snapshot_free(forebay_snapshot *snapshot);

/* ---- Scans: many entries a call ---- */

/* Keys from one on up to another, which is not in it; NULL with 0 bytes is no bound. snapshot may be NULL. */
forebay_scan *forebay_scan_new(forebay_table *table, const forebay_snapshot *snapshot, const void *from,
                               size_t from_bytes, const void *to, size_t to_bytes, forebay_direction direction,
                               forebay_error **error);
forebay_scan *forebay_scan_new_prefix(forebay_table *table, const forebay_snapshot *snapshot, const void *prefix,
                                      size_t prefix_bytes, forebay_direction direction, forebay_error **error);
/* Lends the next entries, at most count, and returns how many: 0 at the end, or on an error. */
size_t forebay_scan_next(forebay_scan *scan, forebay_entry *entries, size_t count, forebay_error **error);
void forebay_scan_free(forebay_scan *scan);

/* ---- Cursors: to any key, and either way from there; of tables in key order ---- */

forebay_cursor *forebay_cursor_new(forebay_table *table, const forebay_snapshot *snapshot, forebay_error **error);
/* Each lends the entry where it went, if entry is not NULL, and returns whether there is one. */
bool forebay_cursor_first(forebay_cursor *cursor, forebay_entry *entry, forebay_error **error);
bool forebay_cursor_last(forebay_cursor *cursor, forebay_entry *entry, forebay_error **error);
/* The first entry at or above a key; the last one at or below it. */
bool forebay_cursor_seek(forebay_cursor *cursor, const void *key, size_t key_bytes, forebay_entry *entry,
                         forebay_error **error);
bool forebay_cursor_seek_for_prev(forebay_cursor *cursor, const void *key, size_t key_bytes, forebay_entry *entry,
                                  forebay_error **error);
bool forebay_cursor_next(forebay_cursor *cursor, forebay_entry *entry, forebay_error **error);
bool forebay_cursor_prev(forebay_cursor *cursor, forebay_entry *entry, forebay_error **error);
void forebay_cursor_free(forebay_cursor *cursor);

/* ---- The feed of changes ---- */

typedef enum forebay_operation {
    FOREBAY_PUT = 0,
    FOREBAY_DELETE = 1,
    FOREBAY_MERGE = 2,       /* the value is an operand */
    FOREBAY_DELETE_RANGE = 3 /* from key on, up to value, which is not in it; without data it has no end */
} forebay_operation;

typedef struct forebay_change {
    uint64_t sequence;
    forebay_slice table;
    int operation; /* a forebay_operation; later versions may have more */
    forebay_slice key;
    forebay_slice value;
    uint64_t expiry_milliseconds; /* since 1970; 0 for never */
} forebay_change;

/* All changes after the one of this number, up to now. */
forebay_changes *forebay_changes_new(forebay_db *db, uint64_t since, forebay_error **error);
/* Lends the changes of the next commit. False at the end, or on an error. Go on from last_sequence later. */
bool forebay_changes_next(forebay_changes *changes, const forebay_change **list, size_t *count,
                          uint64_t *last_sequence, forebay_error **error);
void forebay_changes_free(forebay_changes *changes);

/* How much of the log is kept for the feed, in bytes, from now on; the database keeps this number. */
bool forebay_db_keep_changes(forebay_db *db, uint64_t bytes, forebay_error **error);

/* ---- Followers: databases that take another one's changes, each once ---- */

/* Serves followers, each on a thread of yours. It does not keep the database open. */
forebay_change_server *forebay_change_server_new(forebay_db *db, forebay_error **error);
/* Serves one over a socket, which stays yours, until the database is closed; then true. The call has a descriptor of its
 * own: to end it, shutdown the socket; to close yours ends nothing. A socket needs timeouts for reads
 * and for writes, and the process is to ignore SIGPIPE. There is no password, and nothing is encrypted. */
bool forebay_change_server_serve(const forebay_change_server *server, int descriptor, forebay_error **error);
void forebay_change_server_free(forebay_change_server *server);

/* Opens a follower, or makes one in a directory that has nothing yet. options may be NULL. */
forebay_follower *forebay_follower_open(const char *path, const forebay_options *options, forebay_error **error);
/* Applies what a server sends over a socket, until it ends or is gone. Returns what came of it as JSON, for
 * forebay_free. */
char *forebay_follower_follow(forebay_follower *follower, int descriptor, forebay_error **error);
/* A table to be read, also by other threads while it follows. FOREBAY_ERROR_NOT_FOUND where there is none. */
forebay_table *forebay_follower_table(const forebay_follower *follower, const char *name, forebay_error **error);
/* The number of its last record. */
uint64_t forebay_follower_position(const forebay_follower *follower);
/* Makes it a database that takes writes of its own, and frees the follower, also if it fails. */
forebay_db *forebay_follower_promote(forebay_follower *follower, forebay_error **error);
/* Closes it and frees the handle, also if it returns false. */
bool forebay_follower_close(forebay_follower *follower, forebay_error **error);

/* ---- Readers: a database that another process writes, opened with the option read_only ---- */

/* Goes on to what has been written since. sequence may be NULL: the number of the last record that is seen. */
bool forebay_db_refresh(forebay_db *db, uint64_t *sequence, forebay_error **error);
/* The writer's stats as JSON, for forebay_free; NULL, without an error, where none has answered within this time. */
char *forebay_db_writer_stats(forebay_db *db, uint64_t milliseconds, forebay_error **error);

/* ---- Backups: a directory in which each has what the one before it has not ---- */

forebay_backups *forebay_backups_open(const char *path, forebay_error **error);
/* Takes one. Returns its number and how much was copied, as JSON, for forebay_free. */
char *forebay_backups_take(forebay_backups *backups, forebay_db *db, forebay_error **error);
/* All of them as JSON, oldest first, for forebay_free. */
char *forebay_backups_list(forebay_backups *backups, forebay_error **error);
bool forebay_backups_newest(forebay_backups *backups, uint64_t *number, forebay_error **error);
/* Makes a database of one, in a new directory. */
bool forebay_backups_restore(forebay_backups *backups, uint64_t number, const char *path, forebay_error **error);
/* What is damaged in one, and NULL behind that: one forebay_free for all. */
char **forebay_backups_verify(forebay_backups *backups, uint64_t number, forebay_error **error);
/* Removes all but the newest ones, at least one. */
bool forebay_backups_keep(forebay_backups *backups, size_t newest, forebay_error **error);
void forebay_backups_free(forebay_backups *backups);

/* ---- The library ---- */

/* Its version, such as "0.1.0"; not to be freed. */
const char *forebay_version(void);
/* Frees plain memory that a call returned. */
void forebay_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
