//! What frames hold, and what is left of them when they are gone.

use std::collections::VecDeque;

use super::{CLASSES, FRAME_BYTES_MAX, KEPT_BYTES, PAGE_BYTES, PageFrames};
use crate::rng::Rng;
use crate::sync::Arc;

#[test]
fn frames_hold_what_they_were_given_whatever_comes_and_goes() {
    let (frames, mut rng, mut held) = (Arc::new(PageFrames::default()), Rng::new(7), VecDeque::new());
    for turn in 0..3000u32 {
        let bytes = vec![turn as u8; rng.index(FRAME_BYTES_MAX + 1)];
        let frame = frames.hold(&bytes);
        assert_eq!(frame.is_some(), 4 * bytes.len() >= 3 * bytes.len().max(1).next_multiple_of(PAGE_BYTES));
        held.extend(frame.map(|frame| (frame, bytes)));
        if held.len() > 40 {
            let index = rng.index(held.len());
            held.swap_remove_back(index);
        }
        assert!(held.iter().all(|(frame, bytes)| **frame == bytes[..]));
    }
    assert!(frames.hold(&vec![1; FRAME_BYTES_MAX + 1]).is_none());
}

#[test]
fn what_is_free_is_taken_again_and_takes_little_until_then() {
    let frames = Arc::new(PageFrames::default());
    let hold = |count: usize| (0..count).map(|_| frames.hold(&[3; PAGE_BYTES]).unwrap()).collect::<Vec<_>>();
    for _ in 0..3 {
        drop(hold(1000));
        let class = frames.classes[0].lock();
        assert_eq!(
            (class.kept.len(), class.released.len()),
            (KEPT_BYTES / PAGE_BYTES, 1000 - KEPT_BYTES / PAGE_BYTES)
        );
    }
    assert_eq!(frames.classes.len(), CLASSES);
}
