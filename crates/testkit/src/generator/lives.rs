//! How long entries live: asked for, and changed.

use super::Generator;
use crate::config::ASIDE;
use crate::{Life, Op};

/// Lives of these lengths, in milliseconds, end now and then.
const LIVES_MILLISECONDS: [u64; 4] = [0, 300, 5_000, 500_000];

impl Generator {
    pub(super) fn life(&mut self) -> Op {
        let (key, stamp) = (self.key(), self.stamp);
        let dice = &mut self.lives;
        let milliseconds = LIVES_MILLISECONDS[dice.index(LIVES_MILLISECONDS.len())];
        let life = match dice.below(10) {
            0..2 => Life::Ask,
            2..5 => Life::End(milliseconds),
            5..7 => Life::Persist,
            _ => Life::Merge(self.values.value(dice, stamp), milliseconds),
        };
        Op::Life(ASIDE, key, life)
    }
}
