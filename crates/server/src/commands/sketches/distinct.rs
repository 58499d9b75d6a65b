//! How many distinct elements, by HyperLogLog: the state is that of the function `approx_distinct`, so other libraries read
//! it. With 2^14 registers the standard error is 0.81 %, as in Redis.

use forebay_aggregate::Aggregate;
use forebay_aggregate::functions::ApproxDistinct;

use super::super::{Answer, Call, Refusal};
use super::damaged;
use crate::value::Type;

const LG_K: u8 = 14;

/// Adds to a state, which is empty of nothing, the states of others.
fn merged(function: &ApproxDistinct, states: &[Vec<u8>]) -> Vec<u8> {
    let there: Vec<&[u8]> = states.iter().map(Vec::as_slice).filter(|state| !state.is_empty()).collect();
    let mut merged = Vec::new();
    if !there.is_empty() {
        function.merge(&there, &mut merged);
    }
    merged
}

/// A state as it is stored; one that cannot be read would be left out of what is merged, and lost.
fn checked(function: &ApproxDistinct, state: &[u8]) -> Result<Vec<u8>, Refusal> {
    match state.is_empty() || function.finish(state).is_ok() {
        true => Ok(state.to_vec()),
        false => Err(damaged()),
    }
}

/// The states of keys that are there.
fn states(
    call: &mut Call<'_, '_>,
    function: &ApproxDistinct,
    keys: &[&[u8]],
) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut states = Vec::new();
    let mut budget = call.budget();
    for key in keys {
        if let Some(state) = call.sketch(key, Type::HyperLogLog)? {
            let state = checked(function, state)?;
            budget.take(state.len())?;
            states.push(state);
        }
    }
    Ok(states)
}

pub(super) fn add(call: &mut Call<'_, '_>) -> Answer {
    let function = ApproxDistinct::new(LG_K)?;
    let (key, items) = (call.arguments[1], &call.arguments[2..]);
    super::check_count(items)?;
    let add_to = |state: &mut Vec<u8>| items.iter().fold(false, |any, item| function.add(item, state) | any);
    let add_behind_mark = |stored: &mut Vec<u8>| {
        let mut is_changed = false;
        for (at, item) in items.iter().enumerate() {
            let Some(changes) = function.add_within(item, &mut stored[1..]) else {
                let mut state = stored.split_off(1);
                for item in &items[at..] {
                    is_changed |= function.add(item, &mut state);
                }
                stored.append(&mut state);
                break;
            };
            is_changed |= changes;
        }
        is_changed
    };
    let check = |state: &[u8]| {
        if state.is_empty() || function.is_sound(state) { Ok(()) } else { Err(damaged()) }
    };
    let is_changed = match call.edit_sketch(key, Type::HyperLogLog, check, add_behind_mark)? {
        Some(is_changed) => is_changed,
        None => {
            let mut state = Vec::new();
            add_to(&mut state);
            call.put_sketch(key, Type::HyperLogLog, &state)?;
            true
        }
    };
    call.reply.int(i64::from(is_changed));
    Ok(())
}

pub(super) fn count(call: &mut Call<'_, '_>) -> Answer {
    let function = ApproxDistinct::new(LG_K)?;
    let keys = &call.arguments[1..];
    let state = merged(&function, &states(call, &function, keys)?);
    let count = if state.is_empty() { 0.0 } else { function.finish(&state)? };
    call.reply.int(count.round() as i64);
    Ok(())
}

pub(super) fn merge(call: &mut Call<'_, '_>) -> Answer {
    let function = ApproxDistinct::new(LG_K)?;
    let keys = &call.arguments[1..];
    let state = merged(&function, &states(call, &function, keys)?);
    call.put_sketch(call.arguments[1], Type::HyperLogLog, &state)?;
    call.reply.ok();
    Ok(())
}
