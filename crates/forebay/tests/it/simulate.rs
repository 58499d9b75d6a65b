//! The planner without data against the engine: what it predicts of a load is what the load comes to, within
//! 15 %, where background work keeps pace.

use forebay::simulate::{Forecast, Keys, Load, Point, Rates, Simulation};
use forebay::{Batch, Database, Durability, Layout, Options, Stats, Table, TableOptions};
use forebay_env::{Env, Rng};

/// How far a prediction may be off.
const TOLERANCE: f64 = 0.15;
/// Lookups of present and of absent keys at each moment.
const GETS: u64 = 500;
/// Figures that rise and fall, such as the number of lists, are compared at this many moments.
const MOMENTS: u64 = 16;

/// One load, and the options of the table that takes it.
#[derive(Clone, Copy, Debug)]
struct Case {
    layout: Layout,
    memory_bytes: u64,
    value_bytes: u64,
    records: u64,
    keys: Keys,
    fan_out: usize,
    fast_per_slow: u32,
    lists_max: usize,
    apart_bytes_min: Option<u32>,
    resident_percent: Option<u32>,
}

impl Case {
    fn usual() -> Self {
        Self {
            layout: Layout::wb_tree(),
            memory_bytes: 32 << 20,
            value_bytes: 8,
            records: 3_000_000,
            keys: Keys::Unique,
            fan_out: 16,
            fast_per_slow: 8,
            lists_max: 32,
            apart_bytes_min: None,
            resident_percent: None,
        }
    }

    fn options(&self) -> Options {
        // A load is predicted, not what rest and lookups add to it.
        let options = Options::default().memory_limit(self.memory_bytes).read_compaction_ratio(0.0);
        match self.resident_percent {
            Some(percent) => options.resident_percent(percent),
            None => options.write_buffer(1 << 20),
        }
    }

    fn table(&self) -> TableOptions {
        let mut table = TableOptions::new(self.layout, self.options().buffer_bytes(self.layout));
        table.tree.fan_out = self.fan_out;
        table.tree.fast_per_slow = self.fast_per_slow;
        table.tree.lists_max = self.lists_max;
        table.apart_bytes_min = self.apart_bytes_min;
        table
    }

    fn predict(&self, records: u64) -> Forecast {
        let Self { value_bytes, keys, .. } = *self;
        let load = Load { key_bytes: 8, value_bytes, records, keys };
        let rates = Rates::measured(self.layout, 8 + value_bytes);
        let simulation = Simulation::new(self.options(), self.table(), load, rates).unwrap();
        simulation.run(1, &mut |_| {}).unwrap()
    }

    /// The key of a number: a bijection, so that no key repeats unless it is to.
    fn key(&self, number: u64) -> [u8; 8] {
        let number = match self.keys {
            Keys::Unique => number,
            Keys::DrawnFrom(keys) => (number.wrapping_mul(0xd134_2543_de82_ef95) >> 20) % keys,
            Keys::Zipf { keys, exponent_percent } => {
                // What a multiplication draws lies more evenly than chance has it.
                let drawn = (Rng::new(number).next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                let exponent = 1.0 - f64::from(exponent_percent) / 100.0;
                let [least, most] = [0.5, keys as f64 + 0.5].map(|rank: f64| rank.powf(exponent));
                let rank = (least + drawn * (most - least)).powf(1.0 / exponent) - 0.5;
                return ((rank as u64).min(keys - 1) * (u64::MAX / keys)).to_be_bytes();
            }
        };
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
    }

    /// Loads it, with background work that keeps pace, and shows `each` what the load comes to at this many
    /// moments of its second half.
    fn measure(&self, mut each: impl FnMut(u64, &Database, &Table)) {
        let env = Env::memory(11);
        let db = Database::open("/db", self.options().env(env.clone())).unwrap();
        let builder = db.table("t").layout(self.layout).fan_out(self.fan_out);
        let builder = builder.fast_per_slow(self.fast_per_slow).lists_max(self.lists_max);
        let builder =
            self.apart_bytes_min.into_iter().fold(builder, |builder, min| builder.values_apart(min));
        let table = builder.open().unwrap();
        let value = vec![7; self.value_bytes as usize];
        let mut batch = Batch::new();
        for number in 0..self.records {
            batch.put(&table, self.key(number), &value);
            if batch.len() == 1000 {
                db.write(&mut batch, Durability::Os).unwrap();
                env.jobs.step_some(usize::MAX);
            }
            let loaded = number + 1;
            let step = self.records / 2 / MOMENTS;
            if loaded % step == 0 && loaded > self.records / 2 {
                each(loaded, &db, &table);
            }
        }
        db.close().unwrap();
    }
}

/// A sum over all moments of what was measured and of what was predicted.
#[derive(Default)]
struct Pair {
    measured: f64,
    predicted: f64,
}

impl Pair {
    fn add(&mut self, measured: f64, predicted: f64) {
        self.measured += measured;
        self.predicted += predicted;
    }

    #[track_caller]
    fn check(&self, name: &str, case: &Case) {
        if self.predicted == self.measured {
            return;
        }
        let off = self.predicted / self.measured - 1.0;
        println!("{name}: {:+.1} %", off * 100.0);
        assert!(off.abs() <= TOLERANCE, "{name} is {:.1} % off, {case:?}", off * 100.0);
    }
}

/// Lists on the path of a place, on average.
fn lists_per_path(db: &Database, layout: Layout) -> f64 {
    if let Layout::RunSet(_) = layout {
        // No merge is under way, so each run lies everywhere.
        return db.stats().tables[0].levels.iter().map(|level| level.lists_max as f64).sum();
    }
    let nodes = &db.describe().tables[0].nodes;
    let low = |index: usize| u64::from_str_radix(&nodes[index].low, 16).unwrap() as f64;
    let leaves: Vec<usize> = (0..nodes.len()).filter(|&index| nodes[index].children == 0).collect();
    let ends = leaves.iter().skip(1).map(|&next| low(next)).chain([2f64.powi(64)]);
    let mut above = [0; 8];
    let (mut at, mut sum) = (0, 0.0);
    for (&leaf, end) in leaves.iter().zip(ends) {
        nodes[at..=leaf].iter().for_each(|node| above[node.level] = node.files.len());
        at = leaf + 1;
        let lists: usize = above[..=nodes[leaf].level].iter().sum();
        sum += lists as f64 * (end - low(leaf)) / 2f64.powi(64);
    }
    sum
}

/// Pages that a lookup needed, of present keys or of absent ones; from the cache or not.
fn pages_per_get(db: &Database, table: &Table, case: &Case, numbers: impl Iterator<Item = u64>) -> f64 {
    let pages = |stats: &Stats| stats.device_reads + stats.cache_hits;
    let before = pages(&db.stats());
    numbers.for_each(|number| drop(table.get(case.key(number)).unwrap()));
    (pages(&db.stats()) - before) as f64 / GETS as f64
}

fn sum(bytes: &std::collections::BTreeMap<String, u64>) -> f64 {
    bytes.values().sum::<u64>() as f64
}

/// What the last moment's prediction and measurement were.
fn compare(case: Case) -> (Stats, Point) {
    let [mut lists, mut space, mut memory, mut disk, mut kept] = [(); 5].map(|()| Pair::default());
    let [mut present, mut absent] = [(); 2].map(|()| Pair::default());
    let mut last = None;
    case.measure(|records, db, table| {
        let (stats, told) = (db.stats(), case.predict(records).end);
        lists.add(lists_per_path(db, case.layout), told.lists_per_path);
        space.add(stats.space_amplification, told.space_amplification);
        memory.add(stats.memory_bytes_per_record, told.memory_bytes_per_record);
        kept.add(stats.list_records as f64, told.list_records as f64);
        disk.add(stats.disk_bytes as f64, told.disk_bytes as f64);
        if case.keys == Keys::Unique {
            let listed = (0..GETS).map(|number| number * 237_861 % stats.list_records);
            present.add(pages_per_get(db, table, &case, listed), told.device_reads_per_get_present);
            let never = (0..GETS).map(|number| records + number);
            absent.add(pages_per_get(db, table, &case, never), told.device_reads_per_get_absent);
        }
        last = Some((stats, told));
    });
    let (stats, told) = last.unwrap();
    let one = |measured, predicted| Pair { measured, predicted };
    one(stats.write_amplification, told.write_amplification).check("write amplification", &case);
    one(stats.log_bytes as f64, told.log_bytes as f64).check("log bytes", &case);
    one(sum(&stats.list_bytes_written), sum(&told.list_bytes_written)).check("list bytes", &case);
    one(sum(&stats.list_bytes_read), sum(&told.list_bytes_read)).check("bytes read by jobs", &case);
    kept.check("records in lists", &case);
    // What waits in memory lies in some key ranges and not in others.
    if case.keys == Keys::Unique && case.layout != Layout::range_merge() {
        lists.check("lists on a path", &case);
        space.check("space amplification", &case);
        memory.check("memory a record", &case);
        disk.check("bytes on disk", &case);
        present.check("pages for a present key", &case);
        // Few lookups of absent keys need a page at all, so that chance has its share.
        let off = (absent.predicted - absent.measured).abs() / MOMENTS as f64;
        assert!(
            off <= 0.01 + TOLERANCE * absent.measured / MOMENTS as f64,
            "pages for an absent key are {off} off, {case:?}"
        );
    }
    (stats, told)
}

#[test]
fn sixteen_byte_records_cost_what_is_predicted() {
    let (stats, told) = compare(Case::usual());
    assert_eq!((stats.tables[0].levels.len(), told.levels.len()), (2, 2));
}

#[test]
fn sixty_four_byte_records_cost_what_is_predicted() {
    compare(Case { value_bytes: 56, records: 1_000_000, ..Case::usual() });
}

#[test]
fn filters_that_do_not_fit_cost_what_is_predicted() {
    let (_, told) = compare(Case { memory_bytes: 8 << 20, ..Case::usual() });
    assert!(2 * told.filter_memory_bytes > 3 * told.filter_memory_bytes_max);
}

#[test]
fn slow_splits_cost_what_is_predicted() {
    compare(Case { fast_per_slow: 0, ..Case::usual() });
}

#[test]
fn merges_for_few_lists_cost_what_is_predicted() {
    compare(Case { lists_max: 8, fast_per_slow: 2, ..Case::usual() });
}

#[test]
fn a_wide_tree_costs_what_is_predicted() {
    compare(Case { fan_out: 256, lists_max: 40, ..Case::usual() });
}

#[test]
fn key_order_costs_what_is_predicted() {
    compare(Case { layout: Layout::wb_tree_ordered(), ..Case::usual() });
}

/// By lists and by trees, whose levels count with the values that they point to.
#[test]
fn values_apart_cost_what_is_predicted() {
    for layout in ["wb-tree", "leveling:t=4", "jungle"] {
        let layout: Layout = layout.parse().unwrap();
        let case = Case { layout, value_bytes: 240, records: 400_000, ..Case::usual() };
        let measure = |case: Case| {
            let mut last = None;
            case.measure(|records, db, _| last = Some((db.stats(), case.predict(records).end)));
            last.unwrap()
        };
        let (with_keys, _) = measure(case);
        let case = Case { apart_bytes_min: Some(100), ..case };
        let (stats, told) = measure(case);
        let one = |measured, predicted| Pair { measured, predicted };
        one(stats.log_bytes as f64, told.log_bytes as f64).check("log bytes", &case);
        one(sum(&stats.list_bytes_written), sum(&told.list_bytes_written)).check("list bytes", &case);
        one(sum(&stats.list_bytes_read), sum(&told.list_bytes_read)).check("bytes read by jobs", &case);
        let (files, disk) = (stats.values.file_bytes as f64, stats.disk_bytes as f64);
        one(files, told.value_file_bytes as f64).check("bytes of value files", &case);
        one(disk, told.disk_bytes as f64).check("bytes on disk", &case);
        assert!(stats.write_amplification * 1.5 < with_keys.write_amplification, "{layout}");
    }
}

/// The planner told value files of a table that has none: no segment stays for so little.
#[test]
fn values_that_are_less_than_half_of_the_log_stay_with_their_keys() {
    let case = Case { records: 60_000, apart_bytes_min: Some(8), ..Case::usual() };
    for (value_bytes, stays) in [(9, true), (40, false)] {
        let case = Case { value_bytes, ..case };
        let mut last = None;
        case.measure(|records, db, _| last = Some((db.stats(), case.predict(records).end)));
        let (stats, told) = last.unwrap();
        let files = [stats.values.file_bytes, told.value_file_bytes];
        assert_eq!(files.map(|bytes| bytes == 0), [stays; 2], "{value_bytes}: {files:?}");
        let load = Load { key_bytes: 8, value_bytes, records: 1, keys: Keys::Unique };
        assert_eq!(load.listed_bytes(&case.table()), 8 + if stays { value_bytes } else { 16 });
    }
}

#[test]
fn updates_cost_what_is_predicted() {
    compare(Case { keys: Keys::DrawnFrom(500_000), ..Case::usual() });
}

#[test]
fn runs_cost_what_is_predicted() {
    for layout in [
        "no-merge",
        "tiering:t=4",
        "geometric:r=3",
        "geometric:p=2",
        "range-merge",
        "leveling:t=4",
        "leveling:t=10",
    ] {
        let layout: Layout = layout.parse().unwrap();
        compare(Case { layout, records: 1_500_000, ..Case::usual() });
    }
    let layout = Layout::leveling(4);
    compare(Case { layout, records: 1_500_000, keys: Keys::DrawnFrom(300_000), ..Case::usual() });
}

/// Its memory is what the user says, and it moves what follows from that: N, and of what it has by then as much for each
/// time that twice the average waits for a range.
#[test]
fn rangemerge_moves_what_follows_from_the_memory_that_it_is_given() {
    for percent in [25, 50] {
        let value_bytes = 92;
        let records = (96 << 20) / (8 + value_bytes);
        let layout = Layout::range_merge();
        let case = Case { layout, records, value_bytes, resident_percent: Some(percent), ..Case::usual() };
        let (mut last, mut most) = (None, 0);
        case.measure(|records, db, _| {
            most = most.max(db.stats().memory.resident_records);
            last = Some((db.stats(), case.predict(records).end));
        });
        let (stats, told) = last.unwrap();
        let room = case.memory_bytes * u64::from(percent) / 100;
        assert!((room / 10 * 7..room / 10 * 11).contains(&most), "{percent}: {most} bytes of {room}");
        let written = (sum(&stats.list_bytes_written), sum(&told.list_bytes_written));
        let read = (sum(&stats.list_bytes_read), sum(&told.list_bytes_read));
        let kept = room as f64 - case.options().buffer_bytes(layout) as f64 / 2.0;
        let on_disk = (96 << 20) as f64 - kept;
        let analysed = on_disk + on_disk * on_disk / (2.0 * kept);
        let off = |one: f64, other: f64| (one / other - 1.0).abs();
        let moved = (written.0 + read.0, written.1 + read.1);
        assert!(off(moved.1, moved.0) < 0.1, "{percent}: {moved:?}, planned");
        assert!(off(analysed, moved.0) < 0.1, "{percent}: {moved:?}, {analysed} by the analysis");
    }
}

/// Section III.B of the Rangemerge paper: immediate merge moves N^2/M where no merge moves N.
#[test]
fn immediate_merge_and_rangemerge_move_what_the_analysis_says() {
    let moved = |layout: &str| {
        let case = Case { layout: layout.parse().unwrap(), records: 1_000_000, ..Case::usual() };
        let mut last = None;
        case.measure(|_, db, _| last = Some(db.stats()));
        let stats = last.unwrap();
        let bytes = sum(&stats.list_bytes_written) + sum(&stats.list_bytes_read);
        (bytes, stats.jobs_done["flush"] as f64)
    };
    let ((all, flushes), (once, _)) = (moved("immediate"), moved("no-merge"));
    assert!(flushes > 12.0);
    assert!((all / once / flushes - 1.0).abs() < 0.1, "{} times for {flushes} write buffers", all / once);
    // Its memory is two write buffers, one of which is kept free.
    let (waiting, _) = moved("range-merge");
    assert!((0.25..0.5).contains(&(waiting / all)), "{} of immediate merge", waiting / all);
}
