//! A list against the sorted records it was made of.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use forebay_base::codec::Codec;
use forebay_base::hash::mix;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::record::Shape;
use forebay_base::wire::Reader;
use forebay_base::{Bound, Kind, Order, PrefixFilter, Range, Record};
use forebay_env::fs::{MemoryFs, TracedFs};
use forebay_env::{FileSystem, Rng};
use proptest::prelude::*;

use super::index::{PageIndex, Prefixes, Starts};
use super::{
    Allowance, FileMeta, FilterLevel, ListCursor, ListFile, ListOptions, ListSize, ListStore, ListWriter,
    Lookup, Pace, Reading, ResidentLimit, Search,
};
use crate::cache::PageCache;
use crate::metrics::Cause;
use crate::salvage::Gaps;
use crate::values::ValueFiles;

type Model = BTreeMap<(u64, Vec<u8>), (Kind, Vec<u8>)>;

fn store(fs: Arc<MemoryFs>, order: Order, codec: Codec) -> Arc<ListStore> {
    store_in(fs, Path::new("/db"), order, codec)
}

pub(super) fn store_in(fs: Arc<dyn FileSystem>, dir: &Path, order: Order, codec: Codec) -> Arc<ListStore> {
    Arc::new(ListStore {
        values: ValueFiles::new(&fs, dir, &Arc::default(), &Arc::default()),
        fs,
        dir: dir.into(),
        next_id: Arc::default(),
        cache: Arc::new(PageCache::new(1 << 20)),
        metrics: Arc::default(),
        trash: Arc::default(),
        disk: Arc::default(),
        options: ListOptions {
            order,
            filter_bits_per_key: 12,
            prefix_filter: None,
            codec,
            apart_bytes_min: None,
        },
        expiry: None,
        filter_level: Arc::new(FilterLevel::new(None)),
        resident: Arc::new(ResidentLimit::default()),
        salvage: None,
        in_memory: false,
    })
}

/// Of keys as they are drawn here many have one of these.
const PREFIX_FILTERS: [Option<PrefixFilter>; 4] =
    [None, Some(PrefixFilter::Bytes(1)), Some(PrefixFilter::Bytes(4)), Some(PrefixFilter::Until(3))];

fn write(store: &Arc<ListStore>, model: &Model) -> Option<Arc<ListFile>> {
    let records: Vec<_> =
        model.iter().map(|(key, (kind, value))| (key.0, *kind, key.1.clone(), value.clone())).collect();
    let shape = records.iter().fold(Shape::Unknown, |shape, (_, kind, key, value)| {
        shape.join(Shape::of(&Record { kind: *kind, key, value }))
    });
    let mut writer =
        ListWriter::new(store, &Range::all(), records.len() as u64 + 7, shape, Cause::Merge).unwrap();
    for (prefix, kind, key, value) in &records {
        writer.push(*prefix, &Record { kind: *kind, key, value }).unwrap();
    }
    writer.finish().unwrap()
}

fn get(list: &ListFile, order: Order, key: &[u8]) -> Option<(Kind, Vec<u8>)> {
    let lookups = [Lookup::new(order, key)];
    let mut search = Search::new(&lookups);
    search.add(0, list);
    let mut found = None;
    search
        .finish(&mut |_, record: &Record<'_>| {
            found = Some((record.kind, record.value.to_vec()));
            false
        })
        .unwrap();
    found
}

fn walk(list: &Arc<ListFile>, range: &Range, direction: Direction, reading: Reading) -> Vec<(u64, Vec<u8>)> {
    let mut cursor = ListCursor::new(list, range, direction, reading).unwrap();
    if matches!(reading, Reading::Scan) {
        assert_eq!(cursor.prefix(), None, "it has read nothing yet");
        seek(&mut cursor, None, direction);
    }
    rest(cursor)
}

fn seek(cursor: &mut ListCursor, place: Option<(u64, &[u8])>, direction: Direction) {
    ListCursor::seek_all(std::iter::once(cursor), place, direction, Pace::default()).unwrap();
}

fn rest(mut cursor: ListCursor) -> Vec<(u64, Vec<u8>)> {
    let mut seen = Vec::new();
    while let Some(prefix) = cursor.prefix() {
        seen.push((prefix, cursor.record().key.to_vec()));
        cursor.advance().unwrap();
    }
    seen
}

fn check(order: Order, codec: Codec, keys: &[(Vec<u8>, Kind, Vec<u8>)], low: &[u8], high: &[u8]) {
    let fs = MemoryFs::new();
    fs_dir(&fs);
    let plain = store(Arc::clone(&fs), order, codec);
    let prefix_filter = PREFIX_FILTERS[keys.len() % PREFIX_FILTERS.len()];
    let options = ListOptions { prefix_filter, ..plain.options };
    let store = Arc::new(ListStore { options, ..(*plain).clone() });
    let model: Model = keys
        .iter()
        .map(|(key, kind, value)| ((order.prefix(key), key.clone()), (*kind, value.clone())))
        .collect();
    let Some(made) = write(&store, &model) else {
        assert!(model.is_empty());
        return;
    };
    let reopened = ListFile::named(&store, made.meta());
    for list in [made, reopened] {
        let mut faults = Vec::new();
        assert_eq!(list.verify(&mut faults).unwrap().records, model.len() as u64);
        assert!(faults.is_empty(), "{faults:?}");
        for ((_, key), (kind, value)) in &model {
            assert_eq!(get(&list, order, key), Some((*kind, value.clone())), "a key that was written");
        }
        let absent = [b"absent".to_vec(), low.to_vec(), vec![0xff; 9]];
        for key in absent.iter().filter(|key| !model.contains_key(&(order.prefix(key), (*key).clone()))) {
            assert_eq!(get(&list, order, key), None);
        }
        let (low, high) = (order.bound(low), order.bound(high));
        for range in [Range::all(), Range { low: low.clone(), high: None }, Range { low, high: Some(high) }] {
            let mut expected: Vec<_> =
                model.keys().filter(|(prefix, key)| range.contains(*prefix, key)).cloned().collect();
            let job = Reading::Job { cause: Cause::Merge, chunk_bytes: 1 << 14 };
            assert_eq!(walk(&list, &range, Direction::Forward, job), expected);
            if let Some(middle) = list.middle(&range) {
                assert!(range.can_split_at(&middle));
            }
            assert_eq!(walk(&list, &range, Direction::Forward, Reading::Scan), expected);
            // From the middle, either way, by one cursor.
            let middle = expected.get(expected.len() / 2).cloned().unwrap_or_default();
            let split = expected.partition_point(|place| *place < middle);
            let mut cursor = ListCursor::new(&list, &range, Direction::Forward, Reading::Scan).unwrap();
            seek(&mut cursor, Some((middle.0, &middle.1)), Direction::Backward);
            assert_eq!(cursor.prefix(), split.checked_sub(1).map(|before| expected[before].0));
            seek(&mut cursor, Some((middle.0, &middle.1)), Direction::Forward);
            assert_eq!(rest(cursor), expected[split..]);
            expected.reverse();
            assert_eq!(walk(&list, &range, Direction::Backward, Reading::Scan), expected);
        }
    }
}

fn fs_dir(fs: &Arc<MemoryFs>) {
    use forebay_env::FileSystem;
    fs.create_dir_all(Path::new("/db")).unwrap();
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Lexical), Just(Order::Hashed { seed: 9 }), Just(Order::Colliding { bits: 2 })]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn variable_records_come_back(
        order in orders(),
        lz4: bool,
        keys in prop::collection::vec((prop::collection::vec(0..4u8, 0..14), 0..3u8, 0..900usize), 0..120),
        low in prop::collection::vec(0..4u8, 0..14),
        high in prop::collection::vec(0..4u8, 0..14),
    ) {
        let records: Vec<_> = keys
            .into_iter()
            .map(|(key, kind, bytes)| match kind {
                0 => (key, Kind::Delete, vec![]),
                kind => (key, Kind::Put, vec![kind; bytes]),
            })
            .collect();
        check(order, if lz4 { Codec::Lz4 } else { Codec::None }, &records, &low, &high);
    }

    #[test]
    fn fixed_records_come_back(order in orders(), lz4: bool, seed: u64, count in 1..3000u64, low: [u8; 8], high: [u8; 8]) {
        let key = |i: u64| mix(seed ^ i).to_le_bytes().to_vec();
        let records: Vec<_> = (0..count).map(|i| (key(i), Kind::Put, i.to_le_bytes().to_vec())).collect();
        check(order, if lz4 { Codec::Lz4 } else { Codec::None }, &records, &low, &high);
    }
}

#[test]
fn records_longer_than_a_page_and_a_chunk_come_back() {
    let sizes = [0, 4080, 4081, 5000, 70_000, 3 << 20, 1];
    let records: Vec<_> =
        sizes.iter().map(|&bytes| (vec![bytes as u8; 40], Kind::Put, vec![5; bytes])).collect();
    for order in [Order::Lexical, Order::Hashed { seed: 1 }] {
        for codec in [Codec::None, Codec::Lz4] {
            check(order, codec, &records, &[0; 3], &[200; 50]);
        }
    }
}

/// A short walk leaves its pages in the cache; a long one reads ever longer pieces around it, either way.
#[test]
fn a_filter_of_ranks_alone_leads_to_one_page() {
    let order = Order::Hashed { seed: 5 };
    let fs = MemoryFs::new();
    fs_dir(&fs);
    let store = store(fs, order, Codec::None);
    let key = |number: u64| (order.prefix(&number.to_le_bytes()), number.to_le_bytes().to_vec());
    let model: Model = (0..60_000).map(|number| (key(number), (Kind::Put, vec![7; 8]))).collect();
    let list = write(&store, &model).unwrap();
    let whole = store.metrics.filter_memory_bytes.get();
    let pages = || store.metrics.page_reads.get() + store.metrics.cache_hits.get();
    for (allowed, most) in [(1.6, 0.7), (0.0, 1.0)] {
        list.thin_filter(Allowance::bits(allowed));
        let before = pages();
        for ((_, key), (kind, value)) in &model {
            assert_eq!(get(&list, order, key), Some((*kind, value.clone())), "at {allowed} bits");
        }
        let present = (pages() - before) as f64 / model.len() as f64;
        (1..=5000u64).for_each(|number| assert_eq!(get(&list, order, &mix(number).to_be_bytes()), None));
        let absent = (pages() - before) as f64 / 5000.0 - present * model.len() as f64 / 5000.0;
        assert!(
            present < 1.03 && absent < 1.03 * most,
            "{present} and {absent} pages a get at {allowed} bits"
        );
    }
    assert!(store.metrics.filter_memory_bytes.get() < whole / 20);
}

#[test]
fn a_scan_reads_single_pages_first_and_then_longer_and_longer_pieces() {
    let fs = MemoryFs::new();
    fs_dir(&fs);
    let plain = store(Arc::clone(&fs), Order::Lexical, Codec::None);
    let store = Arc::new(ListStore { cache: Arc::new(PageCache::new(64 << 20)), ..(*plain).clone() });
    let key = |number: u64| (number, number.to_be_bytes().to_vec());
    let model: Model = (0..200_000).map(|number| (key(number), (Kind::Put, vec![1; 8]))).collect();
    let list = write(&store, &model).unwrap();
    let reads = || store.metrics.page_reads.get();
    let range = Range { low: Order::Lexical.bound(&key(100_000).1), high: None };
    let mut cursor = ListCursor::new(&list, &range, Direction::Forward, Reading::Scan).unwrap();
    assert_eq!(reads(), 0);
    seek(&mut cursor, None, Direction::Forward);
    (0..200).for_each(|_| cursor.advance().unwrap());
    assert!((1..=2).contains(&reads()), "{} reads", reads());
    // The same pages again, and the other way.
    let before = reads();
    seek(&mut cursor, Some((100_100, &key(100_100).1)), Direction::Backward);
    seek(&mut cursor, None, Direction::Forward);
    assert_eq!(reads(), before);
    for direction in [Direction::Forward, Direction::Backward] {
        let before = reads();
        assert_eq!(walk(&list, &Range::all(), direction, Reading::Scan).len(), 200_000);
        // 787 pages: two alone, 2 to 32 in pieces, the rest 62 at a time.
        let taken = reads() - before;
        assert!((15..=22).contains(&taken), "{taken} reads");
    }
    // Who goes on to the end reads long pieces at once.
    let (before, mut steady) =
        (reads(), ListCursor::new(&list, &Range::all(), Direction::Forward, Reading::Scan).unwrap());
    ListCursor::seek_all(std::iter::once(&mut steady), None, Direction::Forward, Pace::steady(1 << 20))
        .unwrap();
    assert_eq!(rest(steady).len(), 200_000);
    assert!((3..=5).contains(&(reads() - before)), "{} reads", reads() - before);
    assert!(store.cache.memory_bytes() < 10 * 5000, "a long scan leaves the cache alone");
    // Nothing of the list is where one looks.
    let before = reads();
    cursor = ListCursor::new(&list, &Range::all(), Direction::Forward, Reading::Scan).unwrap();
    seek(&mut cursor, Some((200_000, &key(200_000).1)), Direction::Forward);
    assert_eq!((cursor.prefix(), reads()), (None, before));
}

#[test]
fn a_scan_of_a_key_prefix_that_a_filter_denies_reads_nothing() {
    let fs = MemoryFs::new();
    fs_dir(&fs);
    let plain = store(Arc::clone(&fs), Order::Lexical, Codec::None);
    let key = |user: u64, number: u64| format!("{user:05}/{number}").into_bytes();
    let place = |key: Vec<u8>| (Order::Lexical.prefix(&key), key);
    // Of each second user five, and keys that have no key prefix of nine bytes.
    let users = (0..4000).step_by(2);
    let keys =
        users.flat_map(|user| (0..5).map(move |number| (user, number))).map(|(user, at)| key(user, at));
    let short = (0..100u64).map(|number| format!("{number:03}").into_bytes());
    let model: Model = keys.chain(short).map(|key| (place(key), (Kind::Put, vec![7; 20]))).collect();
    let mut versions = Vec::new();
    for prefix_filter in [None, Some(PrefixFilter::Bytes(6)), Some(PrefixFilter::Until(b'/'))] {
        let cache = Arc::new(PageCache::new(0));
        let options = ListOptions { prefix_filter, filter_bits_per_key: 14, ..plain.options };
        let store = Arc::new(ListStore { options, cache, metrics: Arc::default(), ..(*plain).clone() });
        let made = write(&store, &model).unwrap();
        let footer = fs.snapshot_files()[&made.path()][made.bytes() as usize - 4096..].to_vec();
        versions.push(footer[12]);
        // As it was written, as it is opened, and as thin as it gets.
        let opened = ListFile::named(&store, made.meta());
        assert_eq!(first_fault(&opened).map(|fault| fault.to_string()), None);
        for (list, is_whole) in [(&made, true), (&opened, true), (&opened, false)] {
            if !is_whole {
                list.thin_filter(Allowance::NONE);
            }
            let scan = |user: u64| {
                let [low, high] =
                    [b'/', b'/' + 1].map(|end| [format!("{user:05}").as_bytes(), &[end]].concat());
                let range =
                    Range { low: Order::Lexical.bound(&low), high: Some(Order::Lexical.bound(&high)) };
                let before = store.metrics.page_reads.get();
                let found = walk(list, &range, Direction::Forward, Reading::Scan).len();
                (found, store.metrics.page_reads.get() - before)
            };
            assert!((0..4000).step_by(2).all(|user| scan(user).0 == 5), "all that is there is found");
            let reads: u64 = (1..4000).step_by(2).map(scan).map(|(found, reads)| reads + found as u64).sum();
            let denies = prefix_filter.is_some() && is_whole;
            // One read each, or a false answer of a filter at 11.7 bits for each key and key prefix.
            assert!(if denies { reads <= 30 } else { reads >= 1900 }, "{reads} reads by {prefix_filter:?}");
        }
        assert_eq!(store.metrics.prefix_denials.get() > 0, prefix_filter.is_some());
    }
    // Builds that cannot read such a filter refuse the list, and no other.
    assert_eq!(versions, [2, 5, 5]);
}

#[test]
fn every_flipped_byte_is_noticed_and_named() {
    for order in [Order::Hashed { seed: 4 }, Order::Lexical] {
        every_flipped_byte_is_noticed(order);
    }
}

fn every_flipped_byte_is_noticed(order: Order) {
    let fs = MemoryFs::new();
    fs_dir(&fs);
    let plain = store(Arc::clone(&fs), order, Codec::None);
    // Filters of lists in key order alone have any.
    let options = ListOptions { prefix_filter: Some(PrefixFilter::Bytes(2)), ..plain.options };
    let store = Arc::new(ListStore { options, ..(*plain).clone() });
    let key = |i: u64| ((order.prefix(&i.to_le_bytes())), i.to_le_bytes().to_vec());
    let model: Model = (0..600).map(|i| (key(i), (Kind::Put, vec![1; 8]))).collect();
    let meta: FileMeta = write(&store, &model).unwrap().meta();
    let path = store.path(meta.id);
    let intact = fs.snapshot_files()[&path].clone();
    for at in 0..intact.len() {
        let mut damaged = intact.clone();
        damaged[at] ^= 0xff;
        fs.replace_file(&path, damaged);
        let error = first_fault(&ListFile::named(&store, meta.clone())).expect("a flipped byte");
        assert!(
            error.is_corruption() || matches!(error, forebay_base::Error::NewerFormat { .. }),
            "{at}: {error}"
        );
        assert!(error.to_string().contains(".list"), "{error}");
    }
    fs.replace_file(&path, intact[..intact.len() - 4096].to_vec());
    assert!(first_fault(&ListFile::named(&store, meta)).is_some(), "a shortened file");
}

fn first_fault(list: &ListFile) -> Option<forebay_base::Error> {
    let mut faults = Vec::new();
    list.verify(&mut faults).err().or_else(|| faults.into_iter().next())
}

/// Reading ended at the first, and nothing was told of what is sound.
#[test]
fn every_damaged_page_is_told_and_all_others_are_counted() {
    for order in [Order::Hashed { seed: 4 }, Order::Lexical] {
        for value_bytes in [8, 700] {
            let fs = MemoryFs::new();
            fs_dir(&fs);
            let store = store(Arc::clone(&fs), order, Codec::None);
            let key = |i: u64| (order.prefix(&i.to_be_bytes()), i.to_be_bytes().to_vec());
            let model: Model = (0..3000).map(|i| (key(i), (Kind::Put, vec![1; value_bytes]))).collect();
            let meta = write(&store, &model).unwrap().meta();
            let path = store.path(meta.id);
            let sound = ListFile::named(&store, meta.clone()).verify(&mut Vec::new()).unwrap();
            let mut bytes = fs.snapshot_files()[&path].clone();
            let places = [0, 2, 3, sound.pages as usize - 1].map(|page| page * 4096 + 40);
            for place in places {
                bytes[place] ^= 1;
            }
            fs.replace_file(&path, bytes);
            let mut faults = Vec::new();
            let found = ListFile::named(&store, meta.clone()).verify(&mut faults).unwrap();
            assert_eq!(
                (found.pages, faults.len()),
                (sound.pages - 4, 4),
                "{order:?} {value_bytes}: {faults:?}"
            );
            assert!(found.records < sound.records && found.records > sound.records / 4, "{found:?}");
        }
    }
}

#[test]
fn the_size_of_a_list_is_known_before_it_is_written() {
    for value_bytes in [0, 8, 56, 5000] {
        for count in [1u64, 100, 5_000, 40_000u64.min(20_000_000 / (value_bytes as u64 + 8))] {
            let fs = MemoryFs::new();
            fs_dir(&fs);
            let order = Order::Hashed { seed: 1 };
            let store = store(Arc::clone(&fs), order, Codec::None);
            let keys = (0..count).map(|key| key.to_le_bytes().to_vec());
            let model: Model =
                keys.map(|key| ((order.prefix(&key), key), (Kind::Put, vec![7; value_bytes]))).collect();
            let list = write(&store, &model).unwrap();
            let told = ListSize::of(&store.options, value_bytes as u64 + 8, count + 7, count);
            let near = |told: u64, is: u64, slack: u64| told.abs_diff(is) <= slack + is / 25;
            let metrics = &store.metrics;
            let (filter, search) = (metrics.filter_memory_bytes.get(), metrics.index_memory_bytes.get());
            assert!(near(told.file_bytes, list.meta().bytes, 4096), "{told:?}, {:?}", list.meta());
            // From a page on it is held by whole pages.
            let rest = if filter < 4096 { 64 } else { 4096 };
            assert!(near(told.filter_bytes, filter, rest), "{told:?}, {filter}");
            // Chance decides how many samples the digest has, and it grows by doubling.
            let pages = search.min(told.search_bytes) / 2;
            assert!(near(told.search_bytes, search, 64 + pages), "{told:?}, {search}");
        }
    }
}

/// 7,000 lists of which only snapshots knew kept 17 MiB of samples that nobody asked for.
#[test]
fn what_only_snapshots_see_keeps_no_sample_of_keys() {
    let fs = MemoryFs::new();
    fs_dir(&fs);
    let order = Order::Hashed { seed: 1 };
    let store = store(fs, order, Codec::None);
    let keys = (0..5_000u64).map(|key| key.to_le_bytes().to_vec());
    let model: Model = keys.map(|key| ((order.prefix(&key), key), (Kind::Put, vec![7; 8]))).collect();
    let written = write(&store, &model).unwrap();
    let opened_later = ListFile::named(&store, written.meta());
    let held = || store.metrics.index_memory_bytes.get() as usize;
    let sampled = written.digest().memory_bytes();
    let before = held();
    assert!(sampled > 0 && before >= sampled, "{before} bytes, of which {sampled} are samples");
    written.retire();
    assert_eq!(held(), before - sampled, "written here");
    opened_later.retire();
    assert!(get(&opened_later, order, &7u64.to_le_bytes()).is_some());
    assert_eq!(held(), 2 * (before - sampled), "opened once it was retired");
    drop((written, opened_later));
    assert_eq!(held(), 0);
}

/// Any four bytes that told a length below that of the file were believed, and this much was read, for every 64 bytes
/// of it.
#[test]
fn what_is_no_page_is_passed_over_without_reading_what_its_bytes_declare() {
    const BYTES: usize = 1 << 20;
    let memory = MemoryFs::new();
    memory.create_dir_all(Path::new("/db")).unwrap();
    let mut sound = store(memory.clone(), Order::Lexical, Codec::Lz4);
    let text = |number: u32| format!("{number:06}").into_bytes();
    let model: Model = (0..2_000)
        .map(|number| {
            let value = format!("{number}").repeat(1 + number as usize % 7).into_bytes();
            ((Order::Lexical.prefix(&text(number)), text(number)), (Kind::Put, value))
        })
        .collect();
    let written = write(&sound, &model).unwrap();
    let mut bytes = memory.snapshot_files().remove(&written.path()).unwrap();
    // The footer is gone; what stands there are numbers of 32 bits, each a length that might be.
    let pages_bytes = bytes.len() - 4096;
    bytes.truncate(pages_bytes);
    let mut rng = Rng::new(5);
    while bytes.len() < BYTES {
        bytes.extend_from_slice(&(rng.index(BYTES) as u32).to_le_bytes());
    }
    memory.replace_file(&written.path(), bytes);

    let traced = TracedFs::new(memory);
    let gaps = Arc::new(Gaps::default());
    Arc::make_mut(&mut sound).fs = traced.clone();
    Arc::make_mut(&mut sound).salvage = Some(Arc::clone(&gaps));
    let list = ListFile::named(&sound, written.meta());
    assert_eq!(list.records(), 2_000);
    let read = traced.counts();
    assert!(read.read_bytes < 4 * BYTES as u64, "{read:?}");
    assert!(read.reads < (BYTES / 1024) as u64, "{read:?}");
    assert!(!gaps.all().is_empty());
}

/// 2,000 numbers as keys.
fn numbered(order: Order, value: impl Fn(u64) -> Vec<u8>) -> Model {
    let entry = |number: u64| {
        let key = number.to_be_bytes().to_vec();
        ((order.prefix(&key), key), (Kind::Put, value(number)))
    };
    (0..2_000).map(entry).collect()
}

/// The page search counts in units of 64 bytes, and a piece at the end that was none was looked for elsewhere.
#[test]
fn a_list_that_is_cut_anywhere_is_saved_up_to_where_it_ends() {
    let (order, memory) = (Order::Hashed { seed: 7 }, MemoryFs::new());
    memory.create_dir_all(Path::new("/db")).unwrap();
    let sound = store(memory.clone(), order, Codec::None);
    let model = numbered(order, |number| number.to_le_bytes().repeat(3));
    let written = write(&sound, &model).unwrap();
    let whole = memory.snapshot_files().remove(&written.path()).unwrap();
    // 127 records a page.
    for (cut, records) in [(5 * 4096 + 1, 5 * 127), (5 * 4096 - 1, 4 * 127), (63, 0), (64 * 100 + 7, 127)] {
        memory.replace_file(&written.path(), whole[..cut].to_vec());
        let mut salvaged = store(memory.clone(), order, Codec::None);
        Arc::make_mut(&mut salvaged).salvage = Some(Arc::default());
        let list = ListFile::named(&salvaged, written.meta());
        let found = walk(&list, &Range::all(), Direction::Forward, Reading::Scan);
        assert!(found.iter().eq(model.keys().take(records)), "{} records of {cut} bytes", found.len());
    }
}

/// A page was as long as its list said, whatever memory that took; one of no bytes was looked into; and there were as
/// many records as could not be counted.
#[test]
fn page_searches_that_do_not_fit_their_pages_are_refused() {
    let encoded = |starts: Starts, pages: &[u64]| {
        let (mut index, mut at) = (PageIndex::new(starts, 4096), 0);
        for (page, &bytes) in pages.iter().enumerate() {
            index.push(&Bound::at_prefix(page as u64), 10 * page as u64, at, bytes);
            at += bytes;
        }
        index.finish(7);
        let mut bytes = Vec::new();
        index.encode(&mut bytes);
        bytes
    };
    let read =
        |bytes: &[u8], records, end| PageIndex::decode(&mut Reader::new(bytes), records, end).is_some();
    for starts in [|| Starts::Even(10), || Starts::Prefixes(Prefixes::default())] {
        let bytes = encoded(starts(), &[4096; 3]);
        assert!(read(&bytes, 30, 3 * 4096));
        assert!(!read(&bytes, 30, 2 * 4096) && !read(&bytes, 30, 4 * 4096), "pages end elsewhere");
        assert!(!read(&bytes, u64::MAX, 3 * 4096), "more records than pages hold");
    }
    assert!(read(&encoded(Starts::Even(10), &[64, 128, 64]), 30, 256));
    assert!(!read(&encoded(Starts::Even(10), &[64, 0, 192]), 30, 256), "a page of no bytes");
}

/// In the order of hashes keys of one size only are in order.
#[test]
fn fixed_records_in_hash_order_outlive_their_whole_footer() {
    let order = Order::Hashed { seed: 7 };
    for (codec, value_bytes) in [(Codec::None, 9), (Codec::Lz4, 9), (Codec::None, 0)] {
        let memory = MemoryFs::new();
        memory.create_dir_all(Path::new("/db")).unwrap();
        let sound = store(memory.clone(), order, codec);
        let model = numbered(order, |number| vec![number as u8; value_bytes]);
        let written = write(&sound, &model).unwrap();
        assert!(matches!(written.shape(), Shape::Fixed { key_bytes: 8, .. }));
        let mut bytes = memory.snapshot_files().remove(&written.path()).unwrap();
        let footer_at = bytes.len() - 4096;
        bytes[footer_at..].fill(0);
        memory.replace_file(&written.path(), bytes);
        let mut salvaged = store(memory.clone(), order, codec);
        Arc::make_mut(&mut salvaged).salvage = Some(Arc::default());
        let list = ListFile::named(&salvaged, written.meta());
        assert_eq!(list.records(), 2_000, "{codec:?}, values of {value_bytes}");
        let found = walk(&list, &Range::all(), Direction::Forward, Reading::Scan);
        assert!(found.iter().eq(model.keys()), "{codec:?}, values of {value_bytes}");
    }
}

/// Pages of fixed records do not tell the sizes; all of a list's were lost with its footer.
#[test]
fn fixed_records_outlive_a_footer_of_which_a_bit_or_the_end_is_gone() {
    for (order, codec) in [(Order::Lexical, Codec::None), (Order::Lexical, Codec::Lz4)] {
        let memory = MemoryFs::new();
        memory.create_dir_all(Path::new("/db")).unwrap();
        let sound = store(memory.clone(), order, codec);
        let model = numbered(order, |number| (number % 7).to_le_bytes().to_vec());
        let written = write(&sound, &model).unwrap();
        assert_eq!(written.shape(), Shape::Fixed { key_bytes: 8, value_bytes: 8 });
        let whole = memory.snapshot_files().remove(&written.path()).unwrap();
        let footer_at = whole.len() - 4096;
        // Of which file it is, and the sizes themselves, are what it has to tell.
        let flips = [0, 5, 13, 25, 33, 41, 49, 53, 57, 60, 73, 500, 4095];
        let damaged = flips.map(|at| {
            let mut bytes = whole.clone();
            bytes[footer_at + at] ^= 4;
            bytes
        });
        let cut = [1, 64, 4000].map(|by| whole[..whole.len() - by].to_vec());
        for (case, bytes) in damaged.into_iter().chain(cut).enumerate() {
            memory.replace_file(&written.path(), bytes);
            let gaps = Arc::new(Gaps::default());
            let mut salvaged = store(memory.clone(), order, codec);
            Arc::make_mut(&mut salvaged).salvage = Some(Arc::clone(&gaps));
            let list = ListFile::named(&salvaged, written.meta());
            assert_eq!(list.records(), 2_000, "case {case}, {codec:?}");
            let found = walk(&list, &Range::all(), Direction::Forward, Reading::Scan);
            assert!(found.iter().eq(model.keys()), "case {case}, {codec:?}");
            assert!(!gaps.all().is_empty());
        }
    }
}

/// Lines that are cut leave all ranks of a line, which long records have over a dozen pages: they were read one by one,
/// nine for a present key.
#[test]
fn thin_filters_cost_long_records_few_reads() {
    for (value_bytes, reads_max) in [(64, 1.1), (256, 1.3), (1000, 2.2), (1900, 3.0)] {
        let fs = MemoryFs::new();
        fs_dir(&fs);
        let order = Order::Hashed { seed: 5 };
        let store = store(fs, order, Codec::None);
        let count = 10_000u64;
        let key = |number: u64| format!("key {number}").into_bytes();
        let records =
            (0..count).map(key).map(|key| ((order.prefix(&key), key), (Kind::Put, vec![1; value_bytes])));
        let list = write(&store, &records.collect()).unwrap();
        for bits in [12.0, 9.0, 6.0, 3.0, 0.0] {
            list.thin_filter(Allowance::bits(bits));
            let before = store.metrics.page_reads.get();
            for number in (0..count).step_by(7) {
                store.cache.blocks().resize(0);
                assert!(get(&list, order, &key(number)).is_some());
            }
            let reads = (store.metrics.page_reads.get() - before) as f64 / count.div_ceil(7) as f64;
            assert!(reads <= reads_max, "{value_bytes} bytes, {bits} bits: {reads} reads");
        }
    }
}

#[test]
fn a_damaged_page_takes_no_keys_of_others_however_thin_the_filter() {
    for (value_bytes, bits) in [(8, 12.0), (8, 0.0), (256, 9.0), (1000, 12.0), (1000, 9.0), (1000, 0.0)] {
        let fs = MemoryFs::new();
        fs_dir(&fs);
        let order = Order::Hashed { seed: 5 };
        let store = store(Arc::clone(&fs), order, Codec::None);
        let keys = (0..6000u64).map(|number| format!("key {number:05}").into_bytes());
        let model: Model =
            keys.map(|key| ((order.prefix(&key), key), (Kind::Put, vec![1; value_bytes]))).collect();
        let list = write(&store, &model).unwrap();
        let file = fs.open(&list.path(), forebay_env::Access::Buffered).unwrap();
        file.write_at(5 * 4096 + 2000, &[0x55; 16]).unwrap();
        list.thin_filter(Allowance::bits(bits));
        let failed = model.keys().filter(|(_, key)| {
            let lookups = [Lookup::new(order, key)];
            let mut search = Search::new(&lookups);
            search.add(0, &list);
            search.finish(&mut |_, _: &Record<'_>| false).is_err()
        });
        let (failed, own) = (failed.count(), (4096 - 16) / (9 + value_bytes));
        assert!(failed == own, "{value_bytes} bytes, {bits} bits: {failed} keys for {own}");
    }
}

#[test]
fn who_takes_all_reads_all_pages_before_the_first_is_looked_at() {
    let fs = MemoryFs::new();
    fs_dir(&fs);
    let order = Order::Hashed { seed: 6 };
    let store = store(Arc::clone(&fs), order, Codec::None);
    let lists: Vec<_> = (0..3).map(|age| write(&store, &numbered(order, |_| vec![age])).unwrap()).collect();
    let key = numbered(order, |_| Vec::new()).into_keys().nth(77).unwrap().1;
    let lookups = [Lookup::new(order, &key)];
    for (takes_all, more, reads, seen) in [(false, false, 1, 1), (true, false, 3, 1), (true, true, 3, 3)] {
        store.cache.blocks().resize(0);
        let before = store.metrics.page_reads.get();
        let search = Search::new(&lookups);
        let mut search = if takes_all { search.taking_all() } else { search };
        lists.iter().for_each(|list| search.add(0, list));
        let mut values = Vec::new();
        let show = &mut |_, record: &Record<'_>| {
            values.extend_from_slice(record.value);
            more
        };
        search.finish(show).unwrap();
        assert_eq!(values, [0, 1, 2][..seen]);
        assert_eq!(store.metrics.page_reads.get() - before, reads, "all: {takes_all}, more: {more}");
    }
}
