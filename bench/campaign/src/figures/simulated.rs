//! What the planner without data says of a load that a part measures too: how much it would move, and how much
//! would lie on disk.

use std::process::Command;

use serde_json::{Value, json};

use super::bench::{MEMORY_BYTES_MIN, RECORDS_MIN, own_program, scaled};

/// A load, at scale 1.
pub(super) struct Forecast {
    /// What its run is called.
    pub(super) workload: String,
    pub(super) layout: &'static str,
    pub(super) key_bytes: u64,
    pub(super) record_bytes: u64,
    pub(super) records: u64,
    /// Draws keys from so many; else each comes once.
    pub(super) distinct: Option<u64>,
    pub(super) memory_bytes: u64,
    /// How long a write buffer is, by the memory; else the engine's choice.
    pub(super) write_buffer_share: Option<f64>,
    /// Whether writers are as fast as they are let; else each write buffer comes once all is done.
    pub(super) is_saturated: bool,
}

impl Forecast {
    /// A line of results: bytes written to the log, and to lists and read from them by jobs; and bytes on disk at the end.
    pub(super) fn measure(&self, scale: f64) -> Result<Value, String> {
        let memory_bytes = scaled(self.memory_bytes, scale, MEMORY_BYTES_MIN);
        let mut words = format!(
            "simulate --layout {} --key {} --record {} --records {} --memory {} --json",
            self.layout,
            self.key_bytes,
            self.record_bytes,
            scaled(self.records, scale, RECORDS_MIN),
            memory_bytes,
        );
        let records = scaled(self.distinct.unwrap_or(self.records), scale, RECORDS_MIN);
        if self.distinct.is_some() {
            words.push_str(&format!(" --distinct {records}"));
        }
        if self.is_saturated {
            words.push_str(" --saturated");
        }
        if let Some(share) = self.write_buffer_share {
            words.push_str(&format!(" --write-buffer {}", (memory_bytes as f64 * share) as u64));
        }
        let told = |reason: &dyn std::fmt::Display| format!("forebay {words}: {reason}");
        let output =
            Command::new(own_program()?).args(words.split(' ')).output().map_err(|error| told(&error))?;
        let forecast: Value = serde_json::from_slice(&output.stdout).map_err(|error| told(&error))?;
        let sum = |name: &str| {
            forecast[name].as_object().map(|causes| causes.values().filter_map(Value::as_u64).sum::<u64>())
        };
        let (written, read) = (sum("list_bytes_written"), sum("list_bytes_read"));
        Ok(json!({
            "type": "simulated", "workload": self.workload, "command": format!("forebay {words}"),
            "log_bytes": forecast["log_bytes"], "table_bytes_written": written, "table_bytes_read": read,
            "disk_bytes": forecast["disk_bytes"], "live_bytes": records * self.record_bytes,
        }))
    }
}
