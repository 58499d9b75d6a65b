//! The memory of buffers, words and arenas, in tests that are short enough for `make miri`.

use super::{PAGE_BYTES, PagedWords};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{AlignedBuf, Arena, sync};

#[test]
fn a_buffer_is_zeros_and_belongs_to_one_owner() {
    for len in [0, 1, 100, PAGE_BYTES + 1] {
        let mut buffer = AlignedBuf::zeroed(len);
        assert!(buffer.as_ptr().addr().is_multiple_of(PAGE_BYTES));
        assert_eq!(&buffer[..], vec![0; len]);
        buffer.fill(7);
        let buffer = sync::spawn(move || buffer).join().expect("it can be sent");
        assert_eq!(&buffer[..], vec![7; len]);
    }
}

#[test]
fn released_words_turn_to_zeros_while_others_read_them() {
    let page = PAGE_BYTES / size_of::<u64>();
    let words = Arc::new(PagedWords::zeroed(2 * page + 5));
    words.as_slice().iter().for_each(|word| word.store(9, Ordering::Relaxed));
    let reader = Arc::clone(&words);
    let reader = sync::spawn(move || {
        let read = reader.as_slice().iter().map(|word| word.load(Ordering::Relaxed));
        assert!(read.enumerate().all(|(index, word)| word == 9 || word == 0 && index >= page));
    });
    words.release(page - 1);
    reader.join().expect("no word is torn");
    let left: Vec<_> = words.as_slice().iter().map(|word| word.load(Ordering::Relaxed)).collect();
    assert!(left[..page].iter().all(|word| *word == 9) && left[page..].iter().all(|word| *word == 0));
}

#[test]
fn an_arena_shows_what_was_published() {
    let (arena, mut appender) = Arena::new(10);
    assert_eq!((arena.capacity(), arena.bytes()), (10, &b""[..]));
    assert_eq!(appender.append(b"abcd"), Some(0));
    assert_eq!(arena.published(), 0);
    assert_eq!(appender.unpublished_view(1..3), b"bc");
    appender.publish();
    assert_eq!(appender.append(b"efg"), Some(4));
    assert_eq!((arena.bytes(), appender.len()), (&b"abcd"[..], 7));
    assert_eq!(appender.append(b"four"), None, "it does not fit");
    assert_eq!(appender.append(b"hij"), Some(7));
    assert_eq!(appender.append(b""), Some(10));
    appender.publish();
    assert_eq!(arena.prefix(3), b"abc");
    assert_eq!(arena.prefix(99), b"abcdefghij");
    assert_eq!(arena.reader_view(8..10), Some(&b"ij"[..]));
    assert_eq!(arena.reader_view(8..11), None);
    assert_eq!(appender.unpublished_view(5..11), b"");
}

#[test]
fn a_recycled_arena_is_the_same_memory_and_empty() {
    let (arena, mut appender) = Arena::new(3 << 20);
    appender.append(&[1; 1000]);
    appender.publish();
    let address = arena.bytes().as_ptr();
    let arena = Arena::recycle(arena).expect_err("the appender still holds it");
    drop(appender);
    let reader = Arc::clone(&arena);
    let arena = Arena::recycle(arena).expect_err("a reader still holds it");
    drop(reader);
    let (arena, mut appender) = Arena::recycle(arena).expect("nobody else holds it");
    assert_eq!((arena.published(), appender.len()), (0, 0));
    assert_eq!(arena.reader_view(0..1), None);
    assert_eq!(appender.unpublished_view(0..1), b"");
    appender.append(b"x");
    appender.publish();
    assert_eq!((arena.bytes(), arena.bytes().as_ptr()), (&b"x"[..], address));
}

#[test]
fn readers_see_whole_appends_while_more_arrive() {
    const RECORD_BYTES: usize = 24;
    let (arena, mut appender) = Arena::new(if cfg!(miri) { 4 << 10 } else { 1 << 20 });
    let done = Arc::new(AtomicBool::new(false));
    let readers = [0, 1].map(|_| {
        let (arena, done) = (Arc::clone(&arena), Arc::clone(&done));
        sync::spawn(move || {
            let mut checked = 0;
            while !done.load(Ordering::Acquire) || checked < arena.published() {
                let bytes = &arena.bytes()[checked..];
                assert!(bytes.len().is_multiple_of(RECORD_BYTES));
                for record in bytes.chunks(RECORD_BYTES) {
                    let tag = (checked / RECORD_BYTES % 251) as u8 + 1;
                    assert!(record.iter().all(|byte| *byte == tag));
                    checked += RECORD_BYTES;
                }
            }
            checked
        })
    });
    let mut count = 0;
    while let Some(offset) = appender.append(&[(count % 251) as u8 + 1; RECORD_BYTES]) {
        assert_eq!(offset, count * RECORD_BYTES);
        count += 1;
        if count % 3 == 0 {
            appender.publish();
        }
    }
    appender.publish();
    done.store(true, Ordering::Release);
    for reader in readers {
        assert_eq!(reader.join().expect("no bad record"), count * RECORD_BYTES);
    }
}
