//! The demonstration's last page.

use std::fmt;

use serde_json::Value;

/// A table and what loading it came to.
pub(super) struct Loaded {
    pub(super) table: &'static str,
    pub(super) figures: Value,
}

/// What looking up came to.
pub(super) struct Looked {
    pub(super) present: Value,
    pub(super) absent: Value,
}

/// Everything that is told.
pub(super) struct Report {
    pub(super) loads: [Loaded; 2],
    pub(super) lookups: [Looked; 2],
    pub(super) verified: Value,
    pub(super) stats: Value,
    pub(super) disk_bytes: u64,
}

impl Report {
    fn of_loads(&self, show: impl Fn(&Value) -> String) -> [String; 2] {
        self.loads.each_ref().map(|load| show(&load.figures))
    }

    fn of_lookups(&self, show: impl Fn(&Looked) -> String) -> [String; 2] {
        self.lookups.each_ref().map(show)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = "-".repeat(64);
        row(f, "", self.loads.each_ref().map(|load| load.table.to_string()))?;
        writeln!(f, "{rule}")?;
        row(f, "records", self.of_loads(|load| whole(&load["records"])))?;
        row(f, "input", self.of_loads(|load| megabytes(load["input_bytes"].as_u64().unwrap_or(0))))?;
        row(f, "records loaded a second", self.of_loads(|load| whole(&load["records_per_second"])))?;
        row(f, "write amplification", self.of_loads(|load| number(&load["write_amplification"], 2)))?;
        row(f, "stalled, s", self.of_loads(|load| number(&load["stall_seconds"], 2)))?;
        row(f, "batch latency p50, us", self.of_loads(|load| number(&load["batch_latency_us"]["p50"], 0)))?;
        row(
            f,
            "batch latency p99.9, us",
            self.of_loads(|load| number(&load["batch_latency_us"]["p999"], 0)),
        )?;
        row(f, "gets a second", self.of_lookups(|looked| whole(&looked.present["gets_per_second"])))?;
        let reads = |value: &Value| number(&value["device_reads_per_get"], 3);
        row(f, "device reads a get, present", self.of_lookups(|looked| reads(&looked.present)))?;
        row(f, "device reads a get, absent", self.of_lookups(|looked| reads(&looked.absent)))?;
        writeln!(f, "{rule}")?;
        let problems = self.verified["problems"].as_array().map_or(0, Vec::len);
        writeln!(
            f,
            "verified: {} files, {}, every checksum; {} problems",
            whole(&self.verified["files"]),
            megabytes(self.verified["bytes"].as_u64().unwrap_or(0)),
            problems,
        )?;
        writeln!(
            f,
            "on disk: {}, space amplification {}\n",
            megabytes(self.disk_bytes),
            number(&self.stats["space_amplification"], 2),
        )
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, [first, second]: [String; 2]) -> fmt::Result {
    writeln!(f, "{name:<30}{first:>17}{second:>17}")
}

/// Bytes in millions.
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// A figure with this many decimals.
pub(super) fn number(value: &Value, decimals: usize) -> String {
    value.as_f64().map_or("-".into(), |number| format!("{number:.decimals$}"))
}

/// A figure without decimals.
pub(super) fn whole(value: &Value) -> String {
    value.as_f64().map_or("-".into(), |number| thousands(number as u64))
}

/// A number with a comma between thousands.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_is_a_table() {
        let load = json!({ "records": 1234567, "input_bytes": 5_000_000, "records_per_second": 3e6,
            "write_amplification": 2.5, "batch_latency_us": { "p50": 90.4, "p999": 1000.0 } });
        let get = json!({ "gets_per_second": 1e5, "device_reads_per_get": 1.0 });
        let report = Report {
            loads: ["by-hash", "by-key"].map(|table| Loaded { table, figures: load.clone() }),
            lookups: [0, 1].map(|_| Looked { present: get.clone(), absent: json!({}) }),
            verified: json!({ "files": 3, "bytes": 1_500_000, "problems": [] }),
            stats: json!({ "space_amplification": 1.25 }),
            disk_bytes: 2_000_000,
        };
        let text = report.to_string();
        for expected in [
            "                                        by-hash           by-key\n",
            "records                               1,234,567        1,234,567\n",
            "write amplification                        2.50             2.50\n",
            "stalled, s                                    -                -\n",
            "device reads a get, absent                    -                -\n",
            "verified: 3 files, 1.5 MB, every checksum; 0 problems\n",
            "on disk: 2.0 MB, space amplification 1.25\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
    }
}
