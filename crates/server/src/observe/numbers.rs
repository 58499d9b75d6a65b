//! All counters and gauges, as they are when somebody looks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use forebay::{Stats, TableStats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use serde::Serialize;
use serde_json::{Value, json};

use super::hot::Hot;
use super::slow::{Request, Slow};
use crate::commands;
use crate::config::Watchers;
use crate::shared::Shared;
use crate::tls::TlsFiles;

/// Slow requests that the page shows.
const SLOW_SHOWN: usize = 32;
/// And keys.
const HOTTEST_SHOWN: usize = 16;

/// What Prometheus reads.
pub(super) fn metrics(shared: &Arc<Shared>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("forebay");
    registry.register_collector(Box::new(Now(Arc::clone(shared))));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The same and more as JSON. Where anybody could ask for any key they see hot keys; else, how hot they are.
pub(super) fn json(shared: &Shared) -> serde_json::Result<String> {
    let config = &shared.config;
    let default = shared.acl.default_user();
    let knows_clients = config.tls.as_ref().is_some_and(TlsFiles::knows_clients);
    let is_open = default.is_open() && default.is_free() && !knows_clients;
    let is_open = is_open && config.watchers == Watchers::ThisMachine;
    let Shown { now_milliseconds, server, slow, hottest_keys } = server(shared, is_open, false);
    serde_json::to_string(&json!({
        "now_milliseconds": now_milliseconds,
        "server": server,
        "slow": slow,
        "hottest_keys": hottest_keys,
        "database": shared.database.stats(),
    }))
}

/// What a server tells of itself, besides its database.
#[derive(Serialize)]
pub(crate) struct Shown {
    now_milliseconds: u64,
    server: Value,
    slow: Vec<Value>,
    hottest_keys: Vec<Value>,
}

/// The same, with keys or without, and with what slow requests say or without.
pub(crate) fn server(shared: &Shared, has_keys: bool, has_requests: bool) -> Shown {
    let config = &shared.config;
    let slow = shared.slow.last(SLOW_SHOWN);
    let hottest = shared.hot.hottest(HOTTEST_SHOWN, shared.uptime_seconds());
    let hot = |hot: &Hot| {
        let key = has_keys.then_some(&hot.key);
        json!({ "database": hot.database, "key": key, "share": hot.share, "writes": hot.writes })
    };
    Shown {
        now_milliseconds: shared.database.unix_milliseconds(),
        server: json!({
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_seconds": shared.uptime_seconds(),
            "loops": config.loops,
            "connections": shared.connections.load(Relaxed),
            "connections_max": config.connections_max,
            "connections_accepted": shared.accepted.load(Relaxed),
            "commands": shared.commands.load(Relaxed),
            "feeds": shared.feeds.count(),
            "followers": shared.followers.told().len(),
            "follows": follows(shared),
            "buffers_bytes": shared.buffers_bytes.load(Relaxed),
            "buffers_bytes_max": config.buffers_bytes_max,
        }),
        slow: slow.iter().map(|slow| told(slow, has_requests)).collect(),
        hottest_keys: hottest.iter().map(hot).collect(),
    }
}

/// Whom it follows, and how far it is behind; nothing where it does not.
fn follows(shared: &Shared) -> Value {
    let following = &shared.following;
    let Some(source) = following.source.as_ref().filter(|_| following.is_on()) else { return Value::Null };
    let link = following.link();
    json!({
        "host": source.host,
        "port": source.port,
        "is_up": link.is_up,
        "error": link.error,
        "lag_milliseconds": following.lag_milliseconds(shared.database.unix_milliseconds()),
    })
}

/// A slow request. What it says is not for those who give no password.
fn told(slow: &Slow, has_request: bool) -> Value {
    let Request { arguments, shown } = &slow.request;
    let command = shown.first().and_then(|name| commands::find(name.as_bytes()));
    let mut told = json!({
        "id": slow.id,
        "at_milliseconds": slow.at_milliseconds,
        "microseconds": slow.microseconds,
        "command": command.map_or("unknown", |command| command.name),
        "arguments": arguments,
    });
    if has_request {
        told["request"] = json!(shown);
    }
    told
}

struct Now(Arc<Shared>);

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Now")
    }
}

/// A name, what it is, and its value.
type Row<T> = (&'static str, &'static str, T);

/// What only grows.
fn counters(shared: &Shared, stats: &Stats) -> Vec<Row<u64>> {
    vec![
        ("commands", "Commands that were done", shared.commands.load(Relaxed)),
        ("connections_accepted", "Connections that were accepted", shared.accepted.load(Relaxed)),
        ("records_written", "Records that were accepted", stats.user_records),
        ("record_bytes_written", "Bytes of their keys and values", stats.user_bytes),
        ("log_bytes", "Bytes written to the log", stats.log_bytes),
        ("log_syncs", "Syncs of the log", stats.log_syncs),
        ("manifest_bytes", "Bytes written to manifests", stats.manifest_bytes),
        ("gets", "Lookups of keys", stats.gets),
        ("gets_from_buffer", "Lookups that write buffers answered", stats.gets_from_buffer),
        ("device_reads", "Reads from the device for lookups and scans", stats.device_reads),
        ("device_read_bytes", "Bytes of such reads", stats.device_read_bytes),
        ("cache_hits", "Pages that the page cache had", stats.cache_hits),
        ("filter_false_positives", "Lists read for nothing", stats.filter_false_positives),
        ("background_bytes", "Bytes that flushes and merges have gone through", stats.background_bytes),
    ]
}

/// Before it was there once it is behind for as long as it runs.
fn lag_seconds(shared: &Shared) -> f64 {
    let lag = shared.following.lag_milliseconds(shared.database.unix_milliseconds());
    let lag = lag.map_or(shared.uptime_seconds() as f64, |lag| lag as f64 / 1000.0);
    if shared.following.is_on() { lag } else { 0.0 }
}

/// What goes up and down.
fn gauges(shared: &Shared, stats: &Stats) -> Vec<Row<f64>> {
    vec![
        ("uptime_seconds", "Seconds since the server was made", shared.uptime_seconds() as f64),
        ("connections", "Connections", shared.connections.load(Relaxed) as f64),
        ("feeds", "Connections that follow the changes", shared.feeds.count() as f64),
        ("followers", "Servers that follow this one", shared.followers.told().len() as f64),
        ("follows", "Whether it follows another server", f64::from(u8::from(shared.following.is_on()))),
        (
            "follow_link_up",
            "Whether it is told what that commits",
            f64::from(u8::from(shared.following.link().is_up)),
        ),
        (
            "follow_lag_seconds",
            "How long ago that had nothing that is not here; 0 where it follows none",
            lag_seconds(shared),
        ),
        ("buffers_bytes", "Requests and replies in memory", shared.buffers_bytes.load(Relaxed) as f64),
        ("write_amplification", "Bytes written for each byte accepted", stats.write_amplification),
        ("space_amplification", "Bytes on disk for each byte of records", stats.space_amplification),
        ("device_reads_per_get", "Device reads of a lookup", stats.device_reads_per_get),
        ("stall_seconds", "Seconds that writers have waited since it was opened", stats.stall_seconds),
        ("merge_wait_seconds", "Seconds that merges have waited for their rate", stats.merge_wait_seconds),
        ("debt_bytes", "Bytes that merges owe", stats.debt_bytes as f64),
        ("disk_bytes", "Bytes on disk", stats.disk_bytes as f64),
        ("list_files", "Files of lists", stats.list_files as f64),
        ("list_records", "Records in lists", stats.list_records as f64),
        ("unlisted_records", "Records that are in the log alone", stats.unlisted_records as f64),
    ]
}

fn memory(stats: &Stats) -> [(&'static str, u64); 10] {
    let memory = &stats.memory;
    [
        ("filters", memory.filters),
        ("page_search", memory.page_search),
        ("page_cache", memory.page_cache),
        ("resident_records", memory.resident_records),
        ("write_buffers", memory.write_buffers),
        ("buffer_indexes", memory.buffer_indexes),
        ("merging", memory.merging),
        ("writing", memory.writing),
        ("scanning", memory.scanning),
        ("limit", memory.limit),
    ]
}

/// One gauge for each of some labels.
fn family<'l>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, label): (&str, &str, &'static str),
    values: impl Iterator<Item = (&'l str, f64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (of, value) in values {
        let labels = [(label, of)];
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// A number of each table; the tables of all windows of an aggregator are one.
fn by_table(stats: &Stats, number: impl Fn(&TableStats) -> f64) -> BTreeMap<&str, f64> {
    let mut all = BTreeMap::new();
    for table in &stats.tables {
        let name = table.name.split_once('@').map_or(&table.name[..], |(name, _)| name);
        *all.entry(name).or_default() += number(table);
    }
    all
}

impl Collector for Now {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (shared, stats) = (&*self.0, self.0.database.stats());
        for (name, help, value) in counters(shared, &stats) {
            let counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(counter)?;
        }
        for (name, help, value) in gauges(shared, &stats) {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(gauge)?;
        }
        let of = |values: &BTreeMap<String, u64>| -> Vec<(String, f64)> {
            values.iter().map(|(name, value)| (name.clone(), *value as f64)).collect()
        };
        for (name, help, values) in [
            (
                "list_bytes_written",
                "Bytes written to lists since it was opened",
                of(&stats.list_bytes_written),
            ),
            ("list_bytes_read", "Bytes that background work has read of lists", of(&stats.list_bytes_read)),
            ("jobs_done", "Background jobs that were done", of(&stats.jobs_done)),
        ] {
            let values = values.iter().map(|(name, value)| (&name[..], *value));
            family(&mut encoder, (name, help, "cause"), values)?;
        }
        let owners = memory(&stats).map(|(name, bytes)| (name, bytes as f64));
        family(&mut encoder, ("memory_bytes", "Memory by owner", "owner"), owners.into_iter())?;
        for (name, help, latency) in [
            ("commit_microseconds", "How long commits take", &stats.commit_latency_us),
            ("get_microseconds", "How long lookups take", &stats.get_latency_us),
        ] {
            let values =
                [("0.5", latency.p50), ("0.99", latency.p99), ("0.999", latency.p999), ("1", latency.max)];
            family(&mut encoder, (name, help, "quantile"), values.into_iter())?;
        }
        let disk = by_table(&stats, |table| table.space.disk_bytes as f64).into_iter();
        family(&mut encoder, ("table_disk_bytes", "Bytes of a table's files", "table"), disk)?;
        let records_of = |table: &TableStats| table.levels.iter().map(|level| level.records).sum::<u64>();
        let records = by_table(&stats, |table| records_of(table) as f64).into_iter();
        family(
            &mut encoder,
            ("table_records", "Records of a table's lists, every version counted", "table"),
            records,
        )
    }
}
