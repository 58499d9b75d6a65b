/*
 * LevelDB's interface for C over Forebay: its documented calls, for programs that were written for LevelDB.
 * Databases are Forebay's, each with one table in key order; LevelDB's own files are not read.
 *
 * Errors.  *errptr is NULL or an earlier error. It is left alone by what succeeds; what fails replaces it by a text,
 *   which is freed with leveldb_free, or free.
 * Order.  Keys are in the order of their bytes. leveldb_open refuses a comparator whose name is not
 *   "leveldb.BytewiseComparator".
 * Tuning.  Write buffer and cache come to one memory limit: four write buffers and the cache. Block sizes, file sizes,
 *   filter policies, environments, loggers, and options of reads but for their snapshot are taken and do nothing.
 */
#ifndef FOREBAY_LEVELDB_C_H
#define FOREBAY_LEVELDB_C_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leveldb_t leveldb_t;
typedef struct leveldb_cache_t leveldb_cache_t;
typedef struct leveldb_comparator_t leveldb_comparator_t;
typedef struct leveldb_env_t leveldb_env_t;
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;
typedef struct leveldb_iterator_t leveldb_iterator_t;
typedef struct leveldb_logger_t leveldb_logger_t;
typedef struct leveldb_options_t leveldb_options_t;
typedef struct leveldb_readoptions_t leveldb_readoptions_t;
typedef struct leveldb_snapshot_t leveldb_snapshot_t;
typedef struct leveldb_writebatch_t leveldb_writebatch_t;
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;

/* ---- Databases ---- */

leveldb_t *leveldb_open(const leveldb_options_t *options, const char *name, char **errptr);
void leveldb_close(leveldb_t *db);
void leveldb_put(leveldb_t *db, const leveldb_writeoptions_t *options, const char *key, size_t key_bytes,
                 const char *value, size_t value_bytes, char **errptr);
void leveldb_delete(leveldb_t *db, const leveldb_writeoptions_t *options, const char *key, size_t key_bytes,
                    char **errptr);
void leveldb_write(leveldb_t *db, const leveldb_writeoptions_t *options, leveldb_writebatch_t *batch, char **errptr);
/* NULL for a key that is not there; else for leveldb_free, or free. */
char *leveldb_get(leveldb_t *db, const leveldb_readoptions_t *options, const char *key, size_t key_bytes,
                  size_t *value_bytes, char **errptr);
leveldb_iterator_t *leveldb_create_iterator(leveldb_t *db, const leveldb_readoptions_t *options);
const leveldb_snapshot_t *leveldb_create_snapshot(leveldb_t *db);
void leveldb_release_snapshot(leveldb_t *db, const leveldb_snapshot_t *snapshot);
/* leveldb.stats, leveldb.sstables, leveldb.approximate-memory-usage, leveldb.num-files-at-level0 and so on. */
char *leveldb_property_value(leveldb_t *db, const char *name);
void leveldb_approximate_sizes(leveldb_t *db, int range_count, const char *const *starts, const size_t *start_bytes,
                               const char *const *limits, const size_t *limit_bytes, uint64_t *sizes);
/* Compacts all, whatever the range. */
void leveldb_compact_range(leveldb_t *db, const char *start, size_t start_bytes, const char *limit,
                           size_t limit_bytes);
void leveldb_destroy_db(const leveldb_options_t *options, const char *name, char **errptr);
/* Opening repairs what a crash leaves. This also verifies; what is damaged is an error: copy it with forebay_rescue. */
void leveldb_repair_db(const leveldb_options_t *options, const char *name, char **errptr);

/* ---- Iterators ---- */

void leveldb_iter_destroy(leveldb_iterator_t *iterator);
unsigned char leveldb_iter_valid(const leveldb_iterator_t *iterator);
void leveldb_iter_seek_to_first(leveldb_iterator_t *iterator);
void leveldb_iter_seek_to_last(leveldb_iterator_t *iterator);
void leveldb_iter_seek(leveldb_iterator_t *iterator, const char *key, size_t key_bytes);
void leveldb_iter_next(leveldb_iterator_t *iterator);
void leveldb_iter_prev(leveldb_iterator_t *iterator);
const char *leveldb_iter_key(const leveldb_iterator_t *iterator, size_t *key_bytes);
const char *leveldb_iter_value(const leveldb_iterator_t *iterator, size_t *value_bytes);
void leveldb_iter_get_error(const leveldb_iterator_t *iterator, char **errptr);

/* ---- Write batches ---- */

leveldb_writebatch_t *leveldb_writebatch_create(void);
void leveldb_writebatch_destroy(leveldb_writebatch_t *batch);
void leveldb_writebatch_clear(leveldb_writebatch_t *batch);
void leveldb_writebatch_put(leveldb_writebatch_t *batch, const char *key, size_t key_bytes, const char *value,
                            size_t value_bytes);
void leveldb_writebatch_delete(leveldb_writebatch_t *batch, const char *key, size_t key_bytes);
void leveldb_writebatch_iterate(const leveldb_writebatch_t *batch, void *state,
                                void (*put)(void *state, const char *key, size_t key_bytes, const char *value,
                                            size_t value_bytes),
                                void (*deleted)(void *state, const char *key, size_t key_bytes));
void leveldb_writebatch_append(leveldb_writebatch_t *destination, const leveldb_writebatch_t *source);

/* ---- Options ---- */

enum { leveldb_no_compression = 0, leveldb_snappy_compression = 1 };

leveldb_options_t *leveldb_options_create(void);
void leveldb_options_destroy(leveldb_options_t *options);
void leveldb_options_set_comparator(leveldb_options_t *options, leveldb_comparator_t *comparator);
void leveldb_options_set_filter_policy(leveldb_options_t *options, leveldb_filterpolicy_t *policy);
void leveldb_options_set_create_if_missing(leveldb_options_t *options, unsigned char value);
void leveldb_options_set_error_if_exists(leveldb_options_t *options, unsigned char value);
void leveldb_options_set_paranoid_checks(leveldb_options_t *options, unsigned char value);
void leveldb_options_set_env(leveldb_options_t *options, leveldb_env_t *env);
void leveldb_options_set_info_log(leveldb_options_t *options, leveldb_logger_t *log);
void leveldb_options_set_write_buffer_size(leveldb_options_t *options, size_t bytes);
void leveldb_options_set_max_open_files(leveldb_options_t *options, int files);
void leveldb_options_set_cache(leveldb_options_t *options, leveldb_cache_t *cache);
void leveldb_options_set_block_size(leveldb_options_t *options, size_t bytes);
void leveldb_options_set_block_restart_interval(leveldb_options_t *options, int keys);
void leveldb_options_set_max_file_size(leveldb_options_t *options, size_t bytes);
/* Counts when a database is made: none, or LZ4 for any other. */
void leveldb_options_set_compression(leveldb_options_t *options, int compression);

leveldb_readoptions_t *leveldb_readoptions_create(void);
void leveldb_readoptions_destroy(leveldb_readoptions_t *options);
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t *options, unsigned char value);
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t *options, unsigned char value);
/* NULL is for what is there now. What a snapshot holds is let go of once neither it nor read options have it. */
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t *options, const leveldb_snapshot_t *snapshot);

leveldb_writeoptions_t *leveldb_writeoptions_create(void);
void leveldb_writeoptions_destroy(leveldb_writeoptions_t *options);
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t *options, unsigned char value);

/* ---- What is taken and does nothing, but for a cache's size and a comparator's name ---- */

leveldb_comparator_t *leveldb_comparator_create(void *state, void (*destructor)(void *state),
                                                int (*compare)(void *state, const char *a, size_t a_bytes,
                                                               const char *b, size_t b_bytes),
                                                const char *(*name)(void *state));
void leveldb_comparator_destroy(leveldb_comparator_t *comparator);
leveldb_filterpolicy_t *leveldb_filterpolicy_create(
    void *state, void (*destructor)(void *state),
    char *(*create_filter)(void *state, const char *const *keys, const size_t *key_bytes, int key_count,
                           size_t *filter_bytes),
    unsigned char (*key_may_match)(void *state, const char *key, size_t key_bytes, const char *filter,
                                   size_t filter_bytes),
    const char *(*name)(void *state));
leveldb_filterpolicy_t *leveldb_filterpolicy_create_bloom(int bits_per_key);
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t *policy);
leveldb_cache_t *leveldb_cache_create_lru(size_t capacity);
void leveldb_cache_destroy(leveldb_cache_t *cache);
leveldb_env_t *leveldb_create_default_env(void);
void leveldb_env_destroy(leveldb_env_t *env);
/* For leveldb_free, or free. */
char *leveldb_env_get_test_directory(leveldb_env_t *env);

/* ---- The library ---- */

void leveldb_free(void *memory);
/* Of the LevelDB whose calls these are: 1.23. */
int leveldb_major_version(void);
int leveldb_minor_version(void);

#ifdef __cplusplus
}
#endif

#endif
