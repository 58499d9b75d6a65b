//! The last words of a load.

use forebay::Stats;
use serde_json::json;

use super::pump::Tally;
use crate::args::Common;
use crate::failure::Failure;
use crate::form::Form;
use crate::output::{Output, counted, thousands};
use forebay_units::sizes;

/// Of less a person is not told how often it was written.
const TOLD_BYTES_MIN: u64 = 1 << 20;

/// How far a load came that failed.
pub(super) fn acknowledged(form: Form, records: u64) -> Result<(), Failure> {
    if form == Form::Json {
        let mut output = Output::new(form);
        output.json("progress", &json!({ "acknowledged": records }))?;
        output.flush()?;
    }
    Ok(())
}

/// What a load came to that a signal stops, where that is known.
pub(super) fn stopped(form: Form, signal: i32, records: Option<u64>) {
    let loaded = records.map_or_else(
        || "what is loaded by now is not known: look before you load again".into(),
        |records| format!("loaded before it: {}", counted(records, "record")),
    );
    let message = format!("stopped by signal {signal} ({loaded})");
    match form {
        Form::Text => tell!("forebay: {message}"),
        Form::Json => {
            let object = json!({ "type": "error", "message": message, "exit_code": 128 + signal });
            tell!("{object}");
        }
    }
}

/// What a load came to that did not fail.
pub(super) fn print(
    common: &Common,
    tally: &Tally,
    stats: &Stats,
    close_seconds: f64,
) -> Result<(), Failure> {
    let form = common.form();
    if form == Form::Text && common.is_quiet() {
        return Ok(());
    }
    let mut output = Output::new(form);
    // What is ingested is not accepted record by record, so that it is not among the engine's own.
    let lists = stats.list_bytes_written.values().sum::<u64>();
    let written = (lists + stats.log_bytes + stats.manifest_bytes) as f64;
    let write_amplification = if tally.record_bytes > 0 { written / tally.record_bytes as f64 } else { 0.0 };
    let rate = tally.records as f64 / tally.seconds.max(1e-9);
    let microseconds = |quantile: f64| tally.latency.value_at_quantile(quantile) as f64 / 1000.0;
    let max = tally.latency.max() as f64 / 1000.0;
    match form {
        Form::Json => output.json(
            "summary",
            &json!({
                "acknowledged": tally.records,
                "records": tally.records,
                "skipped": tally.skipped,
                "seconds": tally.seconds,
                "records_per_second": rate,
                "input_bytes": tally.input_bytes,
                "write_amplification": write_amplification,
                "stall_seconds": stats.stall_seconds,
                "peak_memory_bytes": forebay_env::process::peak_memory_bytes(),
                "batch_latency_us": {
                    "p50": microseconds(0.5),
                    "p99": microseconds(0.99),
                    "p999": microseconds(0.999),
                    "max": max,
                },
                "close_seconds": close_seconds,
            }),
        )?,
        Form::Text => {
            output.line(format_args!(
                "{}, {} of input in {:.2} s: {} records/s",
                counted(tally.records, "record"),
                sizes::human(tally.input_bytes),
                tally.seconds,
                thousands(rate as u64),
            ))?;
            // Of little it says nothing of a load: it is what a manifest and files take however little is in them.
            let amplification = match tally.record_bytes < TOLD_BYTES_MIN {
                true => String::new(),
                false => format!("write amplification {write_amplification:.2}, "),
            };
            output.line(format_args!(
                "{amplification}stalled {:.2} s, batch latency p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us, \
                 max {:.0} us",
                stats.stall_seconds,
                microseconds(0.5),
                microseconds(0.99),
                microseconds(0.999),
                max,
            ))?;
            if tally.skipped > 0 {
                output.line(format_args!("{} skipped", counted(tally.skipped, "malformed record")))?;
            }
        }
    }
    output.flush()
}
