//! Who gets how much of a pool's memory: a function of what each database has, holds and wants.
//!
//! 1. Each database has a target. One that nobody reads or writes keeps the least that one works in, and its filters as
//!    far as an eighth of the memory has room for those of all such. Of the rest each other one gets what it wants, up to
//!    one level for all.
//! 2. Of what is left then, most stays where it is: cached pages are of use until somebody else wants their memory.
//! 3. A share that is above its target falls to it at once. One that is below grows by as much as nobody has or holds:
//!    what a database gives back others get once it is given back.
//!
//! **Invariant:** shares, or what databases hold where that is more, are no more than all of the memory, unless they were
//! before; and then no share grows beyond what its database holds.

/// The least that a database works in.
pub(crate) const SHARE_BYTES_MIN: u64 = 256 << 10;
/// Filters of databases that nobody uses keep this part of all at most.
const KEPT_PART: u64 = 8;
/// Of what nobody wants this much stays where it is; the rest is there for who wakes.
const STAYS: (u64, u64) = (3, 4);
/// A share does not fall for less than this part of it.
const TRIFLE_PART: u64 = 8;

/// What a database wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nobody reads or writes it. This much it loses for good if it must give it up.
    Asleep { kept_bytes: u64 },
    /// It has use for this much.
    Awake { bytes: u64 },
    /// It has what it has got: nobody in it could give anything back.
    Fixed,
}

impl Wish {
    /// Whether another one is the same but for a trifle.
    pub(crate) fn is_about(self, other: Self) -> bool {
        let is_trifle = |one: u64, other: u64| one.abs_diff(other) <= one.max(other) / TRIFLE_PART;
        match (self, other) {
            (Self::Asleep { kept_bytes: one }, Self::Asleep { kept_bytes: other })
            | (Self::Awake { bytes: one }, Self::Awake { bytes: other }) => is_trifle(one, other),
            (one, other) => one == other,
        }
    }
}

/// What is known of a database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) share_bytes: u64,
    /// What it holds, as it said last.
    pub(crate) held_bytes: u64,
    pub(crate) wish: Wish,
}

impl Claim {
    /// What nobody else can have.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.share_bytes.max(self.held_bytes)
    }
}

/// The new shares, in the order of the claims.
pub(crate) fn arbitrate(total_bytes: u64, claims: &[Claim]) -> Vec<u64> {
    let targets = targets(total_bytes, claims);
    let is_trifle = |share: u64, target: u64| share - target <= share / TRIFLE_PART;
    let shrunk = claims.iter().zip(&targets).map(|(claim, &target)| match claim.share_bytes {
        share if share > target && !is_trifle(share, target) => target,
        share => share,
    });
    // What a database holds anyway its share may come to.
    let bases: Vec<u64> = shrunk
        .zip(claims.iter().zip(&targets))
        .map(|(share, (claim, &target))| share.max(claim.held_bytes.min(target)))
        .collect();
    let taken = sum(bases.iter().zip(claims).map(|(base, claim)| *base.max(&claim.held_bytes)));
    let wants: Vec<u64> = bases
        .iter()
        .zip(claims.iter().zip(&targets))
        .map(|(base, (claim, &target))| target.saturating_sub(*base.max(&claim.held_bytes)))
        .collect();
    let level = level(&wants, total_bytes.saturating_sub(taken));
    let shares: Vec<u64> = bases.iter().zip(&wants).map(|(base, want)| base + want.min(&level)).collect();
    debug_assert!(
        sum(shares.iter().zip(claims).map(|(share, claim)| *share.max(&claim.held_bytes)))
            <= total_bytes.max(sum(claims.iter().map(Claim::taken_bytes))),
        "no more is given than there is"
    );
    shares
}

/// What each would have if all gave back at once what they are to give back.
fn targets(total_bytes: u64, claims: &[Claim]) -> Vec<u64> {
    let kept_of = |claim: &Claim| match claim.wish {
        Wish::Asleep { kept_bytes } => kept_bytes,
        Wish::Awake { .. } | Wish::Fixed => 0,
    };
    let kept: Vec<u64> = claims.iter().map(kept_of).collect();
    let kept_level = level(&kept, total_bytes / KEPT_PART);
    let mut targets: Vec<u64> = claims
        .iter()
        .zip(&kept)
        .map(|(claim, &kept)| match claim.wish {
            Wish::Asleep { .. } => SHARE_BYTES_MIN + kept.min(kept_level),
            Wish::Fixed => claim.share_bytes,
            Wish::Awake { .. } => 0,
        })
        .collect();
    let wish_of = |claim: &Claim| match claim.wish {
        Wish::Awake { bytes } => bytes.max(SHARE_BYTES_MIN),
        Wish::Asleep { .. } | Wish::Fixed => 0,
    };
    let wishes: Vec<u64> = claims.iter().map(wish_of).collect();
    let wish_level = level(&wishes, total_bytes.saturating_sub(sum(targets.iter().copied())));
    targets
        .iter_mut()
        .zip(&wishes)
        .filter(|(_, wish)| **wish > 0)
        .for_each(|(target, &wish)| *target = wish.min(wish_level).max(SHARE_BYTES_MIN));
    let spare = total_bytes.saturating_sub(sum(targets.iter().copied()));
    let excess = |(claim, target): (&Claim, &u64)| claim.share_bytes.saturating_sub(*target);
    let excesses: Vec<u64> = claims.iter().zip(&targets).map(excess).collect();
    let stays = level(&excesses, spare / STAYS.1 * STAYS.0);
    targets.iter_mut().zip(&excesses).for_each(|(target, excess)| *target += excess.min(&stays));
    targets
}

fn sum(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0, u64::saturating_add)
}

/// The highest level for which this much is enough, where each gets what it wants up to that.
fn level(wants: &[u64], bytes: u64) -> u64 {
    let mut sorted = wants.to_vec();
    sorted.sort_unstable();
    let mut left_bytes = bytes;
    for (number, want) in sorted.iter().enumerate() {
        let left = (sorted.len() - number) as u64;
        if *want > left_bytes / left {
            return left_bytes / left;
        }
        left_bytes -= want;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use forebay_env::Rng;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn claim(share_bytes: u64, held_bytes: u64, wish: Wish) -> Claim {
        Claim { share_bytes, held_bytes, wish }
    }

    const ASLEEP: Wish = Wish::Asleep { kept_bytes: 0 };
    const GREEDY: Wish = Wish::Awake { bytes: u64::MAX };

    #[test]
    fn one_that_is_alone_gets_all_and_two_get_half() {
        let one = claim(SHARE_BYTES_MIN, 0, GREEDY);
        assert_eq!(arbitrate(100 * MIB, &[one]), [100 * MIB]);
        assert_eq!(arbitrate(100 * MIB, &[one, one]), [50 * MIB; 2]);
        let modest = claim(SHARE_BYTES_MIN, 0, Wish::Awake { bytes: 10 * MIB });
        assert_eq!(arbitrate(100 * MIB, &[one, modest, one]), [45 * MIB, 10 * MIB, 45 * MIB]);
    }

    #[test]
    fn what_is_given_back_is_had_once_it_is_given_back() {
        // It sleeps, and others want what it has.
        let mut claims = vec![claim(90 * MIB, 80 * MIB, ASLEEP), claim(SHARE_BYTES_MIN, 0, GREEDY)];
        let shares = arbitrate(100 * MIB, &claims);
        assert_eq!(shares, [SHARE_BYTES_MIN, 20 * MIB]);
        // Nothing of it is given back yet.
        claims[0].share_bytes = shares[0];
        claims[1] = claim(shares[1], 20 * MIB, GREEDY);
        assert_eq!(arbitrate(100 * MIB, &claims), shares);
        claims[0].held_bytes = 30 * MIB;
        assert_eq!(arbitrate(100 * MIB, &claims), [SHARE_BYTES_MIN, 70 * MIB]);
        claims[0].held_bytes = 0;
        assert_eq!(arbitrate(100 * MIB, &claims), [SHARE_BYTES_MIN, 100 * MIB - SHARE_BYTES_MIN]);
    }

    #[test]
    fn what_nobody_wants_stays_for_the_most_part() {
        let claims = [claim(80 * MIB, 80 * MIB, ASLEEP), claim(MIB, MIB, Wish::Awake { bytes: MIB })];
        let shares = arbitrate(100 * MIB, &claims);
        assert!((70 * MIB..=80 * MIB).contains(&shares[0]) && shares[1] == MIB, "{shares:?}");
    }

    #[test]
    fn filters_of_who_sleeps_stay_as_far_as_there_is_room() {
        let sleeper = claim(10 * MIB, 10 * MIB, Wish::Asleep { kept_bytes: 2 * MIB });
        let mut claims = vec![sleeper; 2];
        claims.push(claim(50 * MIB, 50 * MIB, GREEDY));
        let shares = arbitrate(64 * MIB, &claims);
        assert_eq!(shares[..2], [SHARE_BYTES_MIN + 2 * MIB; 2]);
        claims.extend([sleeper; 6]);
        let shares = arbitrate(64 * MIB, &claims);
        assert_eq!(shares[..2], [SHARE_BYTES_MIN + MIB; 2], "an eighth of all, for eight");
    }

    /// Databases that wake, sleep, hold more than their share, come and go. Each gives back what it must when it has a
    /// turn, and takes what it may.
    #[test]
    fn never_is_more_given_than_there_is() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let total = (1 + rng.below(64)) * 4 * MIB;
            let mut claims: Vec<Claim> = Vec::new();
            for _ in 0..400 {
                match rng.index(4) {
                    0 if (claims.len() as u64 + 1) * SHARE_BYTES_MIN * 2 < total => {
                        claims.push(claim(SHARE_BYTES_MIN, 0, ASLEEP));
                    }
                    1 if !claims.is_empty() => {
                        claims.swap_remove(rng.index(claims.len()));
                    }
                    _ => {}
                }
                if claims.is_empty() {
                    continue;
                }
                let who = rng.index(claims.len());
                let one = &mut claims[who];
                // What it holds beyond its share it gives back, and up to that it takes.
                one.held_bytes = one.share_bytes.min(rng.below(2 * one.share_bytes));
                one.wish = match rng.index(3) {
                    0 => Wish::Asleep { kept_bytes: rng.below(one.share_bytes) },
                    1 => Wish::Awake { bytes: rng.below(total) },
                    _ => GREEDY,
                };
                let before = sum(claims.iter().map(Claim::taken_bytes));
                let shares = arbitrate(total, &claims);
                claims.iter_mut().zip(shares).for_each(|(claim, share)| claim.share_bytes = share);
                let after = sum(claims.iter().map(Claim::taken_bytes));
                assert!(after <= total.max(before), "seed {seed}: {after} of {total}, {before} before");
                assert!(claims.iter().all(|claim| claim.share_bytes >= SHARE_BYTES_MIN), "seed {seed}");
            }
            // All sleep but one, which has nearly all once each has had a turn.
            claims.push(claim(SHARE_BYTES_MIN, 0, GREEDY));
            for who in 0..claims.len() {
                let last = claims.len() - 1;
                if who < last {
                    let one = &mut claims[who];
                    (one.wish, one.held_bytes) = (ASLEEP, one.held_bytes.min(SHARE_BYTES_MIN));
                }
                let shares = arbitrate(total, &claims);
                claims.iter_mut().zip(shares).for_each(|(claim, share)| claim.share_bytes = share);
            }
            let others = (claims.len() as u64 - 1) * SHARE_BYTES_MIN;
            let last = claims[claims.len() - 1].share_bytes;
            assert!(
                last >= (total - others) / 10 * 8,
                "seed {seed}: {last} of {total}, {others} are others'"
            );
        }
    }
}
