//! Plans for more cores, as they are shown.

use super::limits::{Device, cores, percent};
use super::plan::{CORES, Plan, RESOURCES, Resource, Writing};
use super::workers::{PLANNED, SIZES, Size};
use crate::figures::plot::{self, Axis, Line};
use crate::figures::results::Results;
use crate::figures::table::{Table, cell, metric, short};

/// A size's plan: what each resource allows on so many cores.
pub(super) fn rows(size: &Size, plan: &Plan) -> String {
    let head = format!("{}, records/s on", size.label);
    let mut columns = vec![head.as_str()];
    columns.extend(RESOURCES.map(Resource::name));
    columns.extend(["plan, one writer", "limit", "plan, several writers", "limit"]);
    let mut table = Table::new(&columns);
    for cores in CORES {
        let mut cells = vec![format!("{cores} cores")];
        cells.extend(RESOURCES.map(|resource| short(plan.rate(resource, cores))));
        for writing in [Writing::Alone, Writing::Beside] {
            let (rate, limit) = plan.least(writing, cores);
            cells.extend([short(rate), limit.name().into()]);
        }
        table.row(cells);
    }
    table.finish()
}

/// Where limits begin, and how the plan for this machine compares with what was measured.
pub(super) fn words(size: &Size, plan: &Plan, results: &Results) -> String {
    let from = |plan: &Plan, resource: Resource| match plan.limits_from(resource) {
        Some(cores) => format!("from {cores} cores on"),
        None => "at no number of cores".into(),
    };
    let simulated = size.simulated(results).map_or_else(String::new, |(written, read)| {
        format!(" ({} by the bytes of `simulate`)", from(&plan.moving(written + read), Resource::Device))
    });
    let here = cores(results).zip(size.rates(results, PLANNED)).map_or_else(String::new, |(cores, rates)| {
        let (rate, _) = plan.least(Writing::Alone, cores as u32);
        format!(
            " For the {} cores of this machine, with one writer, it says {}; measured were {}, {} of that.",
            short(cores),
            metric(rate),
            metric(rates.median),
            percent(Some(rates.median / rate)),
        )
    });
    format!(
        "- {}: the sorter, one thread, allows less than all cores do {}, the flusher, one thread, {}, one writer {}, the \
         device {}{simulated}.{here}",
        size.label,
        from(plan, Resource::Sorter),
        from(plan, Resource::Flusher),
        from(plan, Resource::OneWriter),
        from(plan, Resource::Device),
    )
}

pub(super) fn simulated(results: &Results, device: Option<&Device>) -> String {
    let mut table = Table::new(&[
        "bytes a record, last half",
        "written",
        "by `simulate`",
        "read",
        "by `simulate`",
        "device allows, records/s",
        "by `simulate`",
    ]);
    for size in &SIZES {
        let Some(half) = size.half_of(results, PLANNED) else { continue };
        let told = size.simulated(results);
        let plan = Plan::of(&half, device.map(|device| device.write_bytes.median));
        let allows = |plan: Plan| plan.rate(Resource::Device, CORES[0]);
        let planned = plan.zip(told).map(|(plan, (written, read))| plan.moving(written + read));
        table.row([
            size.label.into(),
            short(half.record_write_bytes()),
            cell(told.map(|told| told.0)),
            short(half.record_read_bytes()),
            cell(told.map(|told| told.1)),
            cell(plan.map(allows)),
            cell(planned.map(allows)),
        ]);
    }
    table.finish()
}

/// What each resource allows over the number of cores.
pub(super) fn plot(plan: Option<&Plan>) -> Result<String, String> {
    let line = |plan: &Plan, resource: Resource| {
        let points = CORES.map(|cores| (f64::from(cores), plan.rate(resource, cores)));
        let points = points.into_iter().filter(|(_, rate)| rate.is_finite()).collect();
        Line { name: resource.name().into(), points }
    };
    let lines: Vec<Line> =
        plan.into_iter().flat_map(|plan| RESOURCES.map(|resource| line(plan, resource))).collect();
    plot::lines([Axis::log("cores"), Axis::log("records a second, calculated")], &lines)
}
