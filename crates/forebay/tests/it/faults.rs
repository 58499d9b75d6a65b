//! A fault at every file operation of a fixed script, one after the other. The sweep over every layout is a campaign of
//! `torture faults`; these are a slice of it.

use std::time::Duration;

use forebay::{Database, Layout, Options};
use forebay_env::Env;
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_testkit::sweep;

fn ordered() -> Layout {
    Layout::wb_tree_ordered()
}

#[test]
fn no_space_at_any_one_operation() {
    sweep(ordered(), |number| format!("any * #{number} no-space"));
}

#[test]
fn no_space_from_any_third_operation_on() {
    sweep(ordered(), |number| format!("any * from:{} no-space", 3 * number));
}

#[test]
fn an_input_output_error_at_any_one_operation() {
    sweep(ordered(), |number| format!("any * #{number} io-error"));
}

#[test]
fn a_short_write_at_any_write() {
    sweep(ordered(), |number| format!("write * #{number} short"));
}

#[test]
fn a_failed_sync_at_any_sync() {
    sweep(ordered(), |number| format!("sync * #{number} lost"));
    sweep(Layout::jungle(3.0), |number| format!("sync * #{number} lost"));
}

/// What fails wakes those who wait for it, and itself: flushes and merges failed as fast as they could.
#[test]
fn what_fails_is_not_tried_again_at_once() {
    for rule in ["write *.list all no-space", "write *.manifest all io-error", "create *.list all io-error"] {
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::simulated(fs.clone(), 1);
        let options = Options::default().env(env.clone()).memory_limit(1 << 20);
        let db = Database::open("/db", options).unwrap();
        let table = db.table("t").open().unwrap();
        (0..1000u32).for_each(|key| table.put(key.to_be_bytes(), [7; 100]).unwrap());
        db.flush().unwrap();
        (0..1000u32).for_each(|key| table.put(key.to_be_bytes(), [8; 100]).unwrap());
        fs.rule(rule).unwrap();
        assert!(db.flush().is_err(), "{rule}");
        let before = fs.fired();
        env.jobs.step_some(20_000);
        assert!(fs.fired() - before < 10, "{rule}: tried {} times at one moment", fs.fired() - before);
        fs.clear();
        env.jobs.advance(Duration::from_millis(200));
        env.jobs.step_some(1000);
        db.flush().unwrap();
    }
}
