//! The end of an entry's life, in tables that have a time to live: the last bytes of the stored value.

/// What it takes of a stored value.
pub const EXPIRY_BYTES: usize = size_of::<u64>();
/// The expiry of what lives forever.
pub const NEVER: u64 = u64::MAX;

/// The user's value, and when it expires, in milliseconds since 1970.
#[inline]
pub fn split(stored: &[u8]) -> (&[u8], u64) {
    match stored.split_last_chunk() {
        Some((value, expiry)) => (value, u64::from_le_bytes(*expiry)),
        // Nobody writes such a value.
        None => (stored, NEVER),
    }
}

/// When what is put now expires that lives for this many milliseconds.
pub fn after(now: u64, milliseconds: u64) -> u64 {
    now.saturating_add(milliseconds)
}

/// When the window ends that this moment lies in, of windows of so many milliseconds since 1970.
pub fn window_end(now: u64, milliseconds: u64) -> u64 {
    let windows = now / milliseconds.max(1);
    let end = windows.saturating_add(1).saturating_mul(milliseconds.max(1));
    debug_assert!(end > now || end == NEVER, "a window ends behind all that lies in it");
    end
}

/// Appends what is stored for a value.
pub fn join(value: &[u8], expiry: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(value);
    out.extend_from_slice(&expiry.to_le_bytes());
    debug_assert_eq!(split(&out[start..]), (value, expiry), "what is joined falls apart as it was");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_lengths_come_back() {
        for length in 0..40 {
            let value = vec![0xff; length];
            for expiry in [0, 1, NEVER - 1, NEVER] {
                let mut stored = Vec::new();
                join(&value, expiry, &mut stored);
                assert_eq!(stored.len(), length + EXPIRY_BYTES);
                assert_eq!(split(&stored), (&value[..], expiry));
            }
        }
        assert_eq!(split(b"short"), (&b"short"[..], NEVER));
    }

    #[test]
    fn the_longest_life_never_ends() {
        assert_eq!(after(5, 7), 12);
        assert_eq!(after(5, u64::MAX), NEVER);
        assert_eq!(after(0, NEVER), NEVER);
        assert_eq!(window_end(5, NEVER), NEVER);
    }

    #[test]
    fn windows_follow_one_another() {
        let ends = [0, 9, 10, 19, 20].map(|now| window_end(now, 10));
        assert_eq!(ends, [10, 10, 20, 20, 30]);
        assert_eq!(window_end(NEVER - 1, 10), NEVER);
    }
}
