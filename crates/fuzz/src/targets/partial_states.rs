//! Files of partial states: damaged, they are refused or read as they were; resealed, whatever comes of them is calm.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use forebay_aggregate::AggregatorOptions;
use forebay_aggregate::arrow::{PartialReader, PartialWriter, RecordBatchAggregator};
use forebay_base::checksum::plain;
use forebay_base::{Error, Result};
use forebay_env::Rng;

use crate::damage::{damage, damage_in_place};
use crate::draws::{self, one_of};

const FUNCTIONS: [&str; 6] = [
    "count",
    "sum:int",
    "distinct:text",
    "top_k:int:3:text",
    "approx_distinct:text:5",
    "approx_quantile:int:0.5",
];

pub(crate) fn fuzz(rng: &mut Rng) {
    let count = one_of(rng, &[0, 1, 30, 300]);
    let batch = rows(rng, count);
    let list = [one_of(rng, &FUNCTIONS[..3]), one_of(rng, &FUNCTIONS[3..])].join(",");
    let options = || AggregatorOptions::default().memory_limit(8 << 20).threads(1);
    let groups = RecordBatchAggregator::new(&batch.schema(), &["city", "int"], &list, options());
    let groups = groups.expect("there are such columns and functions");
    groups.add_batch(&batch).expect("integers are numbers");
    let mut writer = PartialWriter::new(Vec::new(), groups.schema()).expect("memory can be written");
    for batch in groups.partials().expect("nothing is in files") {
        writer.write(&batch.expect("all fits")).expect("memory can be written");
    }
    let file = writer.finish().expect("memory can be written");
    let whole = read(&file).expect("what was written can be read");
    let summed_bytes = summed_bytes(&file);
    for _ in 0..60 {
        let mut bad = file.clone();
        damage(rng, &mut bad);
        // Behind what is summed up there is more than the sum, which nobody reads.
        match read(&bad) {
            Ok(batches) => assert_eq!(batches, whole, "damage is taken for states"),
            Err(Error::Invalid(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
        let mut bad = file.clone();
        damage_in_place(rng, &mut bad[..summed_bytes]);
        reseal(&mut bad, plain(&file[..summed_bytes]), summed_bytes);
        let into = RecordBatchAggregator::of_partials(groups.schema().schema(), options()).expect("it fits");
        if let Ok(reader) = PartialReader::open(Cursor::new(&bad)) {
            let _ = RecordBatchAggregator::of_partials(&reader.schema(), options());
            // A file has no more batches than it has bytes.
            for batch in reader.take(bad.len()).map_while(Result::ok) {
                let _ = into.add_partials(&batch);
            }
        }
        let _ = into.answers().map(|answers| answers.map_while(Result::ok).count());
    }
}

fn read(file: &[u8]) -> Result<Vec<RecordBatch>> {
    let reader = PartialReader::open(Cursor::new(file))?;
    RecordBatchAggregator::of_partials(
        &reader.schema(),
        AggregatorOptions::default().memory_limit(8 << 20).threads(1),
    )?;
    reader.collect()
}

/// How many bytes the file's sum is of, as it tells.
fn summed_bytes(file: &[u8]) -> usize {
    let text = String::from_utf8_lossy(&file[file.len().saturating_sub(4096)..]).into_owned();
    let told = text.lines().flat_map(|line| line.split('\0')).filter_map(|text| text.split_once(' '));
    let mut told = told.filter_map(|(sum, bytes)| {
        u32::from_str_radix(sum.get(sum.len().checked_sub(8)?..)?, 16).ok().and(bytes.parse::<usize>().ok())
    });
    told.next().expect("the file tells its sum")
}

/// Has the file tell the sum that it has now.
fn reseal(file: &mut [u8], sum: u32, summed_bytes: usize) {
    let (body, footer) = file.split_at_mut(summed_bytes);
    let old = format!("{sum:08x} ");
    let at = footer.windows(old.len()).position(|text| text == old.as_bytes()).expect("the footer has it");
    footer[at..at + old.len()].copy_from_slice(format!("{:08x} ", plain(body)).as_bytes());
}

/// Rows of texts, some of them no values, and of integers.
fn rows(rng: &mut Rng, count: usize) -> RecordBatch {
    let ints: Int64Array = (0..count).map(|_| (rng.below(5) > 0).then(|| rng.below(20) as i64 - 5)).collect();
    let cities: StringArray =
        (0..count).map(|_| (rng.below(5) > 0).then(|| format!("city {}", rng.below(40)))).collect();
    let texts: BinaryArray = (0..count).map(|_| (rng.below(5) > 0).then(|| draws::key(rng, 20))).collect();
    let columns: [(&str, ArrayRef); 3] =
        [("int", Arc::new(ints)), ("city", Arc::new(cities)), ("text", Arc::new(texts))];
    let columns = columns.map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}
