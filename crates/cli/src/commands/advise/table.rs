//! Advice for a person.

use std::fmt;

use forebay::advise::{Advice, Switch, Workload};

use forebay_units::sizes::human;

/// The one advised, those that come next, and what is to be said of a switch.
pub(super) struct Ranking<'a> {
    pub(super) workload: &'a Workload,
    pub(super) advice: &'a [Advice],
    pub(super) switch: Option<&'a Switch>,
}

const HEAD: [&str; 9] =
    ["machine", "write us", "get us", "range us", "written", "reads/get", "disk", "space", "wait"];

impl fmt::Display for Ranking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(best) = self.advice.first() else { return Ok(()) };
        writeln!(f, "{}\n", name(best))?;
        write!(f, "{:<30}", "layout")?;
        HEAD.iter().try_for_each(|title| write!(f, "{title:>11}"))?;
        writeln!(f)?;
        self.advice.iter().try_for_each(|advice| row(f, advice, self.workload))?;
        self.beyond(f, best)?;
        if let Some(switch) = self.switch {
            weighed(f, switch)?;
        }
        writeln!(
            f,
            "\nmachine: of its time that the workload takes. written: by bytes given, log included. disk, space,"
        )?;
        writeln!(f, "wait: at most. Times are those of the processor by its cores, and of the device.")?;
        writeln!(f, "Each write, get or range takes them, however many there are; - where there are none.")
    }
}

impl Ranking<'_> {
    fn beyond(&self, f: &mut fmt::Formatter<'_>, best: &Advice) -> fmt::Result {
        if best.prices.busy_share > 1.0 {
            let times = best.prices.busy_share;
            writeln!(
                f,
                "\nThis is {times:.1} times what the machine can do: give it more cores, memory or disks."
            )?;
        }
        let broken: Vec<&Advice> = self.advice.iter().filter(|advice| !advice.breaks.is_empty()).collect();
        if !broken.is_empty() {
            writeln!(f)?;
        }
        broken.iter().try_for_each(|advice| {
            writeln!(f, "{} breaks {}", name(advice), super::by_options(&advice.breaks.join(", ")))
        })
    }
}

fn name(advice: &Advice) -> String {
    match advice.values_apart {
        Some(bytes) => format!("{}, values apart from {bytes} B", advice.layout),
        None => advice.layout.to_string(),
    }
}

fn row(f: &mut fmt::Formatter<'_>, advice: &Advice, workload: &Workload) -> fmt::Result {
    let prices = &advice.prices;
    let apart = if advice.values_apart.is_some() { ", apart" } else { "" };
    let of = |rate: f64, price: String| if rate > 0.0 { price } else { "-".into() };
    let (writes, gets) = (workload.writes_per_second, workload.gets_per_second);
    let write = of(writes, format!("{:.2}", prices.write_microseconds));
    let get = of(gets, format!("{:.1}", prices.get_microseconds));
    let range = of(workload.ranges_per_second, format!("{:.1}", prices.range_microseconds));
    let written = of(writes, format!("{:.2}", prices.write_amplification));
    let reads = of(gets, format!("{:.2}", prices.device_reads_per_get));
    write!(f, "{:<30}{:>10.2}%", format!("{}{apart}", advice.layout), prices.busy_share * 100.0)?;
    write!(f, "{write:>11}{get:>11}{range:>11}{written:>11}{reads:>11}")?;
    write!(f, "{:>11}{:>11.2}", human(prices.disk_bytes_peak), prices.space_amplification_peak)?;
    writeln!(f, "{:>11}", duration(prices.longest_wait_seconds))
}

fn weighed(f: &mut fmt::Formatter<'_>, switch: &Switch) -> fmt::Result {
    let (now, then) = (name(&switch.now), name(&switch.then));
    let (before, after) = (switch.now.prices.busy_share * 100.0, switch.then.prices.busy_share * 100.0);
    match switch.paid_back_seconds {
        _ if now == then => writeln!(f, "\nThe table has {now}, as advised."),
        None => writeln!(f, "\nThe table has {now}, which costs {before:.2} %: a switch saves nothing."),
        Some(seconds) => {
            writeln!(f, "\nThe table has {now}, which costs {before:.2} %, and {then} {after:.2} %.")?;
            let (cost, back) = (duration(switch.seconds), duration(seconds));
            writeln!(f, "A switch takes {cost} of the machine, which is paid back after {back}.")
        }
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.0995 => format!("{:.1} ms", seconds * 1000.0),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("{:.1} min", seconds / 60.0),
        seconds if seconds < 172_800.0 => format!("{:.1} h", seconds / 3600.0),
        seconds => format!("{:.1} days", seconds / 86_400.0),
    }
}
