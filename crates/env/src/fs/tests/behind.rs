//! What is begun is done, once, whether anybody waits for it or not.

use super::super::Helpers;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};

#[test]
fn what_is_begun_is_done_and_told() {
    let helpers = Helpers::threads();
    let begun: Vec<_> = (0..100).map(|number| helpers.begin(move || number * number)).collect();
    let told: Vec<_> = begun.into_iter().map(|behind| behind.wait()).collect();
    assert_eq!(told, (0..100).map(|number| Some(number * number)).collect::<Vec<_>>());
}

#[test]
fn work_that_nobody_waits_for_is_done_all_the_same() {
    let (helpers, done) = (Helpers::threads(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..50 {
        let done = Arc::clone(&done);
        drop(helpers.begin(move || done.fetch_add(1, Ordering::SeqCst)));
    }
    let told = Arc::clone(&done);
    let last = helpers.begin(move || told.fetch_add(1, Ordering::SeqCst));
    drop(helpers);
    assert!(last.wait().is_some());
    while done.load(Ordering::SeqCst) < 51 {
        std::thread::yield_now();
    }
}

#[test]
fn a_panic_is_told_and_ends_no_helper() {
    let helpers = Helpers::threads();
    for _ in 0..10 {
        assert_eq!(helpers.begin(|| -> u32 { panic!("as planned") }).wait(), None);
    }
    assert_eq!(helpers.begin(|| 7).wait(), Some(7));
}

#[test]
fn at_once_is_in_order_and_before_anybody_goes_on() {
    let (helpers, order) = (Helpers::at_once(), Arc::new(Mutex::new(Vec::new())));
    let begun: Vec<_> = (0..5)
        .map(|number| {
            let told = Arc::clone(&order);
            let behind = helpers.begin(move || told.lock().push(number));
            assert_eq!(order.lock().last(), Some(&number));
            behind
        })
        .collect();
    assert!(begun.into_iter().all(|behind| behind.wait().is_some()));
    assert_eq!(*order.lock(), [0, 1, 2, 3, 4]);
}
