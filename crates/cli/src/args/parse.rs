//! Reads the values of arguments that several commands take.

use std::net::{SocketAddr, ToSocketAddrs};

use forebay::{Durability, Layout, StoredRule};
use forebay_aggregate::names::similar;
use forebay_units::sizes;
/// Reads `--ttl`.
pub(crate) use forebay_units::times::parse as parse_ttl;

/// What `--layout` takes.
pub(crate) const LAYOUT_HELP: &str = "How a new table is organised [default: wb-tree]. In hash order: wb-tree. In key \
    order, from cheap writes to cheap reads: no-merge, tiering[:t=10], stacks[:t=10], wb-tree:ordered, geometric:r=3, \
    geometric:p=2, lazy-leveling[:t=10], leveling[:t=10], jungle[:c=3,t=10,upper=3,levels=total,inline=64], \
    range-merge[:c=3,inline=64], \
    immediate";

/// What the names of layouts begin with.
const LAYOUTS: [&str; 10] = [
    "no-merge",
    "immediate",
    "geometric",
    "range-merge",
    "leveling",
    "lazy-leveling",
    "tiering",
    "stacks",
    "jungle",
    "wb-tree",
];

/// Reads `--max-space-amplification`.
pub(crate) fn parse_space_amplification(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| ratio.is_finite() && *ratio >= 1.25);
    ratio.ok_or_else(|| "give a ratio of at least 1.25".into())
}

/// Reads `--values-apart`: a size that is not 0.
pub(crate) fn parse_values_apart(text: &str) -> Result<u32, String> {
    let bytes = sizes::parse(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "give a size from 1 byte to less than 4G".into())
}

/// Reads `--layout`.
pub(crate) fn parse_layout(text: &str) -> Result<Layout, String> {
    text.parse::<Layout>().map_err(|error| {
        let name = text.split(':').next().unwrap_or_default();
        let like = similar(name, LAYOUTS)
            .filter(|_| !LAYOUTS.contains(&name))
            .map_or(String::new(), |like| format!("; did you mean {like}?"));
        format!("{error}{like}")
    })
}

/// Reads `--rule`.
pub(crate) fn parse_rule(text: &str) -> Result<StoredRule, String> {
    text.parse::<StoredRule>().map_err(|error| error.to_string())
}

/// Reads `--durability`.
pub(crate) fn parse_durability(text: &str) -> Result<Durability, String> {
    text.parse::<Durability>().map_err(|error| error.to_string())
}

/// A port alone is one of this machine.
pub(crate) fn with_host(address: &str) -> String {
    match address.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => address.to_string(),
    }
}

/// Reads where to listen.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let found: Vec<SocketAddr> = with_host(text).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    // Clients that are told a name, or none, try that first.
    let best = found.iter().find(|address| address.is_ipv4()).or(found.first());
    best.copied().ok_or_else(|| {
        "give a port, or an address and a port such as 127.0.0.1:6379 or localhost:6379".into()
    })
}
