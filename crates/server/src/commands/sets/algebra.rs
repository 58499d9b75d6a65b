//! Several sets: what they have in common, together, or one without the others.

use std::collections::BTreeSet;

use super::super::{Answer, Call, Refusal, containers};
use crate::elements;
use crate::turn::{Element, Way};
use crate::value::{Header, Type};

/// Members that are looked for in the other sets at once.
const MEMBERS_AT_A_TIME: usize = 256;

/// The sets of some keys.
fn sets(call: &mut Call<'_, '_>, keys: &[&[u8]]) -> Result<Vec<Option<Header>>, Refusal> {
    keys.iter().map(|key| call.container(key, Type::Set)).collect()
}

/// Shows `each` the members of a set that all of the others have, or none of them, some at a time, until it has enough.
fn sift(
    call: &Call<'_, '_>,
    one: &Header,
    others: &[Header],
    wanted: bool,
    mut each: impl FnMut(Vec<Element>) -> Result<bool, Refusal>,
) -> Answer {
    let mut walk = call.walk(elements::names_from(one.id, 0), Way::Forward)?;
    loop {
        let mut some = Vec::with_capacity(MEMBERS_AT_A_TIME);
        for element in walk.by_ref().take(MEMBERS_AT_A_TIME) {
            some.push((elements::name_of(&element?.0).1.to_vec(), Vec::new()));
        }
        if some.is_empty() {
            return Ok(());
        }
        for other in others {
            let has = call.have(other, &some)?;
            let mut has = has.into_iter();
            some.retain(|_| has.next().flatten().is_some() == wanted);
        }
        if !each(some)? {
            return Ok(());
        }
    }
}

/// All of them, as far as there is room.
fn sifted(
    call: &Call<'_, '_>,
    one: &Header,
    others: &[Header],
    wanted: bool,
) -> Result<Vec<Vec<u8>>, Refusal> {
    let (mut budget, mut found) = (call.budget(), Vec::new());
    sift(call, one, others, wanted, |some| {
        for (member, _) in some {
            budget.take(member.len())?;
            found.push(member);
        }
        Ok(true)
    })?;
    Ok(found)
}

/// The smallest first, which is the one to walk; nothing where a set is not there.
fn smallest_first(sets: &[Option<Header>]) -> Option<Vec<Header>> {
    let mut all = sets.iter().copied().collect::<Option<Vec<_>>>()?;
    all.sort_by_key(|header| header.count);
    Some(all)
}

/// What all sets have.
fn common(call: &Call<'_, '_>, sets: &[Option<Header>]) -> Result<Vec<Vec<u8>>, Refusal> {
    let Some(all) = smallest_first(sets) else { return Ok(Vec::new()) };
    sifted(call, &all[0], &all[1..], true)
}

/// What the first set has and no other.
fn difference(call: &Call<'_, '_>, sets: &[Option<Header>]) -> Result<Vec<Vec<u8>>, Refusal> {
    let Some(first) = sets[0] else { return Ok(Vec::new()) };
    let others: Vec<_> = sets[1..].iter().copied().flatten().collect();
    sifted(call, &first, &others, false)
}

/// What any set has.
fn union(call: &Call<'_, '_>, sets: &[Option<Header>]) -> Result<Vec<Vec<u8>>, Refusal> {
    let (mut budget, mut all) = (call.budget(), BTreeSet::new());
    for header in sets.iter().flatten() {
        for element in call.walk(elements::names_from(header.id, 0), Way::Forward)? {
            let (key, _): Element = element?;
            let member = elements::name_of(&key).1;
            if !all.contains(member) {
                budget.take(member.len())?;
                all.insert(member.to_vec());
            }
        }
    }
    Ok(all.into_iter().collect())
}

fn combined(call: &mut Call<'_, '_>, keys: &[&[u8]]) -> Result<Vec<Vec<u8>>, Refusal> {
    let sets = sets(call, keys)?;
    match call.arguments[0].to_ascii_uppercase() {
        name if name.starts_with(b"SINTER") => common(call, &sets),
        name if name.starts_with(b"SUNION") => union(call, &sets),
        _ => difference(call, &sets),
    }
}

/// Also `SUNION` and `SDIFF`.
pub(super) fn sinter(call: &mut Call<'_, '_>) -> Answer {
    let found = combined(call, &call.arguments[1..])?;
    call.reply.set(found.len());
    found.iter().for_each(|member| call.reply.bulk(member));
    Ok(())
}

pub(super) fn sstore(call: &mut Call<'_, '_>) -> Answer {
    let found = combined(call, &call.arguments[2..])?;
    let target = call.arguments[1];
    super::super::strings::checked_key(call, target)?;
    let header = Header { count: found.len() as u64, ..call.new_container(Type::Set) };
    found.iter().for_each(|member| call.put(elements::named(header.id, member), &[]));
    call.replace(target, &header)?;
    call.reply.int(found.len() as i64);
    Ok(())
}

pub(super) fn sintercard(call: &mut Call<'_, '_>) -> Answer {
    let (keys, words) = containers::counted(call)?;
    let most = containers::limit(words)?;
    let sets = sets(call, keys)?;
    let mut count = 0;
    if let Some(all) = smallest_first(&sets) {
        sift(call, &all[0], &all[1..], true, |some| {
            count += some.len();
            Ok(count < most)
        })?;
    }
    call.reply.int(count.min(most) as i64);
    Ok(())
}
