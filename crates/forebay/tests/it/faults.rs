//! A fault at every file operation of a fixed script, one after the other. The sweep over every layout is a campaign of
//! `torture faults`; these are a slice of it.

use forebay::Layout;
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
