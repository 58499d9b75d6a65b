/* What has no model: tables by name, merge rules, time to live, ingestion, the feed, copies, rescue, what is told. */
#define _POSIX_C_SOURCE 200809L
#include <forebay.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static forebay_error *error;

static forebay_table *table_with(forebay_db *db, const char *name, const char *option, const char *value) {
    forebay_table_options *options = forebay_table_options_new();
    MUST(forebay_table_options_set(options, option, value, &error));
    forebay_table *table = forebay_table_open(db, name, options, &error);
    MUST(table != NULL);
    forebay_table_options_free(options);
    return table;
}

static void put(forebay_table *table, const char *key, const char *value) {
    MUST(forebay_table_put(table, key, strlen(key), value, strlen(value), &error));
}

static void has(forebay_table *table, const forebay_snapshot *snapshot, const char *key, const char *expected) {
    size_t bytes;
    char *value = forebay_table_get(table, snapshot, key, strlen(key), &bytes, &error);
    CHECK(error == NULL && (value == NULL) == (expected == NULL));
    if (value != NULL) CHECK(strcmp(value, expected) == 0 && bytes == strlen(expected));
    forebay_free(value);
}

static void tables(forebay_db *db) {
    forebay_table *ordered = table_with(db, "ordered", "layout", "wb-tree:ordered");
    forebay_table *hashed = forebay_table_open(db, "hashed", NULL, &error);
    char *layout = forebay_table_layout(ordered, &error);
    CHECK(strcmp(layout, "wb-tree:ordered") == 0);
    forebay_free(layout);
    char **names = forebay_db_tables(db, &error);
    CHECK(strcmp(names[0], "hashed") == 0 && strcmp(names[1], "ordered") == 0 && names[2] == NULL);
    forebay_free(names);

    put(hashed, "a", "1");
    MUST(forebay_table_set_layout(hashed, "leveling:t=4", &error));
    has(hashed, NULL, "a", "1");
    /* It was in hash order when it was opened. */
    CHECK(forebay_cursor_new(hashed, NULL, &error) == NULL && forebay_error_code(error) == FOREBAY_ERROR_INVALID);
    forebay_error_free(error);
    forebay_table_free(hashed);
    hashed = forebay_table_open(db, "hashed", NULL, &error);
    MUST(hashed != NULL);
    forebay_cursor *cursor = forebay_cursor_new(hashed, NULL, &error);
    forebay_entry entry;
    MUST(forebay_cursor_last(cursor, &entry, &error));
    CHECK(entry.key.bytes == 1 && *entry.key.data == 'a');
    MUST(forebay_cursor_first(cursor, NULL, &error));
    CHECK(!forebay_cursor_next(cursor, &entry, &error) && error == NULL);
    forebay_cursor_free(cursor);

    /* A snapshot has what was dropped. */
    forebay_snapshot *snapshot = forebay_snapshot_new(db, &error);
    MUST(forebay_db_drop_table(db, "hashed", &error));
    forebay_table *dropped = forebay_snapshot_table(snapshot, "hashed", &error);
    MUST(dropped != NULL);
    has(dropped, snapshot, "a", "1");
    forebay_table_free(dropped);
    forebay_table_free(hashed);
    forebay_snapshot_free(snapshot);

    uint64_t records = 0, bytes = 0;
    put(ordered, "b", "2");
    MUST(forebay_table_approximate(ordered, "a", 1, "c", 1, &records, &bytes, &error));
    CHECK(records == 1 && bytes > 0);
    forebay_table_free(ordered);
}

/* Joins what was there and what is new, in their order. */
static void join(void *context, const void *key, size_t key_bytes, const void *newer, size_t newer_bytes,
                 const void *older, size_t older_bytes, forebay_output *out) {
    CHECK(key_bytes == 1 && *(const char *)key == 'k');
    forebay_output_append(out, older, older_bytes);
    forebay_output_append(out, context, strlen(context));
    forebay_output_append(out, newer, newer_bytes);
}

static void merge_rules(forebay_db *db) {
    static char between[] = ", ";
    forebay_table_options *options = forebay_table_options_new();
    MUST(forebay_table_options_merge_rule(options, "join/1", join, between, &error));
    forebay_table *table = forebay_table_open(db, "joined", options, &error);
    MUST(table != NULL);
    forebay_table_options_free(options);
    put(table, "k", "a");
    MUST(forebay_table_merge(table, "k", 1, "b", 1, &error));
    forebay_batch *batch = forebay_batch_new();
    forebay_batch_merge(batch, table, "k", 1, "c", 1);
    MUST(forebay_db_write(db, batch, FOREBAY_DISK, NULL, &error));
    forebay_batch_free(batch);
    has(table, NULL, "k", "a, b, c");
    MUST(forebay_db_flush(db, &error));
    MUST(forebay_table_compact(table, &error));
    MUST(forebay_table_rewrite(table, "all", &error));
    has(table, NULL, "k", "a, b, c");
    forebay_table_free(table);
}

/* A rule that the engine has: its table is opened without it, too. */
static void stored_rules(forebay_db *db) {
    forebay_table *table = table_with(db, "appended", "merge_rule", "append:, ");
    put(table, "k", "a");
    MUST(forebay_table_merge(table, "k", 1, "b", 1, &error));
    forebay_table_free(table);
    MUST(forebay_db_flush(db, &error));
    table = forebay_table_open(db, "appended", NULL, &error);
    MUST(table != NULL);
    MUST(forebay_table_merge(table, "k", 1, "c", 1, &error));
    has(table, NULL, "k", "a, b, c");
    forebay_table_free(table);
    forebay_table_options *options = forebay_table_options_new();
    CHECK(!forebay_table_options_set(options, "merge_rule", "most", &error));
    CHECK(strstr(forebay_error_message(error), "append") != NULL);
    forebay_error_free(error);
    error = NULL;
    MUST(forebay_table_options_set(options, "merge-rule", "add", &error));
    CHECK(!forebay_table_options_merge_rule(options, "join/1", join, NULL, &error));
    CHECK(strstr(forebay_error_message(error), "one merge rule") != NULL);
    forebay_error_free(error);
    error = NULL;
    forebay_table_options_free(options);
}

static void lives(forebay_db *db) {
    forebay_table *table = table_with(db, "brief", "time_to_live", "never");
    MUST(forebay_table_put_with_ttl(table, "a", 1, "1", 1, UINT64_MAX, &error));
    MUST(forebay_table_put_with_ttl(table, "b", 1, "1", 1, 1, &error));
    forebay_batch *batch = forebay_batch_new();
    forebay_batch_put_with_ttl(batch, table, "c", 1, "1", 1, 86400000);
    MUST(forebay_db_write(db, batch, FOREBAY_OS, NULL, &error));
    forebay_batch_free(batch);
    size_t bytes;
    char *value;
    /* The time is the machine's: a millisecond is over at some look. */
    while ((value = forebay_table_get(table, NULL, "b", 1, &bytes, &error)) != NULL) forebay_free(value);
    CHECK(error == NULL);
    has(table, NULL, "a", "1");
    has(table, NULL, "c", "1");
    forebay_table_free(table);
}

/* Ends in an hour, never, and soon. */
static void expiries(forebay_db *db) {
    forebay_table *table = table_with(db, "until", "time_to_live", "never");
    uint64_t now = forebay_db_unix_milliseconds(db), expiry = 0;
    CHECK(now > 1700000000000);
    MUST(forebay_table_put_until(table, "a", 1, "1", 1, now + 3600000, &error));
    size_t bytes;
    char *value = forebay_table_get_with_expiry(table, NULL, "a", 1, &bytes, &expiry, &error);
    CHECK(value != NULL && bytes == 1 && *value == '1' && expiry == now + 3600000);
    forebay_free(value);
    MUST(forebay_table_persist(table, "a", 1, &error));
    forebay_free(forebay_table_get_with_expiry(table, NULL, "a", 1, NULL, &expiry, &error));
    CHECK(expiry == UINT64_MAX);
    MUST(forebay_table_expire(table, "a", 1, 1, &error));
    has(table, NULL, "a", NULL);
    CHECK(!forebay_table_persist(table, "a", 1, &error) && forebay_error_code(error) == FOREBAY_ERROR_NOT_FOUND);
    forebay_error_free(error);
    forebay_batch *batch = forebay_batch_new();
    forebay_batch_put_until(batch, table, "b", 1, "2", 1, UINT64_MAX);
    MUST(forebay_db_write(db, batch, FOREBAY_OS, NULL, &error));
    forebay_batch_free(batch);
    has(table, NULL, "b", "2");
    CHECK(forebay_table_value_bytes_max(table) == (256u << 20) - 8);
    forebay_table_free(table);
}

static void transactions(forebay_db *db) {
    forebay_table *table = table_with(db, "accounts", "layout", "wb-tree:ordered");
    put(table, "ada", "1");
    forebay_batch *transaction = forebay_transaction_begin(db, &error);
    MUST(transaction != NULL);
    size_t bytes;
    char *value = forebay_transaction_get(transaction, table, "ada", 3, &bytes, &error);
    CHECK(value != NULL && bytes == 1 && *value == '1');
    forebay_free(value);
    CHECK(forebay_transaction_get(transaction, table, "bob", 3, &bytes, &error) == NULL && error == NULL && bytes == 0);
    forebay_batch_put(transaction, table, "bob", 3, "2", 1);
    forebay_slice keys[] = {{"ada", 3}, {"bob", 3}, {"eve", 3}}, values[3];
    MUST(forebay_transaction_multi_get(transaction, table, keys, values, 3, &error));
    CHECK(*values[0].data == '1' && *values[1].data == '2' && values[2].data == NULL);
    forebay_values_free(values, 3);
    forebay_scan *scan = forebay_transaction_scan(transaction, table, "b", 1, NULL, 0, FOREBAY_BACKWARD, &error);
    forebay_entry entries[2];
    CHECK(scan != NULL && forebay_scan_next(scan, entries, 2, &error) == 1 && *entries[0].key.data == 'b');
    forebay_scan_free(scan);
    /* It is written by its own call only, and once. */
    CHECK(!forebay_db_write(db, transaction, FOREBAY_OS, NULL, &error));
    CHECK(forebay_error_code(error) == FOREBAY_ERROR_INVALID);
    forebay_error_free(error);
    uint64_t sequence = 0;
    MUST(forebay_transaction_commit(transaction, FOREBAY_OS, &sequence, &error));
    CHECK(sequence == forebay_db_last_sequence(db));
    forebay_batch_put(transaction, table, "eve", 3, "3", 1);
    CHECK(!forebay_transaction_commit(transaction, FOREBAY_OS, NULL, &error));
    CHECK(strstr(forebay_error_message(error), "over") != NULL);
    forebay_error_free(error);
    forebay_batch_free(transaction);
    has(table, NULL, "bob", "2");
    has(table, NULL, "eve", NULL);

    /* What was wrong with a call of its batch stays told. */
    forebay_aggregator *counts = forebay_aggregator_open(db, "counts", "count", "", NULL, &error);
    MUST(counts != NULL);
    transaction = forebay_transaction_begin(db, &error);
    forebay_batch_put(transaction, table, "eve", 3, "3", 1);
    forebay_batch_put(transaction, NULL, "eve", 3, "4", 1);
    CHECK(!forebay_aggregator_commit(counts, transaction, FOREBAY_OS, NULL, 0, NULL, &error));
    CHECK(strstr(forebay_error_message(error), "transaction") != NULL);
    forebay_error_free(error);
    CHECK(!forebay_transaction_commit(transaction, FOREBAY_OS, NULL, &error));
    CHECK(strstr(forebay_error_message(error), "table") != NULL);
    forebay_error_free(error);
    forebay_batch_free(transaction);
    forebay_aggregator_free(counts);
    has(table, NULL, "eve", NULL);

    /* What it has read was changed meanwhile. */
    transaction = forebay_transaction_begin(db, &error);
    forebay_free(forebay_transaction_get(transaction, table, "ada", 3, NULL, &error));
    put(table, "ada", "5");
    forebay_batch_put(transaction, table, "ada", 3, "6", 1);
    CHECK(!forebay_transaction_commit(transaction, FOREBAY_OS, NULL, &error));
    CHECK(forebay_error_code(error) == FOREBAY_ERROR_CONFLICT);
    forebay_error_free(error);
    forebay_batch_free(transaction);
    has(table, NULL, "ada", "5");

    forebay_batch *alone = forebay_batch_new();
    CHECK(!forebay_transaction_commit(alone, FOREBAY_OS, NULL, &error));
    forebay_error_free(error);
    forebay_batch_free(alone);

    bool is_swapped;
    MUST(forebay_table_compare_and_swap(table, "ada", 3, "4", 1, "7", 1, &is_swapped, &error));
    CHECK(!is_swapped);
    MUST(forebay_table_compare_and_swap(table, "ada", 3, "5", 1, NULL, 0, &is_swapped, &error));
    CHECK(is_swapped);
    MUST(forebay_table_compare_and_swap(table, "ada", 3, NULL, 0, "8", 1, NULL, &error));
    has(table, NULL, "ada", "8");

    forebay_table *keys_only = forebay_table_with(table, "fill_cache=false,read_ahead=64K,keys_only=true", &error);
    MUST(keys_only != NULL);
    scan = forebay_scan_new(keys_only, NULL, NULL, 0, NULL, 0, FOREBAY_FORWARD, &error);
    CHECK(forebay_scan_next(scan, entries, 2, &error) == 2 && entries[0].value.bytes == 0 && entries[0].key.bytes == 3);
    forebay_scan_free(scan);
    forebay_table_free(keys_only);
    CHECK(forebay_table_with(table, "fill_cache", &error) == NULL);
    forebay_error_free(error);
    CHECK(forebay_table_with(table, "cache=true", &error) == NULL && strstr(forebay_error_message(error), "fill_cache"));
    forebay_error_free(error);
    forebay_table_free(table);
}

static int ends[2];

static void *serve(void *server) {
    forebay_error *told;
    CHECK(forebay_change_server_serve(server, ends[0], &told) && told == NULL);
    close(ends[0]);
    return NULL;
}

/* Closes a database once a reader of its follower sees all that it has. */
struct leader {
    forebay_db *db;
    const char *follower;
};

static void *close_followed(void *given) {
    struct leader *leader = given;
    forebay_error *told;
    forebay_options *options = forebay_options_new();
    CHECK(forebay_options_set(options, "read_only", "true", &told));
    forebay_db *reader = forebay_db_open(leader->follower, options, &told);
    CHECK(reader != NULL);
    forebay_options_free(options);
    uint64_t seen = 0;
    while (seen < forebay_db_last_sequence(leader->db)) {
        CHECK(forebay_db_refresh(reader, &seen, &told));
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK(forebay_db_close(reader, &told) && forebay_db_close(leader->db, &told));
    return NULL;
}

static void beside(const char *path) {
    static char source[4096], copy[4096], kept[4096], restored[4096];
    snprintf(source, sizeof source, "%s.source", path);
    snprintf(copy, sizeof copy, "%s.follower", path);
    snprintf(kept, sizeof kept, "%s.backups", path);
    snprintf(restored, sizeof restored, "%s.restored", path);
    forebay_db *db = forebay_db_open(source, NULL, &error);
    MUST(db != NULL);
    MUST(forebay_db_keep_changes(db, 1 << 20, &error));
    forebay_table *table = forebay_table_open(db, "t", NULL, &error);
    put(table, "a", "1");

    forebay_options *options = forebay_options_new();
    MUST(forebay_options_set(options, "read_only", "true", &error));
    forebay_db *reader = forebay_db_open(source, options, &error);
    MUST(reader != NULL);
    forebay_options_free(options);
    forebay_table *seen = forebay_table_open(reader, "t", NULL, &error);
    has(seen, NULL, "a", "1");
    put(table, "a", "2");
    has(seen, NULL, "a", "1");
    uint64_t sequence = 0;
    MUST(forebay_db_refresh(reader, &sequence, &error));
    CHECK(sequence == forebay_db_last_sequence(db));
    has(seen, NULL, "a", "2");
    char *stats = forebay_db_writer_stats(reader, 60000, &error);
    CHECK(stats != NULL && strstr(stats, "\"last_sequence\""));
    forebay_free(stats);
    forebay_table_free(seen);
    MUST(forebay_db_close(reader, &error));

    forebay_backups *backups = forebay_backups_open(kept, &error);
    MUST(backups != NULL);
    CHECK(!forebay_backups_newest(backups, &sequence, &error));
    forebay_error_free(error);
    char *taken = forebay_backups_take(backups, db, &error);
    CHECK(taken != NULL && strstr(taken, "\"copied_bytes\""));
    forebay_free(taken);
    put(table, "a", "3");
    forebay_free(forebay_backups_take(backups, db, &error));
    char *list = forebay_backups_list(backups, &error);
    CHECK(list != NULL && strstr(strstr(list, "\"number\"") + 1, "\"number\""));
    forebay_free(list);
    MUST(forebay_backups_keep(backups, 1, &error));
    MUST(forebay_backups_newest(backups, &sequence, &error));
    char **problems = forebay_backups_verify(backups, sequence, &error);
    CHECK(problems != NULL && *problems == NULL);
    forebay_free(problems);
    MUST(forebay_backups_restore(backups, sequence, restored, &error));
    forebay_backups_free(backups);
    forebay_db *old = forebay_db_open(restored, NULL, &error);
    MUST(old != NULL);
    forebay_table *of_old = forebay_table_open(old, "t", NULL, &error);
    has(of_old, NULL, "a", "3");
    forebay_table_free(of_old);
    MUST(forebay_db_close(old, &error));

    /* The server ends with its database, and the follower goes on by itself. */
    forebay_follower *follower = forebay_follower_open(copy, NULL, &error);
    MUST(follower != NULL);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    forebay_change_server *server = forebay_change_server_new(db, &error);
    MUST(server != NULL);
    CHECK(!forebay_change_server_serve(server, -1, &error));
    forebay_error_free(error);
    forebay_table_free(table);
    sequence = forebay_db_last_sequence(db);
    struct leader leader = {db, copy};
    pthread_t serving, closing;
    CHECK(pthread_create(&serving, NULL, serve, server) == 0);
    CHECK(pthread_create(&closing, NULL, close_followed, &leader) == 0);
    char *applied = forebay_follower_follow(follower, ends[1], &error);
    CHECK(applied != NULL && strstr(applied, "\"position\""));
    forebay_free(applied);
    close(ends[1]);
    CHECK(pthread_join(serving, NULL) == 0 && pthread_join(closing, NULL) == 0);
    forebay_change_server_free(server);
    CHECK(forebay_follower_position(follower) == sequence);
    forebay_table *followed = forebay_follower_table(follower, "t", &error);
    has(followed, NULL, "a", "3");
    forebay_table_free(followed);
    MUST(forebay_follower_close(follower, &error));
    follower = forebay_follower_open(copy, NULL, &error);
    MUST(follower != NULL);
    CHECK(forebay_follower_table(follower, "none", &error) == NULL);
    CHECK(forebay_error_code(error) == FOREBAY_ERROR_NOT_FOUND);
    forebay_error_free(error);
    forebay_db *promoted = forebay_follower_promote(follower, &error);
    MUST(promoted != NULL);
    table = forebay_table_open(promoted, "t", NULL, &error);
    put(table, "b", "1");
    has(table, NULL, "b", "1");
    forebay_table_free(table);
    MUST(forebay_db_close(promoted, &error));
    MUST(forebay_destroy(copy, &error));
    MUST(forebay_destroy(source, &error));
    MUST(forebay_destroy(restored, &error));
}

/* What a table in use is asked for. */
static void in_use(forebay_db *db) {
    forebay_table *table = table_with(db, "in_use", "layout", "leveling:t=4");
    put(table, "a", "1");
    put(table, "b", "2");
    put(table, "a", "3");
    MUST(forebay_table_compact_range(table, "a", 1, "b", 1, &error));
    MUST(forebay_table_compact_range(table, NULL, 0, NULL, 0, &error));
    has(table, NULL, "a", "3");
    forebay_snapshot *snapshot = forebay_snapshot_new(db, &error);
    put(table, "c", "4");
    uint64_t keys = 0;
    MUST(forebay_table_count(table, NULL, &keys, &error));
    CHECK(keys == 3);
    MUST(forebay_table_count(table, snapshot, &keys, &error));
    CHECK(keys == 2);
    forebay_snapshot_free(snapshot);
    CHECK(forebay_table_key_bytes_max(table) == 65536 && forebay_table_value_bytes_max(table) == 256u << 20);
    CHECK(forebay_batch_bytes_max() == 1u << 30);
    forebay_table_options *options = forebay_table_options_new();
    MUST(forebay_table_options_set(options, "codec", "lz4", &error));
    MUST(forebay_db_alter(db, "in_use", options, &error));
    CHECK(!forebay_db_alter(db, "no_such", options, &error));
    forebay_error_free(error);
    forebay_table_options_free(options);
    MUST(forebay_db_set_background_rate(db, 50 << 20, &error));
    MUST(forebay_db_set_background_rate(db, 0, &error));
    forebay_table_free(table);
}

static void pools(const char *path) {
    forebay_pool *pool = forebay_pool_new(8 << 20, 1, &error);
    MUST(pool != NULL);
    CHECK(forebay_pool_new(1, 1, &error) == NULL);
    forebay_error_free(error);
    forebay_options *options = forebay_options_new();
    MUST(forebay_options_set_pool(options, pool, &error));
    MUST(forebay_pool_set_background_rate(pool, 20 << 20, &error));
    static char paths[2][4096];
    forebay_db *databases[2];
    for (int number = 0; number < 2; number++) {
        snprintf(paths[number], sizeof paths[number], "%s.pooled-%d", path, number);
        databases[number] = forebay_db_open(paths[number], options, &error);
        MUST(databases[number] != NULL);
        forebay_table *table = forebay_table_open(databases[number], "t", NULL, &error);
        put(table, "k", "v");
        has(table, NULL, "k", "v");
        forebay_table_free(table);
    }
    char *stats = forebay_pool_stats(pool, &error);
    CHECK(strstr(stats, ".pooled-1") && strstr(stats, "\"background_rate_bytes\":20971520"));
    forebay_free(stats);
    forebay_options_free(options);
    forebay_pool_free(pool);
    for (int number = 0; number < 2; number++) {
        MUST(forebay_db_close(databases[number], &error));
        MUST(forebay_destroy(paths[number], &error));
    }
}

static void ingestion(forebay_db *db) {
    forebay_table *table = table_with(db, "runs", "layout", "leveling");
    forebay_slice keys[2] = {{"a", 1}, {"b", 1}}, values[2] = {{"1", 1}, {"2", 1}};
    MUST(forebay_table_ingest(table, keys, values, 2, &error));
    has(table, NULL, "b", "2");
    keys[1] = keys[0];
    CHECK(!forebay_table_ingest(table, keys, values, 2, &error));
    CHECK(forebay_error_code(error) == FOREBAY_ERROR_INVALID);
    forebay_error_free(error);
    forebay_table_free(table);
}

static void answers(char *found, const char *expected) {
    CHECK(error == NULL && found != NULL && strcmp(found, expected) == 0);
    forebay_free(found);
}

static void aggregators(forebay_db *db) {
    forebay_aggregator *sales = forebay_aggregator_open(db, "sales", "count,sum:amount,min_text:city", "amount, city",
                                                        "wb-tree:ordered", &error);
    MUST(sales != NULL);
    forebay_batch *batch = forebay_batch_new();
    forebay_slice rows[3][2] = {{{"5", 1}, {"Oslo", 4}}, {{"2.5", 3}, {NULL, 0}}, {{"10", 2}, {"Rome", 4}}};
    for (int i = 0; i < 3; i++) forebay_batch_add(batch, sales, i < 2 ? "a" : "b", 1, rows[i], 2);
    MUST(forebay_aggregator_commit(sales, batch, FOREBAY_DISK, "row 3", 5, NULL, &error));
    CHECK(forebay_batch_records(batch) == 0);
    answers(forebay_aggregator_get(sales, NULL, "a", 1, &error), "[2,7.5,\"Oslo\"]");
    CHECK(forebay_aggregator_get(sales, NULL, "c", 1, &error) == NULL && error == NULL);
    forebay_snapshot *before = forebay_snapshot_new(db, &error);
    forebay_batch_add(batch, sales, "a", 1, rows[2], 2);
    MUST(forebay_db_write(db, batch, FOREBAY_OS, NULL, &error));
    answers(forebay_aggregator_get(sales, NULL, "a", 1, &error), "[3,17.5,\"Oslo\"]");
    answers(forebay_aggregator_get(sales, before, "a", 1, &error), "[2,7.5,\"Oslo\"]");
    size_t bytes;
    char *metadata = forebay_aggregator_metadata(sales, &bytes, &error);
    CHECK(bytes == 5);
    answers(metadata, "row 3");
    forebay_scan *scan = forebay_aggregator_scan(sales, before, NULL, 0, NULL, 0, FOREBAY_BACKWARD, &error);
    MUST(scan != NULL);
    forebay_entry groups[3];
    CHECK(forebay_scan_next(scan, groups, 3, &error) == 2 && *groups[0].key.data == 'b');
    CHECK(groups[1].value.bytes == 14 && memcmp(groups[1].value.data, "[2,7.5,\"Oslo\"]", 14) == 0);
    forebay_scan_free(scan);
    forebay_snapshot_free(before);
    /* A row that is too short is told by the write, and so is a value that is no number. */
    forebay_batch_add(batch, sales, "a", 1, rows[0], 1);
    CHECK(!forebay_db_write(db, batch, FOREBAY_OS, NULL, &error));
    CHECK(strstr(forebay_error_message(error), "a row of 1 values") != NULL);
    forebay_error_free(error);
    forebay_batch_clear(batch);
    forebay_slice wrong[2] = {{"five", 4}, {"Oslo", 4}};
    forebay_batch_add(batch, sales, "a", 1, rows[0], 2);
    forebay_batch_add(batch, sales, "a", 1, wrong, 2);
    CHECK(!forebay_aggregator_commit(sales, batch, FOREBAY_OS, NULL, 0, NULL, &error));
    forebay_error_free(error);
    CHECK(forebay_batch_records(batch) == 0);
    answers(forebay_aggregator_get(sales, NULL, "a", 1, &error), "[3,17.5,\"Oslo\"]");
    CHECK(!forebay_aggregator_open(db, "x", "median", "", NULL, &error));
    forebay_error_free(error);
    forebay_batch_free(batch);
    forebay_aggregator_free(sales);
}

static void feed(forebay_db *db) {
    forebay_table *table = table_with(db, "told", "layout", "wb-tree:ordered");
    uint64_t since = forebay_db_last_sequence(db), last;
    forebay_batch *batch = forebay_batch_new();
    forebay_batch_put(batch, table, "a", 1, "1", 1);
    forebay_batch_delete(batch, table, "b", 1);
    forebay_batch_delete_range(batch, table, "c", 1, "d", 1);
    MUST(forebay_db_write(db, batch, FOREBAY_OS, &last, &error));
    forebay_batch_free(batch);
    forebay_changes *changes = forebay_changes_new(db, since, &error);
    MUST(changes != NULL);
    const forebay_change *list;
    size_t count;
    uint64_t told;
    MUST(forebay_changes_next(changes, &list, &count, &told, &error));
    CHECK(count == 3 && told == last && list[2].sequence == last && list[0].expiry_milliseconds == 0);
    CHECK(list[0].operation == FOREBAY_PUT && *list[0].key.data == 'a' && *list[0].value.data == '1');
    CHECK(list[1].operation == FOREBAY_DELETE && *list[1].key.data == 'b' && list[1].value.data == NULL);
    CHECK(list[2].operation == FOREBAY_DELETE_RANGE && *list[2].key.data == 'c' && *list[2].value.data == 'd');
    CHECK(list[0].table.bytes == 4 && memcmp(list[0].table.data, "told", 4) == 0);
    CHECK(!forebay_changes_next(changes, &list, &count, &told, &error) && error == NULL);
    forebay_changes_free(changes);
    forebay_table_free(table);
}

static void what_is_told(forebay_db *db) {
    uint64_t last = forebay_db_last_sequence(db);
    MUST(forebay_db_sync(db, &error));
    MUST(forebay_db_wait_durable(db, last, &error));
    CHECK(forebay_db_durable_sequence(db) >= last);
    MUST(forebay_db_wait_until_idle(db, &error));
    char *stats = forebay_db_stats(db, &error), *shape = forebay_db_describe(db, &error);
    CHECK(strstr(stats, "\"last_sequence\":") && strstr(shape, "\"layout\":\"wb-tree:ordered\""));
    forebay_free(stats);
    forebay_free(shape);
    char *damage = forebay_db_damage(db, &error);
    CHECK(strcmp(damage, "[]") == 0);
    forebay_free(damage);
    uint64_t sequence = 0;
    MUST(forebay_db_savepoint(db, "monday", &sequence, &error));
    CHECK(sequence == last);
    char *savepoints = forebay_db_savepoints(db, &error);
    CHECK(strstr(savepoints, "\"name\":\"monday\""));
    forebay_free(savepoints);
    forebay_snapshot *monday = forebay_db_open_savepoint(db, "monday", &error);
    forebay_table *told = forebay_snapshot_table(monday, "told", &error);
    MUST(told != NULL);
    has(told, monday, "a", "1");
    forebay_table_free(told);
    forebay_snapshot_free(monday);
}

/* What is encrypted opens by its key, and by no other. */
static void keys(const char *path) {
    unsigned char key[32], other[32];
    for (size_t i = 0; i < sizeof key; i++) key[i] = (unsigned char)i, other[i] = 7;
    for (int turn = 0; turn < 4; turn++) {
        forebay_options *options = forebay_options_new();
        if (turn != 2) MUST(forebay_options_set_key(options, "of the test", turn == 3 ? other : key, 32, &error));
        forebay_db *db = forebay_db_open(path, options, &error);
        forebay_options_free(options);
        if (turn > 1) {
            CHECK(db == NULL && forebay_error_code(error) == FOREBAY_ERROR_INVALID);
            CHECK(strstr(forebay_error_message(error), "is encrypted"));
            forebay_error_free(error);
            error = NULL;
            continue;
        }
        MUST(db != NULL);
        forebay_table *table = forebay_table_open(db, "t", NULL, &error);
        MUST(table != NULL);
        if (turn == 0) MUST(forebay_table_put(table, "key", 3, "value", 5, &error));
        size_t bytes;
        char *value = forebay_table_get(table, NULL, "key", 3, &bytes, &error);
        CHECK(value != NULL && bytes == 5 && memcmp(value, "value", 5) == 0);
        forebay_free(value);
        forebay_table_free(table);
        MUST(forebay_db_close(db, &error));
    }
    MUST(forebay_destroy(path, &error));
}

int main(int count, char **arguments) {
    CHECK(count == 3 && strchr(forebay_version(), '.') != NULL);
    const char *path = arguments[1];
    static char copy[4096], rescued[4096];
    snprintf(copy, sizeof copy, "%s.copy", path);
    snprintf(rescued, sizeof rescued, "%s.rescued", path);
    forebay_db *db = forebay_db_open(path, NULL, &error);
    MUST(db != NULL);
    tables(db);
    merge_rules(db);
    stored_rules(db);
    lives(db);
    expiries(db);
    in_use(db);
    transactions(db);
    beside(path);
    pools(path);
    ingestion(db);
    aggregators(db);
    feed(db);
    what_is_told(db);
    char *files = forebay_db_checkpoint(db, copy, &error);
    CHECK(files != NULL && strstr(files, "\"digest\"") && strstr(files, "CURRENT"));
    forebay_free(files);
    MUST(forebay_db_close(db, &error));

    /* The rule of one table is not there: it is left out and told. */
    char *report = forebay_rescue(copy, rescued, NULL, &error);
    MUST(report != NULL);
    CHECK(strstr(report, "\"name\":\"ordered\"") && strstr(report, "join/1"));
    forebay_free(report);
    MUST(forebay_destroy(copy, &error));
    MUST(forebay_destroy(rescued, &error));
    MUST(forebay_destroy(path, &error));
    keys(path);
    return 0;
}
