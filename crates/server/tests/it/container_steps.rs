//! What random commands answer, of values of each kind.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::Got;
use crate::container_model::{Command, Model, Value};

pub(crate) fn int(number: usize) -> Got {
    Got::Int(number as i64)
}

fn texts(all: impl Iterator<Item = String>) -> Got {
    Got::Array(all.map(|text| Got::bulk(&text)).collect())
}

/// The part of a row between two indexes.
fn span(from: i8, to: i8, length: usize) -> std::ops::Range<usize> {
    let length = length as i64;
    let place = |at: i8| if at < 0 { i64::from(at) + length } else { i64::from(at) };
    let (from, to) = (place(from).max(0), (place(to) + 1).min(length));
    if from < to { from as usize..to as usize } else { 0..0 }
}

/// Does something with a value of one kind, which is made if it is not there, and goes where it is empty.
macro_rules! with {
    ($model:ident, $key:ident, $kind:ident, |$value:ident| $body:expr) => {
        match $model.entry(*$key).or_insert_with(|| Value::$kind(Default::default())) {
            Value::$kind($value) => {
                let got = $body;
                if $value.is_empty() {
                    $model.remove($key);
                }
                got
            }
            _ => Got::Error("WRONGTYPE Operation against a key holding the wrong kind of value".into()),
        }
    };
}

pub(crate) fn hash_step(model: &mut Model, command: &Command) -> (String, Got) {
    match command {
        Command::Hset(key, field, value) => (
            format!("HSET k{key} f{field} {value}"),
            with!(model, key, Hash, |hash| int(usize::from(
                hash.insert(*field, i64::from(*value)).is_none()
            ))),
        ),
        Command::Hget(key, field) => (
            format!("HGET k{key} f{field}"),
            with!(model, key, Hash, |hash| hash
                .get(field)
                .map_or(Got::Null, |value| Got::bulk(&value.to_string()))),
        ),
        Command::Hdel(key, field, other) => (
            format!("HDEL k{key} f{field} f{other}"),
            with!(model, key, Hash, |hash| int([field, other]
                .iter()
                .filter(|field| hash.remove(field).is_some())
                .count())),
        ),
        Command::Hincrby(key, field) => (
            format!("HINCRBY k{key} f{field} 7"),
            with!(model, key, Hash, |hash| {
                let value = hash.entry(*field).or_default();
                *value += 7;
                Got::Int(*value)
            }),
        ),
        Command::Hlen(key) => (format!("HLEN k{key}"), with!(model, key, Hash, |hash| int(hash.len()))),
        other => panic!("{other:?} is of no hash"),
    }
}

pub(crate) fn set_step(model: &mut Model, command: &Command) -> (String, Got) {
    match command {
        Command::Sadd(key, member, other) => (
            format!("SADD k{key} {member} {other}"),
            with!(model, key, Set, |set| int([member, other]
                .iter()
                .filter(|member| set.insert(***member))
                .count())),
        ),
        Command::Srem(key, member) => (
            format!("SREM k{key} {member}"),
            with!(model, key, Set, |set| int(usize::from(set.remove(member)))),
        ),
        Command::Scard(key) => (format!("SCARD k{key}"), with!(model, key, Set, |set| int(set.len()))),
        Command::Sinter(key, other) => {
            let sets = [key, other].map(|key| match model.get(key) {
                None => Some(BTreeSet::new()),
                Some(Value::Set(set)) => Some(set.clone()),
                Some(_) => None,
            });
            let got = match sets {
                [Some(one), Some(other)] => int(one.intersection(&other).count()),
                _ => Got::Error("WRONGTYPE Operation against a key holding the wrong kind of value".into()),
            };
            (format!("SINTERCARD 2 k{key} k{other}"), got)
        }
        other => panic!("{other:?} is of no set"),
    }
}

/// Members in the order of their scores.
fn in_order(sorted: &BTreeMap<u8, i8>) -> Vec<(i8, u8)> {
    let mut all: Vec<_> = sorted.iter().map(|(member, score)| (*score, *member)).collect();
    all.sort_unstable();
    all
}

pub(crate) fn sorted_step(model: &mut Model, command: &Command) -> (String, Got) {
    match command {
        Command::Zadd(key, score, member) => (
            format!("ZADD k{key} {score} {member}"),
            with!(model, key, Sorted, |sorted| int(usize::from(sorted.insert(*member, *score).is_none()))),
        ),
        Command::Zrem(key, member) => (
            format!("ZREM k{key} {member}"),
            with!(model, key, Sorted, |sorted| int(usize::from(sorted.remove(member).is_some()))),
        ),
        Command::Zrange(key, from, to) => (
            format!("ZRANGE k{key} {from} {to} WITHSCORES"),
            with!(model, key, Sorted, |sorted| {
                let all = in_order(sorted);
                let shown = &all[span(*from, *to, all.len())];
                texts(shown.iter().flat_map(|(score, member)| [member.to_string(), score.to_string()]))
            }),
        ),
        Command::Zpopmin(key) => (
            format!("ZPOPMIN k{key}"),
            with!(model, key, Sorted, |sorted| {
                let least = in_order(sorted).first().copied();
                if let Some((_, member)) = &least {
                    sorted.remove(member);
                }
                texts(least.iter().flat_map(|(score, member)| [member.to_string(), score.to_string()]))
            }),
        ),
        Command::Zcount(key, least) => (
            format!("ZCOUNT k{key} ({least} +inf"),
            with!(model, key, Sorted, |sorted| int(sorted.values().filter(|score| *score > least).count())),
        ),
        other => panic!("{other:?} is of no sorted set"),
    }
}

pub(crate) fn list_step(model: &mut Model, command: &Command) -> (String, Got) {
    match command {
        Command::Push(left, key, value) => (
            format!("{} k{key} {value}", if *left { "LPUSH" } else { "RPUSH" }),
            with!(model, key, List, |list| {
                if *left {
                    list.push_front(*value)
                } else {
                    list.push_back(*value)
                }
                int(list.len())
            }),
        ),
        Command::Pop(left, key) => (
            format!("{} k{key}", if *left { "LPOP" } else { "RPOP" }),
            with!(model, key, List, |list| {
                let value = if *left { list.pop_front() } else { list.pop_back() };
                value.map_or(Got::Null, |value| Got::bulk(&value.to_string()))
            }),
        ),
        Command::Lrange(key, from, to) => (
            format!("LRANGE k{key} {from} {to}"),
            with!(model, key, List, |list| texts(
                list.range(span(*from, *to, list.len())).map(u8::to_string)
            )),
        ),
        Command::Linsert(key, pivot, value) => (
            format!("LINSERT k{key} BEFORE {pivot} {value}"),
            with!(model, key, List, |list| match list.iter().position(|found| found == pivot) {
                _ if list.is_empty() => Got::Int(0),
                None => Got::Int(-1),
                Some(at) => {
                    list.insert(at, *value);
                    int(list.len())
                }
            }),
        ),
        Command::Lrem(key, count, value) => (
            format!("LREM k{key} {count} {value}"),
            with!(model, key, List, |list| {
                let mut at: Vec<_> = (0..list.len()).filter(|at| list[*at] == *value).collect();
                if *count < 0 {
                    at.reverse();
                }
                at.truncate(if *count == 0 { usize::MAX } else { usize::from(count.unsigned_abs()) });
                at.sort_unstable();
                for at in at.iter().rev() {
                    list.remove(*at);
                }
                int(at.len())
            }),
        ),
        Command::Ltrim(key, from, to) => (
            format!("LTRIM k{key} {from} {to}"),
            with!(model, key, List, |list| {
                *list = list.range(span(*from, *to, list.len())).copied().collect();
                Got::ok()
            }),
        ),
        other => panic!("{other:?} is of no list"),
    }
}
