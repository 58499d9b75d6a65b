//! Where workloads come from: those that are compiled in, and files of the user.

use std::path::Path;

use super::Workload;

macro_rules! embed {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../workloads/", $name, ".toml")))),*]
    };
}

const EMBEDDED: &[(&str, &str)] = embed![
    "load-16",
    "load-64",
    "load-256",
    "load-1024",
    "overwrite-16",
    "overwrite-64",
    "overwrite-256",
    "overwrite-1024",
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "ycsb-a-small",
    "ycsb-b-small",
    "ycsb-c-small",
    "ycsb-d-small",
    "ycsb-e-small",
    "ycsb-f-small",
    "get-present",
    "get-absent",
    "get-half",
    "range",
    "queue",
    "reopen",
    "open-loop",
    "count",
    "hot-counter",
    "transactions",
];

/// Why there is no workload.
#[derive(Debug)]
pub(crate) enum WorkloadError {
    /// The name is nobody's.
    Unknown(String),
    /// The file cannot be read, or makes no sense.
    Bad(String),
}

/// All workloads that are compiled in.
pub(crate) fn embedded() -> Result<Vec<Workload>, WorkloadError> {
    EMBEDDED.iter().map(|(name, text)| parse(&format!("{name}.toml"), text)).collect()
}

/// The embedded workload of that name, or the one in that file.
pub(crate) fn find(name: &str) -> Result<Workload, WorkloadError> {
    if let Some((name, text)) = EMBEDDED.iter().find(|(embedded, _)| *embedded == name) {
        return parse(&format!("{name}.toml"), text);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        return Err(WorkloadError::Unknown(format!(
            "there is no workload `{name}`; `bench --list` names them, and a file's name ends in .toml"
        )));
    }
    let text = std::fs::read_to_string(Path::new(name))
        .map_err(|error| WorkloadError::Bad(format!("cannot read {name}: {error}")))?;
    parse(name, &text)
}

/// Reads a workload; complaints name the file, and the line or the key.
fn parse(file: &str, text: &str) -> Result<Workload, WorkloadError> {
    let workload: Workload = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let number = text[..at].matches('\n').count() + 1;
        let line = text.lines().nth(number - 1).unwrap_or_default().trim();
        WorkloadError::Bad(format!("{file}: line {number}, `{line}`: {}", error.message()))
    })?;
    workload.check().map_err(|complaint| WorkloadError::Bad(format!("{file}: {complaint}")))?;
    Ok(workload)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn complaint(text: &str) -> String {
        match parse("w.toml", text) {
            Err(WorkloadError::Bad(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn embedded_workloads_parse_and_are_called_as_their_files() {
        let workloads = embedded().unwrap();
        for (workload, (name, _)) in workloads.iter().zip(EMBEDDED) {
            assert_eq!(workload.name, *name);
            assert_eq!(find(name).unwrap(), *workload);
            let names = workload.phase_names();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
            let bytes = workload.data_bytes();
            let is_small = ["reopen", "hot-counter", "transactions"].contains(name);
            assert!((200 << 20..1 << 30).contains(&bytes) || is_small, "{name} has {bytes} bytes");
        }
    }

    #[test]
    fn every_workload_file_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
        assert_eq!(folder.read_dir().unwrap().count(), EMBEDDED.len());
    }

    #[test]
    fn workloads_survive_the_way_to_another_process() {
        for workload in embedded().unwrap() {
            let text = serde_json::to_string(&workload).unwrap();
            assert_eq!(serde_json::from_str::<Workload>(&text).unwrap(), workload);
        }
    }

    const GOOD: &str = "\
name = 'w'
description = 'd'
key_bytes = 8
value_bytes = 8
records = 10
phases = ['load', { get = { present = 1.0, operations_per_record = 1.0 } }]
";

    #[test]
    fn complaints_name_file_and_key() {
        assert!(parse("w.toml", GOOD).is_ok());
        for (from, to, words) in [
            ("records = 10", "recrods = 10", &["recrods"][..]),
            ("records = 10", "records = 'ten'", &["line 5", "records"]),
            ("records = 10", "records = 0", &["records"]),
            ("records = 10\n", "", &["records"]),
            ("key_bytes = 8", "key_bytes = 4", &["key_bytes"]),
            ("present = 1.0", "presence = 1.0", &["presence"]),
            ("present = 1.0", "present = 1.5", &["phase 2", "present"]),
            ("'load', ", "", &["phase 1", "load"]),
            ("'load'", "'unload'", &["unload"]),
            ("'load'", "'load', 'load'", &["phase 2", "once"]),
            ("get = { present = 1.0", "mixed = { read = 0.5, scan = 0.5", &["ordered"]),
            ("get = { present = 1.0", "range = { length = 10", &["ordered"]),
            ("get = { present = 1.0", "range = { length = 0", &["length"]),
            ("get = { present = 1.0", "mixed = { read = 0.5", &["come to 1"]),
            ("'load', ", "'load', { hot = { keys = 0 } }, ", &["phase 2", "keys"]),
            ("'load', ", "'load', 'finalize', ", &["phase 3", "finalize"]),
            ("get = { present = 1.0", "count = { every = 2", &["every"]),
            ("get = { present = 1.0", "open_loop = { arrivals = 'fixed'", &["records_per_second"]),
            ("get = { present = 1.0", "overwrite = { distribution = 'odd'", &["odd"]),
            ("records = 10", "forebay = { fanout = 8 }\nrecords = 10", &["line 5", "fanout", "fan_out"]),
            ("records = 10", "forebay = { fan_out = -8 }\nrecords = 10", &["line 5", "-8"]),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            let complaint = complaint(&text);
            for word in words.iter().chain(&["w.toml"]) {
                assert!(complaint.contains(word), "{word:?} is not in {complaint:?}");
            }
        }
    }

    #[test]
    fn unknown_names_are_told_from_missing_files() {
        assert!(
            matches!(find("nonsense"), Err(WorkloadError::Unknown(reason)) if reason.contains("nonsense"))
        );
        assert!(
            matches!(find("no/such.toml"), Err(WorkloadError::Bad(reason)) if reason.contains("no/such"))
        );
    }
}
