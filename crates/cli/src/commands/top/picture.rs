//! Numbers as lines of text.

use forebay::TableStats;
use forebay_units::sizes::human;

use super::numbers::{Numbers, Rates, Server};
use crate::screen::message;

/// Of a line where no terminal says how wide it is.
pub(super) const WIDTH: u16 = 100;
/// Of a bar, and of a level's.
const BAR_CELLS: usize = 24;
const LEVEL_CELLS: usize = 40;
/// As many tables, keys and slow requests are shown.
const TABLES: usize = 6;
const KEYS: usize = 8;
const SLOW: usize = 6;

/// How a part of a line looks.
#[derive(Clone, Copy)]
enum Look {
    Plain,
    Bold,
    Dim,
    Bar,
    Warm,
}

/// A line of parts that look each their way.
#[derive(Default)]
pub(super) struct Line(Vec<(Look, String)>);

impl Line {
    fn of(look: Look, text: impl Into<String>) -> Self {
        Self(vec![(look, text.into())])
    }

    fn and(mut self, look: Look, text: impl Into<String>) -> Self {
        self.0.push((look, text.into()));
        self
    }

    /// A name, and what it is.
    fn told(self, name: &str, value: &str) -> Self {
        self.and(Look::Dim, format!("{name} ")).and(Look::Plain, format!("{value}   "))
    }

    /// As text, cut to a width; with colours or without.
    pub(super) fn shown(&self, width: usize, has_colours: bool) -> String {
        let (mut text, mut left) = (String::new(), width);
        for (look, part) in &self.0 {
            let cut: String = part.chars().take(left).collect();
            left -= cut.chars().count();
            let code = match look {
                _ if !has_colours => "",
                Look::Plain => "",
                Look::Bold => "\x1b[1m",
                Look::Dim => "\x1b[2m",
                Look::Bar => "\x1b[36m",
                Look::Warm => "\x1b[33m",
            };
            match code {
                "" => text.push_str(&cut),
                code => text.push_str(&format!("{code}{cut}\x1b[0m")),
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

fn blank() -> Line {
    Line::default()
}

fn head(text: &str, rest: &str) -> Line {
    Line::of(Look::Bold, text).and(Look::Dim, format!("  {rest}"))
}

/// Three digits, and what they are to be multiplied with.
fn brief(number: f64) -> String {
    let (number, unit) = match number {
        1e9.. => (number / 1e9, "G"),
        1e6.. => (number / 1e6, "M"),
        1e3.. => (number / 1e3, "K"),
        _ => (number, ""),
    };
    format!("{}{unit}", digits(number))
}

fn digits(number: f64) -> String {
    match number {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        _ if number == 0.0 => "0".into(),
        _ => format!("{number:.2}"),
    }
}

fn time(microseconds: f64) -> String {
    match microseconds {
        1e6.. => format!("{} s", digits(microseconds / 1e6)),
        1e3.. => format!("{} ms", digits(microseconds / 1e3)),
        _ => format!("{} µs", digits(microseconds)),
    }
}

fn span(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A bar of a share, to an eighth of a letter.
fn bar(share: f64, cells: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * cells as f64 * 8.0).round() as usize;
    let bar = "█".repeat(eighths / 8) + PARTS[eighths % 8];
    format!("{bar:cells$}")
}

/// All of it.
pub(super) fn lines(now: &Numbers, rates: &Rates, address: &str) -> Vec<Line> {
    let mut lines = tops(now, rates, address);
    tables(now, &mut lines);
    memory(now, &mut lines);
    causes(now, &mut lines);
    keys(now, &mut lines);
    slow(now, &mut lines);
    lines
}

/// Whom it follows, and how many follow it.
fn replication(server: &Server) -> String {
    let follows = server.follows.as_ref().map_or_else(String::new, |source| {
        let behind = source.lag_milliseconds.map(|lag| format!("{} s behind", digits(lag as f64 / 1000.0)));
        let behind = behind.unwrap_or_else(|| "not there yet".into());
        let link = if source.is_up { "" } else { ", cut off" };
        format!(", follows {}:{}{link}, {behind}", message(&source.host), source.port)
    });
    match server.followers {
        0 => follows,
        followers => format!("{follows}, {followers} followers"),
    }
}

fn tops(now: &Numbers, rates: &Rates, address: &str) -> Vec<Line> {
    let (data, server) = (&now.database, &now.server);
    let about = format!(
        "{} at {address}, up for {}, {} connections, {} of requests and replies",
        message(&server.version),
        span(server.uptime_seconds),
        server.connections,
        human(server.buffers_bytes)
    );
    let about = format!("{about}{}", replication(server));
    let stalled = format!("{} %", digits(rates.stalled * 100.0));
    let (commit, get) = (&data.commit_latency_us, &data.get_latency_us);
    vec![
        head("forebay", &about),
        blank(),
        Line::default()
            .told("commands/s", &brief(rates.commands))
            .told("lookups/s", &brief(rates.lookups))
            .told("records/s", &brief(rates.records))
            .told("written/s", &human(rates.written_bytes as u64))
            .told("syncs/s", &brief(rates.syncs)),
        Line::default()
            .told("commit p50", &time(commit.p50))
            .told("p99", &time(commit.p99))
            .told("lookup p50", &time(get.p50))
            .told("p99", &time(get.p99)),
        Line::default()
            .told("writes amplified", &digits(data.write_amplification))
            .told("space", &digits(data.space_amplification))
            .told("reads of a lookup", &digits(data.device_reads_per_get)),
        Line::default()
            .told("writers stalled", &stalled)
            .told("merges owe", &human(data.debt_bytes))
            .told("on disk", &human(data.disk_bytes)),
    ]
}

fn tables(now: &Numbers, lines: &mut Vec<Line>) {
    let mut tables: Vec<&TableStats> = now.database.tables.iter().collect();
    tables.sort_by_key(|table| std::cmp::Reverse(table.space.disk_bytes));
    let rest = match tables.len().saturating_sub(TABLES) {
        0 => String::new(),
        more => format!("and {more} smaller ones"),
    };
    lines.extend([blank(), head("Tables", &rest)]);
    for table in tables.into_iter().take(TABLES) {
        let records = table.levels.iter().map(|level| level.records).sum::<u64>();
        let moving = table
            .reordered_share
            .map_or_else(String::new, |share| format!(", {} % in its new order", digits(share * 100.0)));
        let about = format!(
            "{}, {} records, {}{moving}",
            message(&table.layout),
            brief(records as f64),
            human(table.space.disk_bytes)
        );
        lines.push(Line::of(Look::Plain, message(&table.name)).and(Look::Dim, format!("  {about}")));
        let most = table.levels.iter().map(|level| level.bytes).max().unwrap_or(0).max(1);
        for level in &table.levels {
            // As in a tree: what is above is narrower.
            let share = (level.bytes as f64 / most as f64).sqrt();
            let about = format!(
                "{} nodes, {} lists, {}{}",
                level.nodes,
                level.lists,
                human(level.bytes),
                if level.in_memory { ", in memory" } else { "" }
            );
            let look = if level.in_memory { Look::Warm } else { Look::Bar };
            let picture = nodes(level.nodes, share, level.bytes > 0);
            lines.push(
                Line::of(Look::Dim, format!("  L{:<2} ", level.level))
                    .and(look, format!("{picture:^LEVEL_CELLS$}"))
                    .and(Look::Dim, format!("  {about}")),
            );
        }
    }
}

/// A level's nodes side by side, as wide together as its share.
fn nodes(nodes: usize, share: f64, has_some: bool) -> String {
    if !has_some {
        return "·".into();
    }
    let cells = ((share * LEVEL_CELLS as f64).round() as usize).clamp(1, LEVEL_CELLS);
    let shown = nodes.clamp(1, cells.div_ceil(2));
    let ends_at = |node: usize| (node + 1) * (cells + 1) / shown;
    let mut text = String::new();
    for node in 0..shown {
        let begin = if node == 0 { 0 } else { ends_at(node - 1) };
        text.push_str(&"█".repeat((ends_at(node) - begin - 1).max(1)));
        if node + 1 < shown {
            text.push(' ');
        }
    }
    text
}

fn memory(now: &Numbers, lines: &mut Vec<Line>) {
    let memory = &now.database.memory;
    let mut owners = [
        ("write buffers", memory.write_buffers),
        ("buffer indexes", memory.buffer_indexes),
        ("page cache", memory.page_cache),
        ("page search", memory.page_search),
        ("filters", memory.filters),
        ("resident records", memory.resident_records),
        ("merging", memory.merging),
        ("writing", memory.writing),
        ("scanning", memory.scanning),
    ];
    owners.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let about = format!("{} of {}", human(memory.total), human(memory.limit));
    lines.extend([blank(), head("Memory", &about)]);
    for (name, bytes) in owners.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let share = bytes as f64 / memory.limit.max(1) as f64;
        lines.push(
            Line::of(Look::Plain, format!("  {name:<18}"))
                .and(Look::Bar, bar(share, BAR_CELLS))
                .and(Look::Plain, format!("{:>9} %", digits(share * 100.0)))
                .and(Look::Dim, format!("  {}", human(bytes))),
        );
    }
}

fn causes(now: &Numbers, lines: &mut Vec<Line>) {
    let data = &now.database;
    let mut causes =
        vec![("log".to_string(), data.log_bytes), ("manifests".to_string(), data.manifest_bytes)];
    causes.extend(data.list_bytes_written.iter().map(|(name, bytes)| (name.replace('_', " "), *bytes)));
    let most = causes.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0).max(1);
    let about = format!("by cause, of {} given", human(data.user_bytes));
    lines.extend([blank(), head("Written", &about)]);
    for (name, bytes) in causes.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let times = bytes as f64 / data.user_bytes.max(1) as f64;
        lines.push(
            Line::of(Look::Plain, format!("  {:<18}", message(&name)))
                .and(Look::Bar, bar(bytes as f64 / most as f64, BAR_CELLS))
                .and(Look::Plain, format!("{:>9} ×", format!("{times:.2}")))
                .and(Look::Dim, format!("  {}", human(bytes))),
        );
    }
}

fn keys(now: &Numbers, lines: &mut Vec<Line>) {
    let keys = &now.hottest_keys;
    lines.extend([blank(), head("Hottest keys", if keys.is_empty() { "none stand out" } else { "lately" })]);
    let most = keys.iter().map(|key| key.share).fold(f64::MIN_POSITIVE, f64::max);
    for hot in keys.iter().take(KEYS) {
        lines.push(
            Line::of(Look::Bar, format!("  {}", bar(hot.share / most, BAR_CELLS)))
                .and(Look::Plain, format!("{:>9} %", digits(hot.share * 100.0)))
                .and(Look::Dim, format!("  {:>3.0} % writes  {}: ", hot.writes * 100.0, hot.database))
                .and(Look::Plain, message(hot.key.as_deref().unwrap_or("(not told)"))),
        );
    }
}

fn slow(now: &Numbers, lines: &mut Vec<Line>) {
    let about = if now.slow.is_empty() { "none lately" } else { "the latest first" };
    lines.extend([blank(), head("Slow requests", about)]);
    for slow in now.slow.iter().take(SLOW) {
        lines.push(
            Line::of(Look::Plain, format!("{:>12}  ", time(slow.microseconds as f64)))
                .and(Look::Plain, message(&slow.request.join(" "))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([brief(0.0), brief(999.0), brief(1234.0), brief(5.6e6)], ["0", "999", "1.23K", "5.60M"]);
        assert_eq!([time(0.5), time(1500.0), time(2.5e6)], ["0.50 µs", "1.50 ms", "2.50 s"]);
        assert_eq!([span(119), span(120), span(7200), span(172_800)], ["119 s", "2 min", "2 h", "2 days"]);
    }

    #[test]
    fn bars_and_nodes_are_as_wide_as_they_say() {
        assert_eq!([bar(0.5, 4), bar(2.0, 3), bar(0.0, 2), bar(0.125, 1)], ["██  ", "███", "  ", "▏"]);
        assert_eq!(nodes(1, 1.0, true).chars().count(), LEVEL_CELLS);
        assert_eq!([nodes(3, 0.125, true), nodes(1, 0.0, true), nodes(9, 1.0, false)], ["█ █ █", "█", "·"]);
        let many = nodes(1000, 1.0, true);
        assert_eq!(many.chars().count(), LEVEL_CELLS, "{many}");
    }

    #[test]
    fn a_line_is_cut_before_it_is_coloured() {
        let line = Line::of(Look::Bold, "abc").and(Look::Plain, "défg ");
        assert_eq!(line.shown(5, false), "abcdé");
        assert_eq!(line.shown(5, true), "\x1b[1mabc\x1b[0mdé");
        assert_eq!(line.shown(80, false), "abcdéfg");
    }
}
