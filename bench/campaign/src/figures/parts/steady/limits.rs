//! What the machine would allow: each rate as a share of what the processor, or the device, has room for.

use super::sizes::{Contender, SIZES};
use crate::figures::results::{Results, Spread};
use crate::figures::table::{Table, cell, short};

/// What the device does a second, measured before and behind the loads.
pub(super) struct Device {
    pub(super) write_bytes: Spread,
    synced_write_bytes: Spread,
    syncs: Spread,
    pub(super) reads_alone: Spread,
    reads_together: Spread,
}

impl Device {
    pub(super) fn of(results: &Results) -> Option<Self> {
        let lines = || results.others.iter().filter(|line| line["type"] == "device");
        let spread = |name: &str| Spread::of(lines().filter_map(|line| line[name].as_f64()).collect());
        Some(Self {
            write_bytes: spread("write_bytes")?,
            synced_write_bytes: spread("synced_write_bytes")?,
            syncs: spread("syncs")?,
            reads_alone: spread("reads_alone")?,
            reads_together: spread("reads_together")?,
        })
    }

    pub(super) fn words(&self) -> String {
        let mega = |spread: &Spread| range(spread, 1e6);
        format!(
            "Around the page cache the device takes {} MB a second in writes of 1 MiB, {} with a sync behind each, and {} \
             writes of 4 KiB with a sync each. It reads {} pages of 4 KiB a second at random places by one reader, and \
             {} by 32. (Before and behind the loads; on a machine that others share these move.)",
            mega(&self.write_bytes),
            mega(&self.synced_write_bytes),
            range(&self.syncs, 1.0),
            range(&self.reads_alone, 1.0),
            range(&self.reads_together, 1.0),
        )
    }
}

fn range(spread: &Spread, unit: f64) -> String {
    match spread.max > 1.02 * spread.min {
        true => format!("{} to {}", short(spread.min / unit), short(spread.max / unit)),
        false => short(spread.median / unit),
    }
}

/// What bounds a load's last half, by what it took of both.
pub(super) fn table(results: &Results) -> String {
    let device = Device::of(results);
    let mut table = Table::new(&[
        "load, engine",
        "records/s",
        "CPU ns a record",
        "written B a record",
        "processor allows, records/s",
        "device allows, records/s",
        "share of the lower",
        "which is",
        "gets/s, no rest",
        "reads allow, gets/s",
        "share",
    ]);
    for size in &SIZES {
        for one in size.contenders() {
            row(&mut table, size.label, &one, results, device.as_ref());
        }
    }
    table.finish()
}

fn row(table: &mut Table, label: &str, one: &Contender, results: &Results, device: Option<&Device>) {
    let Some(half) = one.curve(results).and_then(|curve| curve.last_half(curve.end().records)) else {
        return;
    };
    let processor = cores(results).map(|cores| cores * 1e9 / half.cpu_nanoseconds());
    let writes = device.map(|device| device.write_bytes.median / half.record_write_bytes());
    let lower = processor.into_iter().chain(writes).filter(|rate| rate.is_finite()).min_by(f64::total_cmp);
    let which = match lower {
        Some(rate) if Some(rate) == processor => "the processor's",
        Some(_) => "the device's",
        None => "-",
    };
    let gets = one.of(results, "get", "/operations_per_second");
    // Not the device's own count, which has the reads of background work.
    let reads = one.of(results, "get", "/device_reads_per_get").filter(|reads| *reads > 0.0);
    let allowed = device.zip(reads).map(|(device, reads)| device.reads_alone.median / reads);
    table.row([
        format!("{label}, {}", one.label),
        short(half.rate()),
        short(half.cpu_nanoseconds()),
        short(half.record_write_bytes()),
        cell(processor),
        cell(writes),
        percent(lower.map(|lower| half.rate() / lower)),
        which.into(),
        cell(gets),
        cell(allowed),
        percent(gets.zip(allowed).map(|(gets, allowed)| gets / allowed)),
    ]);
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{} %", (share * 100.0).round()))
}

/// Of the machine that the results are of.
pub(super) fn cores(results: &Results) -> Option<f64> {
    results
        .setups
        .values()
        .flat_map(|setups| setups.values())
        .find_map(|setup| setup["machine"]["cores"].as_f64())
}
