//! How RocksDB is tuned for a setup. What is told here is what RocksDB parses, so the text that is kept beside
//! results cannot differ from what was run.

use forebay_bench::{Durability, Setup};

use super::Style;
use crate::text;

const MIB: u64 = 1 << 20;
/// One is filled while two wait or are written out.
const WRITE_BUFFERS: u64 = 3;
const BLOCK_BYTES: u64 = 4096;
const FILTER_BITS_PER_KEY: u32 = 10;
/// Values from here on have files of their own, where any have.
const BLOB_BYTES_MIN: u64 = 512;
/// What a key and where its value lies take, as RocksDB's own benchmarks have it.
const REFERENCE_BYTES: u64 = 32;

type Entries = Vec<(&'static str, String)>;

/// RocksDB's options, and those of its parts.
pub(super) struct Options {
    plain: Entries,
    parts: Vec<(&'static str, Entries)>,
    table: Entries,
    cache: Entries,
    pub(super) cache_bytes: u64,
}

impl Options {
    pub(super) fn new(setup: &Setup, style: Style) -> Self {
        // All write buffers together take half of the memory, the block cache the rest.
        let write_buffer_bytes = (setup.memory_bytes / 2 / WRITE_BUFFERS).max(MIB);
        let cache_bytes = setup.memory_bytes.saturating_sub(WRITE_BUFFERS * write_buffer_bytes).max(MIB);
        let mut plain = plain(setup);
        plain.push(("write_buffer_size", write_buffer_bytes.to_string()));
        plain.push(("max_write_buffer_number", WRITE_BUFFERS.to_string()));
        let is_apart = style == Style::Blob && setup.value_bytes as u64 >= BLOB_BYTES_MIN;
        plain.extend(shape(style, write_buffer_bytes));
        plain.extend(match is_apart {
            true => tables_of_references(write_buffer_bytes, setup.value_bytes as u64),
            false => tables(setup, write_buffer_bytes, style),
        });
        let parts = match style {
            Style::Leveled | Style::Blob => Vec::new(),
            Style::Universal => vec![("compaction_options_universal", universal())],
        };
        Self { plain, parts, table: table(setup, cache_bytes), cache: cache(cache_bytes), cache_bytes }
    }

    /// As RocksDB parses them.
    pub(super) fn for_rocksdb(&self) -> String {
        let join = |entries: &Entries| -> String {
            entries.iter().map(|(name, value)| format!("{name}={value};")).collect()
        };
        let mut options = join(&self.plain);
        for (part, entries) in &self.parts {
            options += &format!("{part}={{{}}};", join(entries));
        }
        let (table, cache) = (join(&self.table), join(&self.cache));
        options + &format!("block_based_table_factory={{{table}block_cache={{{cache}}}}};")
    }

    /// As people read them.
    pub(super) fn for_people(&self) -> String {
        let table = ("block_based_table_factory", &self.table);
        let cache = ("block_based_table_factory.block_cache", &self.cache);
        let parts = self.parts.iter().map(|(part, entries)| (*part, entries)).chain([table, cache]);
        let parts = parts.flat_map(|(part, entries)| {
            entries.iter().map(move |(name, value)| (format!("{part}.{name}"), value.clone()))
        });
        let plain = self.plain.iter().map(|(name, value)| ((*name).to_string(), value.clone()));
        text::lines(plain.chain(parts))
    }
}

fn plain(setup: &Setup) -> Entries {
    let mut plain = Entries::new();
    let mut set = |name, value: &dyn ToString| plain.push((name, value.to_string()));
    set("create_if_missing", &true);
    set("compression", &"kNoCompression");
    set("max_background_jobs", &setup.background_threads);
    // More would take more threads than all engines are given.
    set("max_subcompactions", &1);
    set("enable_pipelined_write", &true);
    // Of use to several writers only.
    set("allow_concurrent_memtable_write", &(setup.writers > 1));
    // Written out early and evenly, so that no sync finds much to do.
    set("bytes_per_sync", &MIB);
    set("wal_bytes_per_sync", &MIB);
    set("max_open_files", &-1);
    set("optimize_filters_for_hits", &false);
    // Lookups skip memtables that do not hold their key; 2 % of a memtable are 8 bits or more for a record.
    set("memtable_prefix_bloom_size_ratio", &0.02);
    set("memtable_whole_key_filtering", &true);
    // A lookup of many keys searches a memtable from where the key before was.
    set("memtable_batch_lookup_optimization", &true);
    // Blocks of files that compaction has replaced leave the cache, as is to become the default.
    set("uncache_aggressiveness", &300);
    // A get wants its block alone. Compactions read ahead by themselves.
    set("advise_random_on_open", &true);
    set("compaction_readahead_size", &(2 * MIB));
    set("use_direct_reads", &setup.direct_io);
    set("use_direct_io_for_flush_and_compaction", &setup.direct_io);
    // Nobody reads what it would tell.
    set("info_log_level", &"WARN_LEVEL");
    set("stats_dump_period_sec", &0);
    set("stats_persist_period_sec", &0);
    if setup.durability == Durability::Disk {
        // A sync of a recycled segment has no new length to make durable.
        set("recycle_log_file_num", &WRITE_BUFFERS);
    }
    plain
}

/// When a merge begins.
fn trigger(style: Style) -> u64 {
    match style {
        Style::Leveled | Style::Blob => 4,
        // As in RocksDB's own benchmarks.
        Style::Universal => 8,
    }
}

/// Levels and files of values, in proportion to the write buffer.
fn shape(style: Style, write_buffer_bytes: u64) -> Entries {
    let mut shape = vec![
        ("level0_file_num_compaction_trigger", trigger(style).to_string()),
        ("level0_slowdown_writes_trigger", "20".to_string()),
        ("level0_stop_writes_trigger", "36".to_string()),
    ];
    match style {
        Style::Leveled | Style::Blob => {
            shape.push(("compaction_style", "kCompactionStyleLevel".to_string()));
            shape.push(("level_compaction_dynamic_level_bytes", "true".to_string()));
        }
        Style::Universal => {
            shape.push(("compaction_style", "kCompactionStyleUniversal".to_string()));
            // Room for each run to be a level, in files, rather than a single file of level 0.
            shape.push(("num_levels", "40".to_string()));
        }
    }
    if style == Style::Blob {
        shape.extend(blobs(write_buffer_bytes));
    }
    shape
}

/// Tables that hold values.
fn tables(setup: &Setup, write_buffer_bytes: u64, style: Style) -> Entries {
    // Neither tiny files nor compactions that must take a whole level at once.
    let file_bytes = setup.leveled.file_bytes.unwrap_or(write_buffer_bytes.clamp(8 * MIB, 64 * MIB));
    let mut tables = vec![("target_file_size_base", file_bytes.to_string())];
    if style != Style::Universal {
        // The first level as large as what comes down to it at once, as RocksDB's tuning guide has it.
        tables.push(("max_bytes_for_level_base", (trigger(style) * write_buffer_bytes).to_string()));
        let ratio =
            setup.leveled.level_ratio.map(|ratio| ("max_bytes_for_level_multiplier", ratio.to_string()));
        tables.extend(ratio);
    }
    tables
}

/// Tables whose values lie elsewhere: as in RocksDB's own benchmarks, so that they have levels too, and values are
/// collected a part at a time.
fn tables_of_references(write_buffer_bytes: u64, value_bytes: u64) -> Entries {
    let file_bytes = (REFERENCE_BYTES * write_buffer_bytes / value_bytes).clamp(MIB / 16, 64 * MIB);
    vec![
        ("target_file_size_base", file_bytes.to_string()),
        ("max_bytes_for_level_base", (8 * file_bytes).to_string()),
    ]
}

/// As in RocksDB's own benchmarks, but for the least value.
fn blobs(write_buffer_bytes: u64) -> Entries {
    vec![
        ("enable_blob_files", "true".to_string()),
        ("min_blob_size", BLOB_BYTES_MIN.to_string()),
        ("blob_file_size", write_buffer_bytes.to_string()),
        ("enable_blob_garbage_collection", "true".to_string()),
        ("blob_garbage_collection_age_cutoff", "0.25".to_string()),
        ("blob_garbage_collection_force_threshold", "1".to_string()),
    ]
}

/// As in RocksDB's own benchmarks.
fn universal() -> Entries {
    vec![
        ("size_ratio", "1".to_string()),
        ("min_merge_width", "2".to_string()),
        ("max_merge_width", "20".to_string()),
        ("max_size_amplification_percent", "200".to_string()),
        ("allow_trivial_move", "true".to_string()),
    ]
}

fn table(setup: &Setup, cache_bytes: u64) -> Entries {
    let record_bytes = (setup.key_bytes + setup.value_bytes) as u64;
    let bits = setup.filter_bits_per_key.unwrap_or(FILTER_BITS_PER_KEY);
    let mut table = Entries::new();
    let mut set = |name, value: &dyn ToString| table.push((name, value.to_string()));
    set("block_size", &BLOCK_BYTES);
    set("filter_policy", &format!("bloomfilter:{bits}:false"));
    // Its filters are those of format 5, in the format that this version recommends.
    set("format_version", &7);
    set("whole_key_filtering", &true);
    set("cache_index_and_filter_blocks", &true);
    set("cache_index_and_filter_blocks_with_high_priority", &true);
    set("pin_l0_filter_and_index_blocks_in_cache", &true);
    // Searches indexes by interpolation where their keys are uniform, as is to become the default.
    set("index_block_search_type", &"kAuto");
    set("uniform_cv_threshold", &0.2);
    set("data_block_index_type", &"kDataBlockBinaryAndHash");
    set("data_block_hash_table_util_ratio", &0.75);
    // A block inside one page costs one page to read. Padding costs half a record a block.
    set("block_align", &(16 * record_bytes <= BLOCK_BYTES));
    let filter_bytes = setup.records_expected * u64::from(bits) / 8;
    let index_bytes = setup.records_expected * record_bytes / BLOCK_BYTES * (setup.key_bytes as u64 + 8);
    if filter_bytes + index_bytes > cache_bytes / 2 {
        // Filters that do not all fit come and go in small pieces rather than a whole file's at a time.
        set("index_type", &"kTwoLevelIndexSearch");
        set("partition_filters", &true);
        set("metadata_block_size", &BLOCK_BYTES);
        set("pin_top_level_index_and_filter", &true);
    }
    table
}

/// Few shards, for few threads: a filter has to fit into one.
fn cache(bytes: u64) -> Entries {
    vec![
        ("capacity", bytes.to_string()),
        ("num_shard_bits", if bytes >= 64 * MIB { "2" } else { "0" }.to_string()),
        ("high_pri_pool_ratio", "0.5".to_string()),
    ]
}
