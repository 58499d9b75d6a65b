//! Open loops at a share of the rate that each layout keeps up.

use super::curve::Curve;
use crate::figures::organisations;
use crate::figures::part::{FOREBAY, LEVELED, Length, Part, Run, Shown, UNIVERSAL, laid_out_name};
use crate::figures::plot::{self, Mark};
use crate::figures::results::{Phase, Results};
use crate::figures::table::{Table, cell, metric, short};

pub(in crate::figures) const PART: Part = Part {
    name: "steady-pace",
    title: "The steady state: evenness",
    text: include_str!("pace.txt"),
    runs,
    show,
};

const PACE: &str = "figures-steady-pace";
const LOOP: &str = "steady-loop-0.8";
const SHARE: f64 = 0.8;
/// 320 MB.
const RECORDS: u64 = 5_000_000;
/// Of the workload's open loop.
const SECONDS: f64 = 30.0;
/// Below it a rate was not held.
const HELD: f64 = 0.98;
/// Keeps every version that ever was: any length of time would fill any disk.
const ENDLESS: &str = "no-merge";

/// How it is called, its engine and its workload.
type Contender = (String, &'static str, String);

fn layouts() -> impl Iterator<Item = &'static str> {
    organisations::ALL.into_iter().filter(|layout| *layout != ENDLESS)
}

fn contenders() -> Vec<Contender> {
    let own = (String::from("wb-tree"), FOREBAY, PACE.to_string());
    let layouts = layouts().map(|layout| (layout.to_string(), FOREBAY, laid_out_name(PACE, layout)));
    let rivals = [LEVELED, UNIVERSAL].map(|engine| (engine.to_string(), engine, PACE.to_string()));
    std::iter::once(own).chain(layouts).chain(rivals).collect()
}

fn runs() -> Vec<Run> {
    let run = Run::new(include_str!("../../workloads/figures-steady-pace.toml"), RECORDS);
    let run = run.rounds(1).length(Length::Minutes { seconds: SECONDS });
    let mut runs = vec![run.clone().engines(&[FOREBAY])];
    runs.extend(layouts().map(|layout| run.clone().organised(layout).in_order()));
    runs.extend([run.clone().engines(&[LEVELED]), run.engines(&[UNIVERSAL])]);
    runs
}

fn show(results: &Results) -> Result<Shown, String> {
    let mut shown = Shown::default();
    shown.place("table", table(results));
    shown.place("found", found(results));
    let all = contenders();
    let names: Vec<&str> = all.iter().map(|one| one.0.as_str()).collect();
    let waits = |pointer: &'static str, name: &str| {
        let wait = |(_, engine, workload): &Contender| {
            let us = results.median(engine, Phase(workload, LOOP), pointer)?;
            Some(Mark::from(us / 1e3))
        };
        (name.to_string(), all.iter().map(wait).collect::<Vec<_>>())
    };
    let series = [waits("/latency_us/p99_9", "p99.9"), waits("/latency_us/max", "longest")];
    shown.plot("steady-pace", plot::bars("milliseconds that a batch waited", &names, &series)?);
    shown.brief = brief(results);
    Ok(shown)
}

/// Told only where a rival keeps up more.
fn brief(results: &Results) -> Option<String> {
    let all = contenders();
    let own = steady(results, all.first()?)?;
    let rivals = all.iter().filter(|one| one.1 != FOREBAY);
    let rivals = rivals.filter_map(|one| Some((steady(results, one)?, one.0.as_str())));
    let (best, name) = rivals.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (own < best).then(|| {
        format!(
            "**Nor for steady overwrites** of 64 B at random: `wb-tree` keeps up {} a second, {} times {name}.",
            metric(own),
            short(own / best)
        )
    })
}

/// Records a second over the last half of the overwrites.
fn steady(results: &Results, (_, engine, workload): &Contender) -> Option<f64> {
    let curve = Curve::of(results.last(engine, Phase(workload, "overwrite"))?)?;
    Some(curve.last_half(curve.end().records)?.rate())
}

/// Which share of the asked rate was held.
fn held(results: &Results, one: &Contender) -> Option<f64> {
    Some(results.rate(one.1, Phase(&one.2, LOOP))? / (SHARE * steady(results, one)?))
}

fn found(results: &Results) -> String {
    let all = contenders();
    let measured = || all.iter().filter_map(|one| Some((one, held(results, one)?)));
    let late: Vec<String> = measured()
        .filter(|(_, held)| *held < HELD)
        .map(|(one, held)| format!("{} ({} of it)", one.0, short(held)))
        .collect();
    let wait = |one: &Contender| Some(results.median(one.1, Phase(&one.2, LOOP), "/latency_us/max")? / 1e3);
    let mut waits: Vec<(f64, &str)> =
        all.iter().filter_map(|one| Some((wait(one)?, one.0.as_str()))).collect();
    waits.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (Some(least), Some(most)) = (waits.first(), waits.last()) else {
        return "Nothing was measured.".into();
    };
    let late = match late.is_empty() {
        true => "All held the rate".to_string(),
        false => format!("Not held was the rate by {}", late.join(", ")),
    };
    format!(
        "{late}. The longest that a batch waited is from {} ms ({}) to {} ms ({}).",
        short(least.0),
        least.1,
        short(most.0),
        most.1
    )
}

fn table(results: &Results) -> String {
    let mut table = Table::new(&[
        "layout, or engine",
        "seconds",
        "steady, records/s",
        "records/s asked for",
        "held",
        "p50, us",
        "p99, us",
        "p99.9, us",
        "longest, ms",
        "longest gap, ms",
        "variation by 100 ms",
    ]);
    for one in contenders() {
        let of = |pointer: &str| results.median(one.1, Phase(&one.2, LOOP), pointer);
        if of("/operations").is_none() {
            continue;
        }
        let steady = steady(results, &one);
        table.row([
            one.0.clone(),
            cell(of("/seconds")),
            cell(steady),
            cell(steady.map(|rate| SHARE * rate)),
            cell(held(results, &one)),
            cell(of("/latency_us/p50")),
            cell(of("/latency_us/p99")),
            cell(of("/latency_us/p99_9")),
            cell(of("/latency_us/max").map(|us| us / 1e3)),
            cell(of("/longest_gap_ms")),
            cell(of("/throughput_cv")),
        ]);
    }
    table.finish()
}
