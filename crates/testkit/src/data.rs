//! Keys and values of many kinds, from a seed.

use forebay_env::Rng;

/// What keys look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// None to four bytes of a small alphabet, the lowest and highest bytes in it.
    Short,
    /// Eight bytes each, so that lists need no lengths.
    Fixed,
    /// The same first eight bytes, so that key order is decided by what follows.
    SharedPrefix,
    /// Long ones, some of them longer than a page.
    Long,
    /// Numbers, so that neighbours by number are neighbours in order.
    Counted,
    /// Some of each.
    Mixed,
}

/// What values look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// None at all.
    Empty,
    /// Eight bytes each.
    Fixed,
    /// Up to 60 bytes.
    Short,
    /// 100 to 400 bytes.
    Hundreds,
    /// Mostly short; some longer than a page, few longer than a write buffer.
    Mixed,
    /// Seventy bytes each, and stretches in which nothing is deleted: where they are kept apart lists have pointers alone.
    Even,
}

impl Keys {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Short, Self::Fixed, Self::SharedPrefix, Self::Long, Self::Counted, Self::Mixed];

    /// The key of this number: the same at every call.
    pub fn key(self, number: u64) -> Vec<u8> {
        let mut rng = Rng::new(number.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ 0x6b65_7973);
        match self {
            Self::Short => {
                let length = rng.below(5) as usize;
                (0..length).map(|_| [0, 1, b'a', b'b', b'm', b'z', 0xfe, 0xff][rng.index(8)]).collect()
            }
            Self::Fixed => rng.next_u64().to_be_bytes().to_vec(),
            Self::SharedPrefix => {
                let mut key = b"prefix-8".to_vec();
                let length = rng.below(6) as usize;
                key.extend((0..length).map(|_| rng.below(256) as u8));
                key
            }
            Self::Long => {
                let length = if rng.chance(3) { rng.range(4000..9000) } else { rng.range(20..200) };
                let mut key = vec![0; length as usize];
                rng.fill(&mut key);
                key
            }
            Self::Counted => number.to_be_bytes().to_vec(),
            Self::Mixed => Self::ALL[rng.index(5)].key(number ^ 0xaaaa),
        }
    }
}

impl Values {
    /// Every kind that a database has whatever its options.
    pub const ALL: [Self; 5] = [Self::Empty, Self::Fixed, Self::Short, Self::Hundreds, Self::Mixed];

    /// A value that tells the `stamp` it was made with, so that an outdated one is recognised.
    pub fn value(self, rng: &mut Rng, stamp: u64) -> Vec<u8> {
        let length = match self {
            Self::Empty => 0,
            Self::Fixed => 8,
            Self::Even => 70,
            Self::Short => rng.below(60) as usize,
            Self::Hundreds => rng.range(100..400) as usize,
            Self::Mixed => match rng.below(100) {
                0 => rng.range(10_000..40_000) as usize,
                1..4 => rng.range(3000..9000) as usize,
                4..20 => 0,
                _ => rng.below(200) as usize,
            },
        };
        let mut value = stamp.to_le_bytes().to_vec();
        value.resize(length.max(8), stamp as u8);
        value.truncate(length);
        value
    }
}
