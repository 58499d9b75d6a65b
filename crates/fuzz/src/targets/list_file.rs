//! List files: pages, page search, digest, filter and footer, written by the writer and read by everything that reads
//! them.

use std::path::Path;
use std::sync::Arc;

use forebay_base::checksum::checksum;
use forebay_base::merge::{Cursor, Direction};
use forebay_base::record::Shape;
use forebay_base::wire::u64_at;
use forebay_base::{Kind, Order, Range, Record, Result};
use forebay_env::fs::MemoryFs;
use forebay_env::{FileSystem, Rng};
use forebay_store::list::{
    FileMeta, FilterLevel, ListCursor, ListFile, ListOptions, ListStore, ListWriter, Lookup, Pace, Reading,
    ResidentLimit, Search,
};
use forebay_store::{Cause, PageCache, ValueFiles, names};

use crate::answers::Answers;
use crate::damage::{DIR, bytes_of, damage, damage_in_place};
use crate::draws::{self, Model, one_of};

const PAGE_BYTES: usize = 4096;
/// Where the footer has the pages' length, and the metadata's checksum.
const PAGES_BYTES_AT: usize = 32;
const META_SUM_AT: usize = 48;
/// No page has so many records, and no file so many pages.
const STEPS_MAX: usize = 1 << 22;

pub(crate) fn fuzz(rng: &mut Rng) {
    let fs = MemoryFs::new();
    let store = store(rng, &fs);
    let count = one_of(rng, &[1, 5, 80, 300]);
    let model = draws::records(rng, store.options.order, count);
    let made = write(&store, &model).meta();
    let path = names::list(Path::new(DIR), made.id);
    let intact = bytes_of(&fs, &path);
    let answers = read(&store, &made, &model);
    answers.assert_right_or_damaged(&model);
    assert!(answers.errors.is_empty(), "it is intact: {:?}", answers.errors);
    for _ in 0..8 {
        let mut bytes = intact.clone();
        damage(rng, &mut bytes);
        fs.replace_file(&path, bytes);
        read(&store, &made, &model).assert_right_or_damaged(&model);
        read(&saving(&store), &made, &model).assert_written(&model);
    }
    for _ in 0..8 {
        let mut bytes = intact.clone();
        let meta = reseal(rng, &made, &mut bytes);
        fs.replace_file(&path, bytes);
        read(&store, &meta, &model);
        read(&saving(&store), &meta, &model);
    }
}

/// The same, but that damage is passed over.
fn saving(store: &ListStore) -> Arc<ListStore> {
    Arc::new(ListStore { salvage: Some(Arc::default()), ..store.clone() })
}

pub(crate) fn store(rng: &mut Rng, fs: &Arc<MemoryFs>) -> Arc<ListStore> {
    fs.create_dir_all(Path::new(DIR)).expect("memory takes it");
    let files: Arc<dyn FileSystem> = fs.clone();
    Arc::new(ListStore {
        values: ValueFiles::new(&files, DIR.as_ref(), &Arc::default(), &Arc::default()),
        fs: files,
        dir: DIR.into(),
        next_id: Arc::new(rng.below(1000).into()),
        cache: Arc::new(PageCache::new(0)),
        metrics: Arc::default(),
        trash: Arc::default(),
        disk: Arc::default(),
        options: ListOptions {
            order: draws::order(rng),
            filter_bits_per_key: one_of(rng, &[0, 4, 12, 40]),
            prefix_filter: draws::prefix_filter(&mut rng.clone().fork()),
            codec: draws::codec(rng),
            apart_bytes_min: None,
        },
        expiry: None,
        filter_level: Arc::new(FilterLevel::new(one_of(rng, &[Some(1.0), Some(15.0), Some(22.0), None]))),
        resident: Arc::new(ResidentLimit::default()),
        salvage: None,
        in_memory: false,
    })
}

pub(crate) fn write(store: &Arc<ListStore>, model: &Model) -> Arc<ListFile> {
    let records =
        || model.iter().map(|((prefix, key), (kind, value))| (*prefix, Record { kind: *kind, key, value }));
    let shape = records().fold(Shape::Unknown, |shape, (_, record)| shape.join(Shape::of(&record)));
    let mut writer = ListWriter::new(store, &Range::all(), model.len() as u64 + 7, shape, Cause::Merge)
        .expect("memory takes it");
    records().try_for_each(|(prefix, record)| writer.push(prefix, &record)).expect("records are in order");
    writer.finish().expect("memory takes it").expect("there are records")
}

/// Every way to read a file.
fn read(store: &Arc<ListStore>, meta: &FileMeta, model: &Model) -> Answers {
    let (list, mut answers) = (ListFile::named(store, meta.clone()), Answers::default());
    let mut faults = Vec::new();
    let verified = list.verify(&mut faults);
    answers.errors.extend(verified.err().into_iter().chain(faults));
    for (direction, reading) in [
        (Direction::Forward, Reading::Job { cause: Cause::Merge, chunk_bytes: 1 << 14 }),
        (Direction::Forward, Reading::Scan),
        (Direction::Backward, Reading::Scan),
    ] {
        answers.walk(|seen| walk(&list, &Range::all(), direction, reading, seen));
    }
    let absent = b"no such key".to_vec();
    for key in model.keys().map(|(_, key)| key).step_by(model.len() / 20 + 1).chain([&absent]) {
        answers.lookup((store.options.order.prefix(key), key.clone()), find(&list, store.options.order, key));
    }
    // Scans of key prefixes, of more and of less than one.
    let keys = model.keys().filter(|_| store.options.order.is_lexical());
    for place @ (_, key) in keys.step_by(model.len() / 20 + 1) {
        let begin = &key[..key.len().min(key.len() % 9 + 1)];
        let behind = store.options.order.bound(&[key, &[0][..]].concat());
        let range = Range { low: store.options.order.bound(begin), high: Some(behind) };
        let mut seen = Model::new();
        let walked = walk(&list, &range, Direction::Forward, Reading::Scan, &mut seen);
        answers.lookup(place.clone(), walked.map(|()| seen.remove(place)));
    }
    list.middle(&Range::all());
    answers
}

fn walk(
    list: &Arc<ListFile>,
    range: &Range,
    direction: Direction,
    reading: Reading,
    seen: &mut Model,
) -> Result<()> {
    let mut cursor = ListCursor::new(list, range, direction, reading)?;
    if matches!(reading, Reading::Scan) {
        ListCursor::seek_all(std::iter::once(&mut cursor), None, direction, Pace::default())?;
    }
    let mut steps = 0;
    while let Some(prefix) = cursor.prefix() {
        let record = cursor.record();
        seen.insert((prefix, record.key.to_vec()), (record.kind, record.value.to_vec()));
        steps += 1;
        assert!(steps < STEPS_MAX, "a walk does not end");
        cursor.advance()?;
    }
    Ok(())
}

pub(crate) fn find(list: &ListFile, order: Order, key: &[u8]) -> Result<Option<(Kind, Vec<u8>)>> {
    let lookups = [Lookup::new(order, key)];
    let (mut search, mut found) = (Search::new(&lookups), None);
    search.add(0, list);
    search.finish(&mut |_, record: &Record<'_>| {
        found = Some((record.kind, record.value.to_vec()));
        false
    })?;
    Ok(found)
}

/// Damages a page, the metadata or the footer, and makes the checksums above it match. Returns what a manifest would
/// have of the file then.
fn reseal(rng: &mut Rng, meta: &FileMeta, bytes: &mut [u8]) -> FileMeta {
    let footer_at = bytes.len() - PAGE_BYTES;
    let pages_bytes = u64_at(bytes, footer_at + PAGES_BYTES_AT) as usize;
    let seal = |bytes: &mut [u8], start: usize, end: usize, sum_at: usize, from: usize| {
        let sum = checksum(meta.id, start as u64, &bytes[from..end]);
        bytes[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
        sum
    };
    match rng.index(4) {
        0 => {
            // Long pages and compressed ones are longer or shorter: those are damaged where their header is.
            let page = rng.index(pages_bytes.div_ceil(PAGE_BYTES)) * PAGE_BYTES;
            let end = pages_bytes.min(page + PAGE_BYTES);
            let length = one_of(rng, &[20, end - page]).min(end - page);
            damage_in_place(rng, &mut bytes[page + 4..page + length]);
            seal(bytes, page, end, page, page + 4);
        }
        1 => damage_in_place(rng, &mut bytes[footer_at + 4..footer_at + 104]),
        _ => {
            let length = one_of(rng, &[60, footer_at - pages_bytes]).min(footer_at - pages_bytes);
            damage_in_place(rng, &mut bytes[pages_bytes..pages_bytes + length]);
            seal(bytes, pages_bytes, footer_at, footer_at + META_SUM_AT, pages_bytes);
        }
    }
    let digest = seal(bytes, footer_at, footer_at + PAGE_BYTES, footer_at, footer_at + 4);
    FileMeta { digest, ..meta.clone() }
}
