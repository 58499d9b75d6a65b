//! Plants one bug after the other, and tells after how many seeds each is found.
//!
//! **Invariant:** a seed that fails without the bug finds nothing.

use forebay_base::planted::{BUGS, Bug, Campaign, plant, reached};
use forebay_env::{Clock, RealClock};

use crate::{Part, attempt, attempt_threads};

/// Within this many seeds a bug must be found.
const SEEDS_MAX: u64 = 4000;
/// Within this many seeds of real threads.
const THREADS_MAX: u64 = 300;

/// Plants all bugs, or those whose names begin so, and prints a table. Returns how many were not found.
pub fn run_planted(asked: &str) -> usize {
    println!("| bug | promise | found by | at seed | seeds | seconds |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let wanted = BUGS.iter().filter(|bug| asked == "all" || bug.name.starts_with(asked));
    wanted.filter(|bug| !is_found(bug)).count()
}

fn is_found(bug: &Bug) -> bool {
    let clock = RealClock::new();
    let most = if bug.found_by == Campaign::Seeds { SEEDS_MAX } else { THREADS_MAX };
    let mut asked = 0;
    let at = (0..most).find(|&seed| {
        plant(Some(bug.name));
        let is_failed = fails(bug, seed);
        asked += reached();
        plant(None);
        is_failed && !fails(bug, seed)
    });
    let found = match at {
        Some(seed) => seed.to_string(),
        None if asked == 0 => "NEVER REACHED".to_owned(),
        None => "NOT FOUND".to_owned(),
    };
    let tried = at.map_or(most, |seed| seed + 1);
    let seconds = clock.now().as_secs_f64();
    let Bug { name, promise, found_by, .. } = bug;
    println!("| {name} | {promise} | {found_by:?} | {found} | {tried} | {seconds:.1} |");
    at.is_some()
}

fn fails(bug: &Bug, seed: u64) -> bool {
    match bug.found_by {
        Campaign::Seeds => attempt(seed, &Part::default()).is_err(),
        Campaign::Threads => attempt_threads(seed).is_err(),
    }
}
