/* What is wrong with a call is an error that says so, and never a crash. */
#include <forebay.h>

#include "check.h"

static forebay_error *error;

/* The last call has failed so, and its text has this in it. */
static void refused(int code, const char *text) {
    if (forebay_error_code(error) != code || strstr(forebay_error_message(error), text) == NULL) {
        fprintf(stderr, "expected code %d and `%s`, got %d and `%s`\n", code, text, forebay_error_code(error),
                forebay_error_message(error));
        abort();
    }
    forebay_error_free(error);
    error = NULL;
}

#define REFUSED(call, code, text) \
    do {                          \
        CHECK(!(call));           \
        refused(code, text);      \
    } while (0)
#define NULL_IS_REFUSED(call, name) REFUSED(call, FOREBAY_ERROR_INVALID, name " is a null pointer")

static void of_null(const char *path) {
    uint64_t number;
    size_t bytes;
    forebay_slice none = {NULL, 3}, slice = {"a", 1}, room;
    const forebay_change *list;
    forebay_entry entry;
    CHECK(forebay_error_code(NULL) == FOREBAY_OK && *forebay_error_message(NULL) == 0);
    NULL_IS_REFUSED(forebay_options_set(NULL, "memory", "1G", &error), "options");
    forebay_options *options = forebay_options_new();
    NULL_IS_REFUSED(forebay_options_set(options, NULL, "1G", &error), "name");
    NULL_IS_REFUSED(forebay_options_set(options, "memory", NULL, &error), "value");
    NULL_IS_REFUSED(forebay_table_options_set(NULL, "layout", "wb-tree", &error), "options");
    NULL_IS_REFUSED(forebay_table_options_merge_rule(NULL, "add", NULL, NULL, &error), "options");
    NULL_IS_REFUSED(forebay_db_open(NULL, options, &error), "path");
    NULL_IS_REFUSED(forebay_db_close(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_destroy(NULL, &error), "path");
    NULL_IS_REFUSED(forebay_rescue(NULL, path, NULL, &error), "source");
    NULL_IS_REFUSED(forebay_db_tables(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_drop_table(NULL, "t", &error), "db");
    NULL_IS_REFUSED(forebay_db_write(NULL, NULL, FOREBAY_OS, &number, &error), "db");
    NULL_IS_REFUSED(forebay_db_put_many(NULL, NULL, NULL, NULL, 0, FOREBAY_OS, &error), "db");
    NULL_IS_REFUSED(forebay_db_sync(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_wait_durable(NULL, 0, &error), "db");
    NULL_IS_REFUSED(forebay_db_flush(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_wait_until_idle(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_checkpoint(NULL, path, &error), "db");
    NULL_IS_REFUSED(forebay_db_savepoint(NULL, "s", NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_savepoints(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_open_savepoint(NULL, "s", &error), "db");
    NULL_IS_REFUSED(forebay_db_rollback(NULL, "s", &error), "db");
    NULL_IS_REFUSED(forebay_db_drop_savepoint(NULL, "s", &error), "db");
    NULL_IS_REFUSED(forebay_db_verify(NULL, &bytes, &error), "db");
    NULL_IS_REFUSED(forebay_db_damage(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_stats(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_describe(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_table_open(NULL, "t", NULL, &error), "db");
    NULL_IS_REFUSED(forebay_table_layout(NULL, &error), "table");
    NULL_IS_REFUSED(forebay_table_set_layout(NULL, "wb-tree", &error), "table");
    NULL_IS_REFUSED(forebay_table_compact(NULL, &error), "table");
    NULL_IS_REFUSED(forebay_table_rewrite(NULL, "all", &error), "table");
    NULL_IS_REFUSED(forebay_table_compact_range(NULL, "a", 1, "b", 1, &error), "table");
    NULL_IS_REFUSED(forebay_table_count(NULL, NULL, &number, &error), "table");
    NULL_IS_REFUSED(forebay_db_alter(NULL, "t", NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_set_background_rate(NULL, 0, &error), "db");
    NULL_IS_REFUSED(forebay_options_set_pool(NULL, NULL, &error), "options");
    NULL_IS_REFUSED(forebay_options_set_pool(options, NULL, &error), "pool");
    NULL_IS_REFUSED(forebay_pool_set_background_rate(NULL, 0, &error), "pool");
    NULL_IS_REFUSED(forebay_pool_stats(NULL, &error), "pool");
    NULL_IS_REFUSED(forebay_table_get_with_expiry(NULL, NULL, "a", 1, &bytes, &number, &error), "table");
    NULL_IS_REFUSED(forebay_table_put_until(NULL, "a", 1, "b", 1, 5, &error), "table");
    NULL_IS_REFUSED(forebay_table_expire(NULL, "a", 1, 5, &error), "table");
    NULL_IS_REFUSED(forebay_table_persist(NULL, "a", 1, &error), "table");
    NULL_IS_REFUSED(forebay_table_with(NULL, "keys_only=true", &error), "table");
    NULL_IS_REFUSED(forebay_table_compare_and_swap(NULL, "a", 1, NULL, 0, "b", 1, NULL, &error), "table");
    NULL_IS_REFUSED(forebay_transaction_begin(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_transaction_get(NULL, NULL, "a", 1, &bytes, &error), "transaction");
    NULL_IS_REFUSED(forebay_transaction_multi_get(NULL, NULL, NULL, NULL, 0, &error), "transaction");
    NULL_IS_REFUSED(forebay_transaction_scan(NULL, NULL, NULL, 0, NULL, 0, FOREBAY_FORWARD, &error), "transaction");
    NULL_IS_REFUSED(forebay_transaction_commit(NULL, FOREBAY_OS, NULL, &error), "transaction");
    NULL_IS_REFUSED(forebay_db_refresh(NULL, NULL, &error), "db");
    NULL_IS_REFUSED(forebay_db_writer_stats(NULL, 0, &error), "db");
    NULL_IS_REFUSED(forebay_db_keep_changes(NULL, 0, &error), "db");
    NULL_IS_REFUSED(forebay_change_server_new(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_change_server_serve(NULL, 0, &error), "server");
    NULL_IS_REFUSED(forebay_follower_open(NULL, NULL, &error), "path");
    NULL_IS_REFUSED(forebay_follower_follow(NULL, 0, &error), "follower");
    NULL_IS_REFUSED(forebay_follower_table(NULL, "t", &error), "follower");
    NULL_IS_REFUSED(forebay_follower_promote(NULL, &error), "follower");
    NULL_IS_REFUSED(forebay_follower_close(NULL, &error), "follower");
    NULL_IS_REFUSED(forebay_backups_open(NULL, &error), "path");
    NULL_IS_REFUSED(forebay_backups_take(NULL, NULL, &error), "backups");
    NULL_IS_REFUSED(forebay_backups_list(NULL, &error), "backups");
    NULL_IS_REFUSED(forebay_backups_newest(NULL, NULL, &error), "backups");
    NULL_IS_REFUSED(forebay_backups_restore(NULL, 1, path, &error), "backups");
    NULL_IS_REFUSED(forebay_backups_verify(NULL, 1, &error), "backups");
    NULL_IS_REFUSED(forebay_backups_keep(NULL, 1, &error), "backups");
    CHECK(forebay_follower_position(NULL) == 0);
    forebay_change_server_free(NULL);
    forebay_backups_free(NULL);
    CHECK(forebay_db_unix_milliseconds(NULL) == 0 && forebay_table_key_bytes_max(NULL) == 0);
    forebay_pool_free(NULL);
    NULL_IS_REFUSED(forebay_table_put(NULL, "a", 1, "b", 1, &error), "table");
    NULL_IS_REFUSED(forebay_table_put_with_ttl(NULL, "a", 1, "b", 1, 5, &error), "table");
    NULL_IS_REFUSED(forebay_table_merge(NULL, "a", 1, "b", 1, &error), "table");
    NULL_IS_REFUSED(forebay_table_delete(NULL, "a", 1, &error), "table");
    NULL_IS_REFUSED(forebay_table_delete_range(NULL, "a", 1, "b", 1, &error), "table");
    NULL_IS_REFUSED(forebay_table_ingest(NULL, &slice, &slice, 1, &error), "table");
    NULL_IS_REFUSED(forebay_table_get(NULL, NULL, "a", 1, &bytes, &error), "table");
    NULL_IS_REFUSED(forebay_table_multi_get(NULL, NULL, &slice, &room, 1, &error), "table");
    NULL_IS_REFUSED(forebay_table_approximate(NULL, "a", 1, "b", 1, &number, &number, &error), "table");
    NULL_IS_REFUSED(forebay_aggregator_open(NULL, "a", "count", "", NULL, &error), "db");
    NULL_IS_REFUSED(forebay_aggregator_commit(NULL, NULL, FOREBAY_OS, NULL, 0, NULL, &error), "aggregator");
    NULL_IS_REFUSED(forebay_aggregator_metadata(NULL, &bytes, &error), "aggregator");
    NULL_IS_REFUSED(forebay_aggregator_get(NULL, NULL, "a", 1, &error), "aggregator");
    NULL_IS_REFUSED(forebay_aggregator_scan(NULL, NULL, NULL, 0, NULL, 0, FOREBAY_FORWARD, &error), "aggregator");
    NULL_IS_REFUSED(forebay_snapshot_new(NULL, &error), "db");
    NULL_IS_REFUSED(forebay_snapshot_table(NULL, "t", &error), "snapshot");
    NULL_IS_REFUSED(forebay_scan_new(NULL, NULL, "a", 1, "b", 1, FOREBAY_FORWARD, &error), "table");
    NULL_IS_REFUSED(forebay_scan_new_prefix(NULL, NULL, "a", 1, FOREBAY_FORWARD, &error), "table");
    NULL_IS_REFUSED(forebay_scan_next(NULL, &entry, 1, &error), "scan");
    NULL_IS_REFUSED(forebay_cursor_new(NULL, NULL, &error), "table");
    NULL_IS_REFUSED(forebay_cursor_first(NULL, &entry, &error), "cursor");
    NULL_IS_REFUSED(forebay_cursor_last(NULL, &entry, &error), "cursor");
    NULL_IS_REFUSED(forebay_cursor_seek(NULL, "a", 1, &entry, &error), "cursor");
    NULL_IS_REFUSED(forebay_cursor_seek_for_prev(NULL, "a", 1, &entry, &error), "cursor");
    NULL_IS_REFUSED(forebay_cursor_next(NULL, &entry, &error), "cursor");
    NULL_IS_REFUSED(forebay_cursor_prev(NULL, &entry, &error), "cursor");
    NULL_IS_REFUSED(forebay_changes_new(NULL, 0, &error), "db");
    NULL_IS_REFUSED(forebay_changes_next(NULL, &list, &bytes, &number, &error), "changes");
    /* Without an error, nothing happens. */
    CHECK(!forebay_db_open(NULL, NULL, NULL) && forebay_db_last_sequence(NULL) == 0);
    CHECK(forebay_db_durable_sequence(NULL) == 0 && forebay_batch_records(NULL) == 0 && forebay_batch_bytes(NULL) == 0);
    forebay_batch_put(NULL, NULL, NULL, 0, NULL, 0);
    forebay_batch_put_with_ttl(NULL, NULL, NULL, 0, NULL, 0, 0);
    forebay_batch_merge(NULL, NULL, NULL, 0, NULL, 0);
    forebay_batch_delete(NULL, NULL, NULL, 0);
    forebay_batch_delete_range(NULL, NULL, NULL, 0, NULL, 0);
    forebay_batch_clear(NULL);
    forebay_output_append(NULL, "a", 1);
    forebay_values_free(NULL, 0);
    forebay_values_free(NULL, 3);
    forebay_error_free(NULL);
    forebay_options_free(NULL);
    forebay_table_options_free(NULL);
    forebay_table_free(NULL);
    forebay_batch_free(NULL);
    forebay_snapshot_free(NULL);
    forebay_scan_free(NULL);
    forebay_cursor_free(NULL);
    forebay_aggregator_free(NULL);
    forebay_batch_add(NULL, NULL, NULL, 0, NULL, 0);
    forebay_changes_free(NULL);
    forebay_free(NULL);
    /* The same with handles that are there. */
    forebay_db *db = forebay_db_open(path, NULL, &error);
    MUST(db != NULL);
    forebay_table *table = forebay_table_open(db, "t", NULL, &error);
    MUST(table != NULL);
    NULL_IS_REFUSED(forebay_table_open(db, NULL, NULL, &error), "name");
    NULL_IS_REFUSED(forebay_table_put(table, NULL, 1, "b", 1, &error), "key");
    NULL_IS_REFUSED(forebay_table_put(table, "a", 1, NULL, 1, &error), "value");
    NULL_IS_REFUSED(forebay_table_multi_get(table, NULL, NULL, &room, 1, &error), "keys");
    NULL_IS_REFUSED(forebay_table_multi_get(table, NULL, &slice, NULL, 1, &error), "values");
    NULL_IS_REFUSED(forebay_table_multi_get(table, NULL, &none, &room, 1, &error), "a key");
    NULL_IS_REFUSED(forebay_db_put_many(db, table, &slice, &none, 1, FOREBAY_OS, &error), "a value");
    NULL_IS_REFUSED(forebay_db_write(db, NULL, FOREBAY_OS, NULL, &error), "batch");
    REFUSED(forebay_table_put(table, "a", SIZE_MAX, "b", 1, &error), FOREBAY_ERROR_INVALID, "cannot have");
    /* No bytes need no pointer. */
    MUST(forebay_table_put(table, NULL, 0, NULL, 0, &error));
    char *empty = forebay_table_get(table, NULL, NULL, 0, &bytes, &error);
    CHECK(empty != NULL && bytes == 0 && *empty == 0);
    forebay_free(empty);
    forebay_table_free(table);
    MUST(forebay_db_close(db, &error));
    MUST(forebay_destroy(path, &error));
    forebay_options_free(options);
}

static void of_options(void) {
    forebay_options *options = forebay_options_new();
    forebay_table_options *table = forebay_table_options_new();
    const char *fine[][2] = {{"memory", "1GiB"}, {"memory_limit", "64M"}, {"write-buffer", "1M"}, {"write_buffers", "3"},
                             {"background_threads", "2"}, {"durability", "disk"}, {"sync_interval", "never"},
                             {"sync-interval", "5s"}, {"read_compaction_ratio", "0.5"}, {"keep_changes", "1M"},
                             {"open_files_max", "100"}, {"create_if_missing", "true"}, {"read_only", "false"},
                             {"salvage", "false"}};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        MUST(forebay_options_set(options, fine[i][0], fine[i][1], &error));
    const char *fine_of_tables[][2] = {
        {"layout", "leveling:t=4"}, {"existing", "false"}, {"node_bytes", "1M"}, {"fan_out", "16"}, {"fast_per_slow", "4"},
        {"lists_max", "64"}, {"repeats_max", "1.5"}, {"filter-bits-per-key", "12"}, {"codec", "lz4"},
        {"max_space_amplification", "2"}, {"reclaim_interval", "1h"}, {"ttl", "7d"}, {"time_to_live", "never"},
        {"values_apart", "1K"}, {"prefix_filter", "8"}, {"prefix-filter", "until:/"}, {"prefix_filter", "none"}};
    for (size_t i = 0; i < sizeof fine_of_tables / sizeof *fine_of_tables; i++)
        MUST(forebay_table_options_set(table, fine_of_tables[i][0], fine_of_tables[i][1], &error));
    const int invalid = FOREBAY_ERROR_INVALID;
    REFUSED(forebay_options_set(options, "cache", "1G", &error), invalid, "there are: memory,");
    REFUSED(forebay_options_set(options, "memory", "lots", &error), invalid, "option `memory` is `lots`: a size is");
    REFUSED(forebay_options_set(options, "durability", "ram", &error), invalid, "use memory, os or disk");
    REFUSED(forebay_options_set(options, "read_only", "maybe", &error), invalid, "true or false");
    REFUSED(forebay_options_set(options, "sync_interval", "5", &error), invalid, "a whole number and a unit");
    REFUSED(forebay_options_set(options, "memory", "\xff", &error), invalid, "value is not UTF-8");
    REFUSED(forebay_options_set_key(options, "short", "0123456789", 10, &error), invalid, "a key has 32 bytes, and 10");
    REFUSED(forebay_table_options_set(table, "layout", "heap", &error), invalid, "layout");
    REFUSED(forebay_table_options_set(table, "codec", "zip", &error), invalid, "none or lz4");
    REFUSED(forebay_table_options_set(table, "prefix_filter", "until:ab", &error), invalid, "a number of bytes");
    REFUSED(forebay_table_options_set(table, "lists_max", "-1", &error), invalid, "a count is");
    REFUSED(forebay_table_options_merge_rule(table, "add/1", NULL, NULL, &error), invalid, "merge");
    forebay_table_options_free(table);
    forebay_options_free(options);
}

static void of_calls(const char *path, const char *other_path) {
    const int invalid = FOREBAY_ERROR_INVALID;
    forebay_options *options = forebay_options_new();
    MUST(forebay_options_set(options, "create_if_missing", "false", &error));
    REFUSED(forebay_db_open(path, options, &error), FOREBAY_ERROR_NOT_FOUND, path);
    REFUSED(forebay_destroy(path, &error), FOREBAY_ERROR_NOT_FOUND, path);
    forebay_options_free(options);
    forebay_db *db = forebay_db_open(path, NULL, &error), *other;
    MUST(db != NULL);
    REFUSED(forebay_db_open(path, NULL, &error), FOREBAY_ERROR_LOCKED, path);
    forebay_table_options *existing = forebay_table_options_new();
    MUST(forebay_table_options_set(existing, "existing", "true", &error));
    REFUSED(forebay_table_open(db, "t", existing, &error), FOREBAY_ERROR_NOT_FOUND, "there is no table `t`");
    forebay_table_options_free(existing);
    REFUSED(forebay_db_drop_table(db, "t", &error), FOREBAY_ERROR_NOT_FOUND, "there is no table `t`");
    REFUSED(forebay_db_rollback(db, "s", &error), FOREBAY_ERROR_NOT_FOUND, "s");
    REFUSED(forebay_db_open_savepoint(db, "s", &error), FOREBAY_ERROR_NOT_FOUND, "s");
    forebay_table *table = forebay_table_open(db, "t", NULL, &error), *elsewhere;
    MUST(table != NULL);

    /* What needs an order. */
    forebay_entry entry;
    REFUSED(forebay_cursor_new(table, NULL, &error), invalid, "hash order");
    REFUSED(forebay_scan_new(table, NULL, "a", 1, NULL, 0, FOREBAY_FORWARD, &error), invalid, "hash order");
    REFUSED(forebay_table_delete_range(table, NULL, 0, NULL, 0, &error), invalid, "hash order");
    REFUSED(forebay_table_approximate(table, NULL, 0, NULL, 0, NULL, NULL, &error), invalid, "hash order");
    REFUSED(forebay_table_merge(table, "a", 1, "b", 1, &error), invalid, "no merge rule");
    REFUSED(forebay_table_put_with_ttl(table, "a", 1, "b", 1, 5, &error), invalid, "time_to_live");
    REFUSED(forebay_scan_new(table, NULL, NULL, 0, NULL, 0, (forebay_direction)7, &error), invalid, "forebay_direction 7");
    forebay_scan *scan = forebay_scan_new(table, NULL, NULL, 0, NULL, 0, FOREBAY_FORWARD, &error);
    MUST(scan != NULL);
    REFUSED(forebay_scan_next(scan, &entry, 0, &error), invalid, "no entries");
    NULL_IS_REFUSED(forebay_scan_next(scan, NULL, 1, &error), "entries");
    CHECK(forebay_scan_next(scan, &entry, 1, &error) == 0 && error == NULL);
    forebay_scan_free(scan);

    /* A batch keeps its first error until it is cleared, and writes nothing. */
    static char long_key[(64 << 10) + 1];
    forebay_batch *batch = forebay_batch_new();
    forebay_batch_put(batch, table, "a", 1, "1", 1);
    forebay_batch_put(batch, NULL, "b", 1, "2", 1);
    forebay_batch_put(batch, table, NULL, 1, "2", 1);
    NULL_IS_REFUSED(forebay_db_write(db, batch, FOREBAY_OS, NULL, &error), "table");
    CHECK(forebay_table_get(table, NULL, "a", 1, NULL, &error) == NULL && error == NULL);
    forebay_batch_clear(batch);
    forebay_batch_put(batch, table, long_key, sizeof long_key, "1", 1);
    REFUSED(forebay_db_write(db, batch, FOREBAY_OS, NULL, &error), invalid, "at most 65536");
    forebay_batch_clear(batch);
    forebay_batch_delete_range(batch, table, "a", 1, NULL, 0);
    REFUSED(forebay_db_write(db, batch, FOREBAY_OS, NULL, &error), invalid, "hash order");
    forebay_batch_clear(batch);
    forebay_batch_put(batch, table, "a", 1, "1", 1);
    REFUSED(forebay_db_write(db, batch, (forebay_durability)9, NULL, &error), invalid, "forebay_durability 9");
    other = forebay_db_open(other_path, NULL, &error);
    MUST(other != NULL);
    elsewhere = forebay_table_open(other, "t", NULL, &error);
    MUST(elsewhere != NULL);
    REFUSED(forebay_db_write(other, batch, FOREBAY_OS, NULL, &error), invalid, "another database");
    forebay_snapshot *snapshot = forebay_snapshot_new(other, &error);
    MUST(snapshot != NULL);
    REFUSED(forebay_table_get(table, snapshot, "a", 1, NULL, &error), invalid, "another database");
    forebay_snapshot_free(snapshot);
    forebay_batch_put(batch, elsewhere, "a", 1, "1", 1);
    REFUSED(forebay_db_write(db, batch, FOREBAY_OS, NULL, &error), invalid, "two databases");
    forebay_batch_free(batch);
    forebay_table_free(elsewhere);
    MUST(forebay_db_close(other, &error));
    REFUSED(forebay_changes_new(db, 99, &error), invalid, "99");
    REFUSED(forebay_db_wait_durable(db, 99, &error), invalid, "never written");

    /* What outlives its database reads on, and writes nothing. */
    MUST(forebay_table_put(table, "a", 1, "1", 1, &error));
    snapshot = forebay_snapshot_new(db, &error);
    MUST(forebay_db_close(db, &error));
    char *value = forebay_table_get(table, snapshot, "a", 1, NULL, &error);
    CHECK(value != NULL && strcmp(value, "1") == 0);
    forebay_free(value);
    CHECK(!forebay_table_put(table, "a", 1, "2", 1, &error) && forebay_error_code(error) != FOREBAY_OK);
    forebay_error_free(error);
    error = NULL;
    forebay_snapshot_free(snapshot);
    forebay_table_free(table);
    MUST(forebay_destroy(path, &error));
    MUST(forebay_destroy(other_path, &error));
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    static char other[4096];
    snprintf(other, sizeof other, "%s.other", arguments[1]);
    of_null(arguments[1]);
    of_options();
    of_calls(arguments[1], other);
    return 0;
}
