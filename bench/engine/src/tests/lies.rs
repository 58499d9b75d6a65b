//! A wrong answer fails the run, and says which key had what instead of what.

use ::forebay_env::RealClock;

use super::map::{Lie, Map};
use super::{run_all, small_workloads};
use crate::answers::WrongAnswer;

/// What is wrong with everything taken together is no one key's.
#[test]
fn an_entry_that_finalize_does_not_show_is_missed() {
    let mut workload = small_workloads().find(|workload| workload.name == "hot-counter").unwrap();
    workload.phases.remove(1);
    let failure = run_all(&Map::new(Lie::Skips), workload, &RealClock::new()).unwrap_err();
    assert_eq!(failure.to_string(), "wrong answer: 99 keys were shown, and there are 100");
}

#[test]
fn an_add_that_is_lost_is_missed() {
    for name in ["count", "hot-counter", "transactions"] {
        let workload = small_workloads().find(|workload| workload.name == name).unwrap();
        let failure = run_all(&Map::new(Lie::Loses), workload, &RealClock::new()).unwrap_err();
        assert!(failure.is::<WrongAnswer>(), "{name}: {failure}");
    }
}

#[test]
fn each_lie_is_found_by_the_workload_that_can_see_it() {
    for (lie, name) in [
        (Lie::Loses, "get-present"),
        (Lie::Stale, "ycsb-a"),
        (Lie::Stale, "ycsb-f-small"),
        (Lie::Damages, "ycsb-c"),
        (Lie::Invents, "get-absent"),
        (Lie::Invents, "get-half"),
        (Lie::KeepsDeleted, "queue"),
        (Lie::Loses, "queue"),
        (Lie::Skips, "ycsb-e"),
        (Lie::Loses, "ycsb-e-small"),
        (Lie::Skips, "range"),
        (Lie::Loses, "range"),
        (Lie::Swaps, "get-present"),
        (Lie::Damages, "count"),
    ] {
        let workload = small_workloads().find(|workload| workload.name == name).unwrap();
        let failure = run_all(&Map::new(lie), workload, &RealClock::new()).unwrap_err();
        assert!(failure.is::<WrongAnswer>(), "{lie:?} in {name}: {failure}");
        let text = failure.to_string();
        let words: Vec<&str> = text.split([' ', ',', ':']).filter(|word| !word.is_empty()).collect();
        let [_, _, "key", key, "expected", ..] = words[..] else { panic!("{text}") };
        assert!(key.len() >= 32 && key.bytes().all(|digit| digit.is_ascii_hexdigit()), "{text}");
        let told_of_absence = text.contains("expected nothing") || text.contains("found nothing");
        let is_of_absence = matches!(lie, Lie::Loses | Lie::Invents | Lie::KeepsDeleted | Lie::Skips);
        assert_eq!(told_of_absence, is_of_absence, "{lie:?} in {name}: {text}");
    }
}
